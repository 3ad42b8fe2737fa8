package fifo

// pause waits for n turns, 20 to 40 ns each, in the processor's way of saying that it does. n is at least 1.
//
//go:noescape
func pause(n uint32)
