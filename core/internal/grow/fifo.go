// Package grow is a queue in a ring that grows. Callers bound it, and guard it.
package grow

// FIFO is a queue in a ring whose size is a power of two. The zero value is empty. Pointers that it returns are valid
// until the next Push or Unpop.
type FIFO[T any] struct {
	ring    []T
	head, n int
}

// Len returns how many elements are in the queue.
func (f *FIFO[T]) Len() int { return f.n }

// At returns the i-th oldest element, counted from 0.
func (f *FIFO[T]) At(i int) *T { return &f.ring[(f.head+i)&(len(f.ring)-1)] }

// Newest returns the element of the last Push; the queue must not be empty.
func (f *FIFO[T]) Newest() *T { return f.At(f.n - 1) }

// Push adds an element and returns it, to be overwritten as a whole.
func (f *FIFO[T]) Push() *T {
	if f.n == len(f.ring) {
		f.grow()
	}
	f.n++
	return f.Newest()
}

// Unpush removes the newest element.
func (f *FIFO[T]) Unpush() { f.n-- }

// Pop removes the oldest element and returns it.
func (f *FIFO[T]) Pop() *T {
	x := f.At(0)
	f.head = (f.head + 1) & (len(f.ring) - 1)
	f.n--
	return x
}

// Unpop makes a place before the oldest element and returns it, to be overwritten as a whole.
func (f *FIFO[T]) Unpop() *T {
	if f.n == len(f.ring) {
		f.grow()
	}
	f.head = (f.head - 1) & (len(f.ring) - 1)
	f.n++
	return f.At(0)
}

// Cap returns for how many elements there is memory.
func (f *FIFO[T]) Cap() int { return len(f.ring) }

func (f *FIFO[T]) grow() {
	ring := make([]T, max(4, 2*len(f.ring)))
	k := copy(ring, f.ring[f.head:])
	copy(ring[k:], f.ring[:f.head])
	f.ring, f.head = ring, 0
}
