package link

// fifo is a queue that grows, in a ring whose size is a power of two. Its users bound it.
type fifo[T any] struct {
	ring    []T
	head, n int
}

// push adds a zero element and returns it, to be filled in place.
func (f *fifo[T]) push() *T {
	if f.n == len(f.ring) {
		f.grow()
	}
	f.n++
	return f.at(f.n - 1)
}

// pop removes the oldest element; the pointer is valid until the next push.
func (f *fifo[T]) pop() *T {
	x := f.at(0)
	f.head = (f.head + 1) & (len(f.ring) - 1)
	f.n--
	return x
}

// at returns the element that i others are older than.
func (f *fifo[T]) at(i int) *T { return &f.ring[(f.head+i)&(len(f.ring)-1)] }

func (f *fifo[T]) grow() {
	ring := make([]T, max(16, 2*len(f.ring)))
	k := copy(ring, f.ring[f.head:])
	copy(ring[k:], f.ring[:f.head])
	f.ring, f.head = ring, 0
}
