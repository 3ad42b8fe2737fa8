package shm

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Socket is one end of a connection within this machine that carries documents with files attached. Send, Receive
// and Close may be called from different goroutines at the same time; two Receives take turns.
type Socket struct {
	conn *net.UnixConn
	raw  syscall.RawConn // of conn

	send    sync.Mutex // one Send at a time, because each sets the deadline that is the connection's
	timeout time.Duration
}

// Socketpair returns the two ends of a new connection: one to use here, one to hand to a child process, which
// then owns it. Close the file once the child runs, or its end will not be noticed here.
func Socketpair() (*Socket, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", explain(err))
	}
	theirs := os.NewFile(uintptr(fds[1]), "socket")
	s, err := NewSocket(os.NewFile(uintptr(fds[0]), "socket"))
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return s, theirs, nil
}

// NewSocket makes a Socket of an open file, for instance an inherited one. It takes ownership of the file, also on
// an error.
func NewSocket(f *os.File) (*Socket, error) {
	conn, err := net.FileConn(f)
	if err := errors.Join(err, f.Close()); err != nil {
		if conn != nil {
			_ = conn.Close() // the error that matters is the first
		}
		return nil, fmt.Errorf("socket of %s: %w", f.Name(), err)
	}
	c, ok := conn.(*net.UnixConn)
	if !ok || conn.LocalAddr().Network() != Network {
		_ = conn.Close() // the error that matters is this one
		return nil, fmt.Errorf("socket of %s: a %s socket, want %s", f.Name(), conn.LocalAddr().Network(), Network)
	}
	return SocketOf(c)
}

// Dial connects to the socket that a process of this machine listens at, with the network Network.
func Dial(path string) (*Socket, error) {
	conn, err := net.DialUnix(Network, nil, &net.UnixAddr{Name: path, Net: Network})
	if err != nil {
		return nil, err
	}
	return SocketOf(conn)
}

// SocketOf makes a Socket of a connection of the network Network. It takes ownership of the connection, also on an
// error.
func SocketOf(conn *net.UnixConn) (*Socket, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &Socket{conn: conn, raw: raw, timeout: SendTimeout}, nil
}

// SetSendTimeout says how long a Send may wait for a peer that does not read; 0 means that it does not wait.
func (s *Socket) SetSendTimeout(d time.Duration) {
	s.send.Lock()
	defer s.send.Unlock()
	s.timeout = max(d, 0)
	if s.timeout == 0 {
		_ = s.conn.SetWriteDeadline(time.Time{}) // of an earlier Send; on a closed connection it does not matter
	}
}

// SetReceiveDeadline sets when a Receive, also one that waits already, fails with os.ErrDeadlineExceeded. The zero time means never.
func (s *Socket) SetReceiveDeadline(t time.Time) error { return s.conn.SetReadDeadline(t) }

// Send sends a document of at least one byte and up to MaxFiles files, all or nothing. The files stay the caller's.
// If the peer does not read, Send waits for SendTimeout and returns os.ErrDeadlineExceeded. Other errors: ErrTooLarge,
// net.ErrClosed after Close, or the system's, such as EPIPE if the peer is gone.
func (s *Socket) Send(doc []byte, files ...int) error {
	if len(doc) == 0 {
		return ErrEmpty
	}
	if len(files) > MaxFiles {
		return fmt.Errorf("%d files, at most %d: %w", len(files), MaxFiles, ErrTooLarge)
	}
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	s.send.Lock()
	defer s.send.Unlock()
	var err error
	if s.timeout == 0 {
		err = s.sendNow(doc, rights)
	} else {
		err = s.sendSoon(doc, rights)
	}
	if errors.Is(err, unix.EMSGSIZE) {
		return fmt.Errorf("%d bytes: %w: %w", len(doc), ErrTooLarge, err)
	}
	return err
}

// sendSoon waits for room until the timeout.
func (s *Socket) sendSoon(doc, rights []byte) error {
	if err := s.conn.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return err
	}
	_, _, err := s.conn.WriteMsgUnix(doc, rights, nil)
	return err
}

// sendNow does without a deadline, which is a timer: setting one wakes a thread of the scheduler and costs more than
// everything else in a round trip.
func (s *Socket) sendNow(doc, rights []byte) error {
	var sent error
	err := s.raw.Write(func(fd uintptr) bool {
		sent = unix.EINTR
		for errors.Is(sent, unix.EINTR) {
			sent = unix.Sendmsg(int(fd), doc, rights, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		}
		return true
	})
	if errors.Is(sent, unix.EAGAIN) {
		return os.ErrDeadlineExceeded
	}
	return cmp.Or(err, sent)
}

// Receive waits for the next document, copies it to buf and returns its length and the files that came with it, which are closed on exec
// and belong to the caller. io.EOF: the other end is closed. A document that does not fit or a datagram with more than MaxFiles files is
// ErrTooLarge and lost, its files closed; the connection continues. After Close, also a concurrent one, the error is net.ErrClosed.
func (s *Socket) Receive(buf []byte) (int, []*os.File, error) {
	control := make([]byte, unix.CmsgSpace(MaxFiles*4))
	n, controls, flags, _, err := s.conn.ReadMsgUnix(buf, control)
	files, badControl := filesOf(control[:max(controls, 0)])
	if errors.Is(err, io.EOF) { // which is what the package net makes of any read of nothing
		err = checkDatagram(0, controls, flags)
	}
	if err := cmp.Or(err, checkDatagram(n, controls, flags), badControl); err != nil {
		closeAll(files)
		return 0, nil, err
	}
	return n, files, nil
}

func checkDatagram(n, controls, flags int) error {
	switch {
	case flags&unix.MSG_TRUNC != 0:
		return fmt.Errorf("document: %w", ErrTooLarge)
	case flags&unix.MSG_CTRUNC != 0:
		return fmt.Errorf("more files than %d, or than this process may open: %w", MaxFiles, ErrTooLarge)
	case n == 0 && controls == 0:
		return io.EOF
	case n == 0:
		return ErrEmpty
	}
	return nil
}

// filesOf takes ownership of every file that came with a datagram, whatever else did.
func filesOf(control []byte) ([]*os.File, error) {
	if len(control) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(control)
	var files []*os.File
	for i := range messages {
		// Messages that are not rights are an error here and no loss: they carry no files.
		fds, badRights := unix.ParseUnixRights(&messages[i])
		err = cmp.Or(err, badRights)
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // its caller did not get it
	}
}

// Close ends the connection here: the peer reads io.EOF after all that was sent. A Send or Receive that waits returns net.ErrClosed.
func (s *Socket) Close() error { return s.conn.Close() }
