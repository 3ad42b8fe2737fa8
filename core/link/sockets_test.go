package link

import (
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/hostabi"
)

// sockets is an end of a transport over a pair of sockets, which shares no memory with the other end.
type sockets struct {
	fd, nudged int // the socket, an eventfd

	mu    sync.Mutex
	ahead []hostabi.Message // received, and not got
	shut  bool
}

var _ Transport = (*sockets)(nil)

func newSockets(t testing.TB) (a, b *sockets) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*sockets
	for i, fd := range fds {
		nudged, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = &sockets{fd: fd, nudged: nudged}
		t.Cleanup(func() { _ = ends[i].Close() })
	}
	return ends[0], ends[1]
}

func bytesOf(m *hostabi.Message) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(m)), unsafe.Sizeof(*m))
}

func (s *sockets) Put(ms []hostabi.Message) int {
	for i := range ms {
		if _, err := unix.Write(s.fd, bytesOf(&ms[i])); err != nil {
			return i
		}
	}
	return len(ms)
}

func (s *sockets) WaitRoom(d time.Duration) bool {
	fds := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLOUT}}
	n, _ := unix.Poll(fds, int(d.Milliseconds()))
	return n > 0
}

// receive reads the socket. The caller must hold mu.
func (s *sockets) receive() {
	for !s.shut {
		var m hostabi.Message
		switch n, err := unix.Read(s.fd, bytesOf(&m)); {
		case err == unix.EAGAIN:
			return
		case n != len(bytesOf(&m)):
			s.shut = true
		default:
			s.ahead = append(s.ahead, m)
		}
	}
}

func (s *sockets) Get(dst []hostabi.Message) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receive()
	n := copy(dst, s.ahead)
	s.ahead = s.ahead[n:]
	return n
}

func (s *sockets) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receive()
	return len(s.ahead)
}

func (s *sockets) Wait(d time.Duration) bool {
	fds := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}, {Fd: int32(s.nudged), Events: unix.POLLIN}}
	if s.Len() == 0 {
		_, _ = unix.Poll(fds, int(d.Milliseconds()))
	}
	var count [8]byte
	_, _ = unix.Read(s.nudged, count[:])
	return s.Len() > 0
}

func (s *sockets) Nudge() { _, _ = unix.Write(s.nudged, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

func (s *sockets) IsShut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receive()
	return s.shut
}

func (s *sockets) Close() error {
	_ = unix.Close(s.nudged)
	return unix.Close(s.fd)
}
