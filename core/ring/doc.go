// Package ring provides bounded FIFOs in shared memory between processes that may die, stop or lie.
//
// Messages is the fastest: one producer, one consumer, cells of 64 bytes.
//
//	out, err := ring.NewMessages("to the plugin", hostabi.LinkCells)
//	...
//	for len(ms) > 0 {
//		ms = ms[out.Put(ms):]
//		if len(ms) > 0 && !out.WaitRoom(time.Second) {
//			return errStalled
//		}
//	}
//
// Queue has any number of producers and consumers, each of which may be killed at any moment; Recover then repairs
// what it had claimed.
//
//	q, err := ring.NewQueue("work", 1024, 48)
//	end := q.As(owner)
//	err = end.Put(ring.Item{Payload: data}, time.Second)
//
// Nothing in the shared memory is trusted: the sizes are checked once and kept in private memory, and what a peer
// writes later can make messages appear, change or vanish, but never make this process read or write elsewhere,
// loop or panic. The contents of messages are the receiver's to check, in the copy that it got.
//
// Waiting occupies a thread. It spins for about four microseconds, longer where that has helped and hardly at all where
// it has not; then it sleeps on a futex for at most 100 ms at a time (8 ms on queues), so that whatever a dying process
// failed to say is found out. The package does not know what messages mean, nor who is alive.
package ring
