package ring

// pause waits for n turns, 20 to 40 ns each, with the processor's pause instruction. n is at least 1.
//
//go:noescape
func pause(n uint32)
