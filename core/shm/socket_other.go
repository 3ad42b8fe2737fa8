//go:build !linux

package shm

import (
	"os"
	"time"
)

// Socket needs Linux.
type Socket struct{}

// Listener needs Linux.
type Listener struct{}

// Socketpair returns ErrUnsupported.
func Socketpair() (*Socket, *os.File, error) { return nil, nil, ErrUnsupported }

// NewSocket closes the file and returns ErrUnsupported.
func NewSocket(f *os.File) (*Socket, error) {
	_ = f.Close() // taken over, and of no use
	return nil, ErrUnsupported
}

// Dial returns ErrUnsupported.
func Dial(string) (*Socket, error) { return nil, ErrUnsupported }

// Listen returns ErrUnsupported.
func Listen(string) (*Listener, error) { return nil, ErrUnsupported }

// SetSendTimeout does nothing.
func (s *Socket) SetSendTimeout(time.Duration) {}

// SetReceiveDeadline returns ErrUnsupported.
func (s *Socket) SetReceiveDeadline(time.Time) error { return ErrUnsupported }

// Send returns ErrUnsupported.
func (s *Socket) Send([]byte, ...int) error { return ErrUnsupported }

// Receive returns ErrUnsupported.
func (s *Socket) Receive([]byte) (int, []*os.File, error) { return 0, nil, ErrUnsupported }

// PeerUID returns ErrUnsupported.
func (s *Socket) PeerUID() (uint32, error) { return 0, ErrUnsupported }

// Close returns ErrUnsupported.
func (s *Socket) Close() error { return ErrUnsupported }

// Accept returns ErrUnsupported.
func (l *Listener) Accept() (*Socket, error) { return nil, ErrUnsupported }

// Close returns ErrUnsupported.
func (l *Listener) Close() error { return ErrUnsupported }
