package bus

import "github.com/rlhost/rlhost/hostabi"

// fifo is a growing queue of messages in a ring whose size is a power of two. Callers bound it.
type fifo struct {
	ring    []hostabi.Message
	head, n int
}

func (f *fifo) push(m *hostabi.Message) {
	if f.n == len(f.ring) {
		ring := make([]hostabi.Message, max(4, 2*len(f.ring)))
		k := copy(ring, f.ring[f.head:])
		copy(ring[k:], f.ring[:f.head])
		f.ring, f.head = ring, 0
	}
	f.ring[f.at(f.n)] = *m
	f.n++
}

// pop removes the oldest message; the pointer is valid until the next push.
func (f *fifo) pop() *hostabi.Message {
	m := &f.ring[f.head]
	f.head = f.at(1)
	f.n--
	return m
}

// unpush removes the newest message.
func (f *fifo) unpush() { f.n-- }

// oldest and newest return messages of a queue that is not empty, in place.
func (f *fifo) oldest() *hostabi.Message { return &f.ring[f.head] }
func (f *fifo) newest() *hostabi.Message { return &f.ring[f.at(f.n-1)] }

func (f *fifo) at(i int) int { return (f.head + i) & (len(f.ring) - 1) }
