// Package link carries the messages of a component between two processes over a Transport, with
// acknowledgements, windows, and the claims on the blocks that are under way. The host and the native plugin each
// have one.
//
//	l, err := link.New(link.Config{
//		Transport: rings, Host: true, Sends: slots, Receives: signals, Arenas: arenas, Receiver: r,
//		Limit: depthOf, Deliver: emit, Control: control, Fault: kill,
//	})
//	l.Start()
//	err = l.Send(slot, m)       // on the component's loop; never waits
//	l.Post(hostabi.Message{Slot: hostabi.LinkCredit, Handle: h})
//	l.Stop()                    // now nothing touches the transport
//	again := l.Unfinished()     // what an ended peer has not finished
//
// A message of data that carries a block keeps a claim on it until the peer has finished with the message, by which
// time the peer has its own claims on the blocks that it keeps. Every message carries the number of the other
// direction's messages that its sender has finished with (hostabi.Message.Ctl), so an answer acknowledges its
// question without another message.
//
// A port's limit is how many of its messages may be unacknowledged. At the limit the component's data lane is
// paused, so that its next messages wait in the host's connections, under their overflow policies, and not in the
// ring.
//
// The peer's input is checked: an acknowledgement of a message that was never sent, or a message for a port that
// does not exist, ends the link with ErrPeer and does nothing else.
//
// Locks: Link.rx, held while messages are taken out of the ring and delivered, before Link.tx, held for a few
// stores; then a loop's locks. No claim is released under tx.
//
// The link does not start processes, hand out rings or detect that a peer has ended.
package link
