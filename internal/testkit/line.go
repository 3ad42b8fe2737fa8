package testkit

import (
	"io"
	"slices"
	"sync"
)

// Line is one end of a connection within a test that keeps the boundaries of messages.
type Line struct {
	out, in chan []byte
	over    chan struct{} // of both ends
	once    *sync.Once
}

// NewLine returns both ends of a connection.
func NewLine() (one, other *Line) {
	a, b, over, once := make(chan []byte, 64), make(chan []byte, 64), make(chan struct{}), &sync.Once{}
	return &Line{a, b, over, once}, &Line{b, a, over, once}
}

// Send sends a message.
func (l *Line) Send(message []byte) error {
	select {
	case <-l.over:
		return io.ErrClosedPipe
	default:
	}
	select {
	case <-l.over:
		return io.ErrClosedPipe
	case l.out <- slices.Clone(message):
		return nil
	}
}

// Receive returns the next message, io.EOF after the last one of a closed connection.
func (l *Line) Receive() ([]byte, error) {
	select {
	case m := <-l.in:
		return m, nil
	case <-l.over:
	}
	select {
	case m := <-l.in:
		return m, nil
	default:
		return nil, io.EOF
	}
}

// Close ends the connection.
func (l *Line) Close() error {
	l.once.Do(func() { close(l.over) })
	return nil
}
