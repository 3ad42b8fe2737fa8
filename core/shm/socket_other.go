//go:build !linux

package shm

import (
	"net"
	"os"
	"time"
)

// Socket needs Linux.
type Socket struct{}

// Socketpair returns ErrUnsupported.
func Socketpair() (*Socket, *os.File, error) { return nil, nil, ErrUnsupported }

// NewSocket closes the file and returns ErrUnsupported.
func NewSocket(f *os.File) (*Socket, error) {
	_ = f.Close() // taken over, and of no use
	return nil, ErrUnsupported
}

// Dial returns ErrUnsupported.
func Dial(string) (*Socket, error) { return nil, ErrUnsupported }

// SocketOf closes the connection and returns ErrUnsupported.
func SocketOf(conn *net.UnixConn) (*Socket, error) {
	_ = conn.Close() // taken over, and of no use
	return nil, ErrUnsupported
}

// SetSendTimeout does nothing.
func (s *Socket) SetSendTimeout(time.Duration) {}

// SetReceiveDeadline returns ErrUnsupported.
func (s *Socket) SetReceiveDeadline(time.Time) error { return ErrUnsupported }

// Send returns ErrUnsupported.
func (s *Socket) Send([]byte, ...int) error { return ErrUnsupported }

// Receive returns ErrUnsupported.
func (s *Socket) Receive([]byte) (int, []*os.File, error) { return 0, nil, ErrUnsupported }

// Close returns ErrUnsupported.
func (s *Socket) Close() error { return ErrUnsupported }
