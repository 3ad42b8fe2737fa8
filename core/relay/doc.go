// Package relay brings blocks from one host to another over a transport that may drop, double, reorder and delay messages. Each block is
// committed once by its receiver, or counted: as under way, lost, or in doubt.
//
// A Sender is one host's end towards a receiver, a Receiver the other end for one sending host. Both are state machines without clocks or
// goroutines: the caller gives them messages and times, and carries out what they ask of their ports.
//
//	sender.Put(now, block)         // false: no room, the component that makes blocks pauses
//	sender.Handle(now, message)    // a message of the receiver
//	sender.Tick(now)               // at Deadline
//	receiver.Handle(message, body) // a message of the sender
//	receiver.Freed(blocks)         // blocks that it had committed are free again
//	receiver.Expire()              // the sending host's lease is over
//
// Each life of either end has an incarnation, which every message names for both ends: a message for an ended one is never obeyed. Limits and
// acknowledgements are absolute numbers, so a lost or doubled message changes nothing. A sender's states are opening and open:
//
//	state    event                        does                                                      then
//	opening  start, timer                 OPEN(from, to, previous, acknowledged)                    opening
//	opening  OPENED(final of previous)    kept up to final are done, the others get new numbers     open
//	opening  OPENED(previous unknown)     kept are in doubt: counted, never sent again              open
//	open     room: next number <= limit   DATA(number), its claim is kept                           open
//	open     ACK(number, limit, resend)   claims up to number end; resend: DATA of all kept         open
//	open     timer, some kept or queued   PROBE(highest number), never a block                      open
//	any      REFUSED                      a new incarnation, previous is the one that numbered kept opening
//	any      STRANGER(a new receiver)     kept are in doubt, nothing is previous                    opening
//
// A receiver's, for one sending host, are none, open and closed:
//
//	state    event                        does                                                      then
//	any      a message for another        STRANGER(own incarnation)                                 the same
//	any      OPEN(from newer)             what previous still owes is expected, else lost; OPENED   open
//	open     OPEN(from the same)          OPENED again                                              open
//	open     DATA, the next, in limit     commit, then count; ACK each half or four                 open
//	open     DATA, a former one           ACK                                                       open
//	open     DATA, a later one            dropped; ACK(resend) once a gap                           open
//	open     PROBE(number)                ACK, with resend where number is not committed            open
//	open     blocks are free              ACK, if commits have none                                 open
//	open     the limit can grow by half,  ACK                                                       open
//	         or its number is committed
//	open     the lease is over            the number of commits is final                            closed
//	closed   OPEN, DATA, PROBE            REFUSED                                                   closed
//
// Half is half of what may be on its way at once: a sender is answered in time, and does not wake for each block that is free again.
//
// What a killed sender had made and told nobody is not counted: the receiver counts what DATA, PROBE and leases have told.
package relay
