//go:build !amd64

package ring

// pause waits for n turns; an empty loop would be optimised away.
func pause(n uint32) {
	for i := range n {
		if spinSink(i) {
			return
		}
	}
}

//go:noinline
func spinSink(i uint32) bool { return i == 1<<31 }
