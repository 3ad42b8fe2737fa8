package shm

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const network = "unixpacket" // SOCK_SEQPACKET: keeps the bounds of what is sent, and tells when the other end closes

// Socket is one end of a connection within this machine that carries documents with files attached. Send, Receive
// and Close may be called from different goroutines at the same time; two Receives take turns.
type Socket struct {
	conn *net.UnixConn

	send    sync.Mutex // one Send at a time, because each sets the deadline that is the connection's
	timeout time.Duration
}

// Socketpair returns the two ends of a new connection: one to use here, one to hand to a child process, whose it
// becomes. Close the file once the child runs, or its death will not be seen here.
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

// NewSocket makes a Socket of an open file, one that was inherited for instance. It takes the file over, also if it
// returns an error.
func NewSocket(f *os.File) (*Socket, error) {
	conn, err := net.FileConn(f)
	if err := errors.Join(err, f.Close()); err != nil {
		if conn != nil {
			_ = conn.Close() // the error that matters is the first
		}
		return nil, fmt.Errorf("socket of %s: %w", f.Name(), err)
	}
	c, ok := conn.(*net.UnixConn)
	if !ok || conn.LocalAddr().Network() != network {
		_ = conn.Close() // the error that matters is this one
		return nil, fmt.Errorf("socket of %s: a %s socket, want %s", f.Name(), conn.LocalAddr().Network(), network)
	}
	return newSocket(c), nil
}

// Dial connects to the socket that a Listener of this machine has at a path.
func Dial(path string) (*Socket, error) {
	conn, err := net.DialUnix(network, nil, &net.UnixAddr{Name: path, Net: network})
	if err != nil {
		return nil, err
	}
	return newSocket(conn), nil
}

func newSocket(conn *net.UnixConn) *Socket { return &Socket{conn: conn, timeout: SendTimeout} }

// SetSendTimeout says how long a Send may wait for a peer that does not read; 0 means that it does not wait.
func (s *Socket) SetSendTimeout(d time.Duration) {
	s.send.Lock()
	defer s.send.Unlock()
	s.timeout = max(d, 0)
}

// SetReceiveDeadline says when a Receive, the one that waits now included, gives up with os.ErrDeadlineExceeded. The
// zero time means never.
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
	// A deadline that has passed would refuse at once, even if there is room.
	if err := s.conn.SetWriteDeadline(time.Now().Add(max(s.timeout, time.Millisecond))); err != nil {
		return err
	}
	_, _, err := s.conn.WriteMsgUnix(doc, rights, nil)
	if errors.Is(err, unix.EMSGSIZE) {
		return fmt.Errorf("%d bytes: %w: %w", len(doc), ErrTooLarge, err)
	}
	return err
}

// Receive waits for the next document, copies it to buf and returns its length and the files that came with it,
// which are closed on exec and belong to the caller. io.EOF: the other end is closed. A document that does not fit
// or a datagram with more than MaxFiles files is ErrTooLarge and lost, its files closed; the connection goes on.
// After Close, also a concurrent one, the error is net.ErrClosed.
func (s *Socket) Receive(buf []byte) (int, []*os.File, error) {
	control := make([]byte, unix.CmsgSpace(MaxFiles*4))
	n, controls, flags, _, err := s.conn.ReadMsgUnix(buf, control)
	files, badControl := filesOf(control[:max(controls, 0)])
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

// filesOf takes over every file that came with a datagram, whatever else did.
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
		_ = f.Close() // nobody was told of it
	}
}

// PeerUID returns the user that the process at the other end ran as when it connected, or when it made the pair.
func (s *Socket) PeerUID() (uint32, error) {
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var optErr error
	err = raw.Control(func(fd uintptr) {
		cred, optErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := cmp.Or(err, optErr); err != nil {
		return 0, fmt.Errorf("user of the peer: %w", err)
	}
	return cred.Uid, nil
}

// Close ends the connection here: the peer reads io.EOF once it has read what was sent. A Send or Receive that
// waits returns net.ErrClosed.
func (s *Socket) Close() error { return s.conn.Close() }

// Listener waits at a path for processes of this machine.
type Listener struct{ listener *net.UnixListener }

// Listen makes a socket at a path that does not exist yet. Who may connect is who may enter its folder: make that
// 0700. Close removes the path.
func Listen(path string) (*Listener, error) {
	l, err := net.ListenUnix(network, &net.UnixAddr{Name: path, Net: network})
	if err != nil {
		return nil, err
	}
	return &Listener{l}, nil
}

// Accept waits for the next process and returns the connection with it. After Close, also a concurrent one, the
// error is net.ErrClosed.
func (l *Listener) Accept() (*Socket, error) {
	conn, err := l.listener.AcceptUnix()
	if err != nil {
		return nil, err
	}
	return newSocket(conn), nil
}

// Close removes the path and ends an Accept that waits. Connections that were accepted stay.
func (l *Listener) Close() error { return l.listener.Close() }
