package shm

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pair returns both ends of a connection as sockets.
func pair(t testing.TB) (ours, theirs *Socket) {
	t.Helper()
	ours, file, err := Socketpair()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err = NewSocket(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ours.Close()
		theirs.Close()
	})
	return ours, theirs
}

// openFiles returns how many descriptors this process has.
func openFiles(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestSocket_CarriesDocumentsAndFiles(t *testing.T) {
	ours, theirs := pair(t)
	s := create(t, PageSize())
	defer s.Close()
	s.Bytes()[1] = 77
	large := bytes.Repeat([]byte("x"), 128<<10)
	buf := make([]byte, 128<<10)
	for _, c := range []struct {
		doc   []byte
		files []int
	}{{[]byte("{}"), nil}, {[]byte("one"), []int{s.FD()}}, {large, []int{s.FD(), s.FD()}}} {
		if err := ours.Send(c.doc, c.files...); err != nil {
			t.Fatal(err)
		}
		n, files, err := theirs.Receive(buf)
		if err != nil || !bytes.Equal(buf[:n], c.doc) || len(files) != len(c.files) {
			t.Fatalf("Receive = %d bytes, %d files, %v; want %d, %d", n, len(files), err, len(c.doc), len(c.files))
		}
		for _, f := range files {
			if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("flags of a received file = %#x, %v: want close on exec", flags, err)
			}
			got, err := Open(again(t, int(f.Fd())), ReadOnly)
			if err != nil || got.Bytes()[1] != 77 {
				t.Fatalf("a received segment: %v", err)
			}
			if err := errors.Join(got.Close(), f.Close()); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestSocket_TheOtherEndsCloseIsEOF(t *testing.T) {
	ours, theirs := pair(t)
	if err := ours.Send([]byte("last")); err != nil {
		t.Fatal(err)
	}
	if err := ours.Close(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 10)
	if n, _, err := theirs.Receive(buf); n != 4 || err != nil {
		t.Errorf("Receive of what was sent before = %d, %v", n, err)
	}
	if _, _, err := theirs.Receive(buf); !errors.Is(err, io.EOF) {
		t.Errorf("Receive = %v, want io.EOF", err)
	}
	if err := theirs.Send(buf); !errors.Is(err, unix.EPIPE) {
		t.Errorf("Send to nobody = %v, want EPIPE", err)
	}
	if _, _, err := ours.Receive(buf); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Receive after Close = %v, want net.ErrClosed", err)
	}
}

func TestSocket_CloseEndsAReceiveThatWaits(t *testing.T) {
	ours, _ := pair(t)
	ended := make(chan error)
	go func() {
		_, _, err := ours.Receive(make([]byte, 1))
		ended <- err
	}()
	if err := ours.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Receive = %v, want net.ErrClosed", err)
	}
}

func TestSocket_SendGivesUpOnAPeerThatDoesNotRead(t *testing.T) {
	ours, theirs := pair(t)
	ours.SetSendTimeout(10 * time.Millisecond)
	doc := make([]byte, 32<<10)
	sent := 0
	for ; sent < 10_000; sent++ {
		if err := ours.Send(doc); err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("Send = %v, want os.ErrDeadlineExceeded", err)
			}
			break
		}
	}
	for range sent {
		if n, _, err := theirs.Receive(doc); n != len(doc) || err != nil {
			t.Fatalf("Receive = %d, %v", n, err)
		}
	}
	if err := ours.Send(doc); err != nil {
		t.Errorf("Send to a peer that reads again: %v", err)
	}
	if err := ours.SetReceiveDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ours.Receive(doc); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Receive = %v, want os.ErrDeadlineExceeded", err)
	}
}

// sendRaw sends data that Send and the packages below it would refuse, as a hostile peer can.
func sendRaw(t testing.TB, s *Socket, doc, control []byte) {
	t.Helper()
	raw, err := s.conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	part := unix.Iovec{}
	if len(doc) > 0 {
		part.Base = &doc[0]
	}
	part.SetLen(len(doc))
	message := unix.Msghdr{Iov: &part, Iovlen: 1, Control: &control[0]}
	message.SetControllen(len(control))
	var errno unix.Errno
	if err := raw.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&message)), 0)
	}); err != nil || errno != 0 {
		t.Fatal(err, errno)
	}
}

func TestSocket_RefusesLargeDocumentsAndContinues(t *testing.T) {
	ours, theirs := pair(t)
	before := openFiles(t)
	stdin := int(os.Stdin.Fd())
	if err := ours.Send([]byte("x"), stdin, stdin, stdin); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Send of 3 files = %v, want ErrTooLarge", err)
	}
	if err := ours.Send(nil, stdin); !errors.Is(err, ErrEmpty) {
		t.Errorf("Send of nothing = %v, want ErrEmpty", err)
	}
	if err := ours.Send(make([]byte, 8<<20)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Send of 8 MiB = %v, want ErrTooLarge", err)
	}
	hostile := func(doc []byte, files ...int) { sendRaw(t, ours, doc, unix.UnixRights(files...)) }
	buf := make([]byte, 4)
	for _, c := range []struct {
		name string
		send func()
		want error
	}{
		{"a document that does not fit", func() { hostile([]byte("12345"), stdin, stdin) }, ErrTooLarge},
		{"too many files", func() { hostile([]byte("1"), stdin, stdin, stdin, stdin, stdin) }, ErrTooLarge},
		{"files without a document", func() { hostile(nil, stdin) }, ErrEmpty},
	} {
		c.send()
		if n, files, err := theirs.Receive(buf); !errors.Is(err, c.want) || n != 0 || files != nil {
			t.Errorf("%s: Receive = %d, %v, %v; want %v", c.name, n, files, err, c.want)
		}
	}
	if err := ours.Send([]byte("fine"), stdin); err != nil {
		t.Fatal(err)
	}
	n, files, err := theirs.Receive(buf)
	if err != nil || n != 4 || len(files) != 1 {
		t.Fatalf("afterwards Receive = %d, %v, %v", n, files, err)
	}
	files[0].Close()
	if after := openFiles(t); after != before {
		t.Errorf("%d files are open, %d were before", after, before)
	}
}

func TestSocket_WithoutRoomForFilesNothingLeaks(t *testing.T) {
	ours, theirs := pair(t)
	stdin := int(os.Stdin.Fd())
	if err := ours.Send([]byte("x"), stdin, stdin); err != nil {
		t.Fatal(err)
	}
	before := openFiles(t)
	// One more descriptor than there are: the second file has no room.
	highest := again(t, stdin)
	unix.Close(highest)
	var err error
	withLimit(t, unix.RLIMIT_NOFILE, uint64(highest+1), func() { _, _, err = theirs.Receive(make([]byte, 4)) })
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("Receive = %v, want ErrTooLarge", err)
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files are open, %d were before", after, before)
	}
}

func TestNewSocket_RefusesOtherFilesAndClosesThem(t *testing.T) {
	before := openFiles(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{r, w, os.NewFile(uintptr(fds[0]), "stream"), os.NewFile(uintptr(fds[1]), "stream")} {
		if _, err := NewSocket(f); err == nil {
			t.Errorf("NewSocket of %s succeeded", f.Name())
		}
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files are open, %d were before", after, before)
	}
}

func TestDial_ConnectsProcessesOfThisMachine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	if _, err := Dial(path); err == nil {
		t.Fatal("Dial to nothing succeeded")
	}
	l, err := net.ListenUnix(Network, &net.UnixAddr{Name: path, Net: Network})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	server, err := SocketOf(conn)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := client.Send([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 8)
	if n, _, err := server.Receive(buf); err != nil || string(buf[:n]) != "hello" {
		t.Errorf("Receive = %q, %v", buf[:n], err)
	}
}
