// Package ring provides a bounded FIFO of messages in shared memory between two ends, of which the other may end, stop
// or misbehave: one producer, one consumer, cells of 64 bytes. Queues for several are in sdk/c/native.
//
//	out, err := ring.New("to the plugin", hostabi.LinkCells)
//	...
//	for len(ms) > 0 {
//		ms = ms[out.Put(ms):]
//		if len(ms) > 0 && !out.WaitRoom(time.Second) {
//			return errStalled
//		}
//	}
//
// Nothing in the shared memory is trusted: the sizes are checked once and kept in private memory, and what a peer
// writes later can make messages appear, change or vanish, but never make this process read or write elsewhere,
// loop or panic. The contents of messages are the receiver's to check, in the copy that it got.
//
// Waiting occupies a thread. It spins for about four microseconds, longer where that has helped and hardly at all where
// it has not; then it sleeps on a futex for at most 100 ms at a time (8 ms on queues), so that a wake-up missed because
// a process was killed is noticed. The package does not know what messages mean, nor which processes are running.
package ring
