package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/objects/wire"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/objects/store"
)

// childVariable makes the test binary connect to the socket at that path, and print the result.
const childVariable = "RLHOST_TEST_OBJECTS_CHILD"

func TestMain(m *testing.M) {
	path := os.Getenv(childVariable)
	if path == "" {
		os.Exit(m.Run())
	}
	_, err := greet(path)
	fmt.Println(err)
}

// socketPath returns a path in a new folder, short enough for a socket.
func socketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rlhost-objects-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "private", "objects.sock")
}

func start(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Path == "" {
		o.Path = socketPath(t)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("Close = %v", err)
		}
	})
	return s
}

// raw is a client that sends hand-made frames.
type raw struct {
	*shm.Socket
	seq uint32
}

// greet connects and says hello.
func greet(path string) (*raw, error) {
	socket, err := shm.Dial(path)
	if err != nil {
		return nil, err
	}
	r := &raw{Socket: socket}
	_, err = r.ask(wire.Request{Op: wire.OpHello, Index: wire.Version, Name: "test"})
	return r, err
}

func connect(t testing.TB, path string) *raw {
	t.Helper()
	r, err := greet(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// ask sends a request and returns its reply.
func (r *raw) ask(q wire.Request) (*wire.Reply, error) {
	r.seq++
	q.Seq = r.seq
	frame, err := wire.AppendRequest(nil, &q)
	if err != nil {
		return nil, err
	}
	if err := r.Send(frame); err != nil {
		return nil, err
	}
	return r.next()
}

func (r *raw) next() (*wire.Reply, error) {
	if err := r.SetReceiveDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return nil, err
	}
	buf := make([]byte, wire.MaxFrame)
	n, files, err := r.Receive(buf)
	for _, f := range files {
		_ = f.Close()
	}
	if err != nil {
		return nil, err
	}
	var reply wire.Reply
	if err := wire.ParseReply(&reply, buf[:n]); err != nil {
		return nil, err
	}
	return &reply, reply.Err()
}

func (r *raw) must(t testing.TB, q wire.Request) *wire.Reply {
	t.Helper()
	reply, err := r.ask(q)
	if err != nil {
		t.Fatalf("operation %d: %v", q.Op, err)
	}
	return reply
}

func (r *raw) create(t testing.TB, name string, capacity int) uint32 {
	t.Helper()
	c := wire.Config{Capacity: capacity, Tracks: []wire.Track{{Bytes: 64}}}
	return r.must(t, wire.Request{Op: wire.OpCreate, Name: name, Config: c}).Object
}

func TestServe_EndsWithItsContext(t *testing.T) {
	path := socketPath(t)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- Serve(ctx, Options{Path: path}) }()
	stop()
	if err := <-over; err != nil {
		t.Errorf("Serve = %v", err)
	}
}

func TestAnotherUser_IsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be somebody else")
	}
	var log bytes.Buffer
	s := start(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	asNobody := func() string {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childVariable+"="+s.Path())
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		binary := filepath.Join(os.TempDir(), filepath.Base(filepath.Dir(filepath.Dir(s.Path())))+".test")
		copyFile(t, os.Args[0], binary)
		cmd.Path, cmd.Dir = binary, "/"
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if got := asNobody(); !strings.Contains(got, "permission denied") {
		t.Errorf("another user got through the folder: %s", got)
	}
	for path, mode := range map[string]os.FileMode{
		s.Path(): 0o777, filepath.Dir(s.Path()): 0o755, filepath.Dir(filepath.Dir(s.Path())): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if got := asNobody(); !strings.Contains(got, "these objects are another user's: user 0 is at this end, user 65534 at the other") {
		t.Errorf("with the folder open, another user got: %s", got)
	}
	if s.Clients() != 0 {
		t.Errorf("%d clients are connected, want none", s.Clients())
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(to) })
}

func TestGarbage_DisconnectsItsSenderAlone(t *testing.T) {
	s := start(t, Options{})
	good := connect(t, s.Path())
	id := good.create(t, "x", 4)
	for _, frame := range [][]byte{{0}, make([]byte, wire.HeadBytes), bytes.Repeat([]byte{0xff}, 1000), bytes.Repeat([]byte{7}, wire.MaxFrame)} {
		bad := connect(t, s.Path())
		bad.must(t, wire.Request{Op: wire.OpNew, Object: id})
		if err := bad.Send(frame); err != nil {
			t.Fatal(err)
		}
		if _, err := bad.next(); !errors.Is(err, wire.ErrFrame) {
			t.Errorf("the answer to garbage is %v, want ErrFrame", err)
		}
		if _, err := bad.next(); !errors.Is(err, io.EOF) {
			t.Errorf("after garbage comes %v, want io.EOF", err)
		}
	}
	for range 4 { // the other clients' claims are released
		good.must(t, wire.Request{Op: wire.OpNew, Object: id, Wait: 10 * time.Second})
	}
}

func TestHello_ComesFirstAndNamesTheVersions(t *testing.T) {
	s := start(t, Options{})
	for _, q := range []wire.Request{{Op: wire.OpList}, {Op: wire.OpHello, Index: 99}} {
		socket, err := shm.Dial(s.Path())
		if err != nil {
			t.Fatal(err)
		}
		r := &raw{Socket: socket}
		if _, err := r.ask(q); !errors.Is(err, wire.ErrRequest) {
			t.Errorf("operation %d first = %v, want ErrRequest", q.Op, err)
		}
		if _, err := r.next(); !errors.Is(err, io.EOF) {
			t.Errorf("then comes %v, want io.EOF", err)
		}
		_ = r.Close()
	}
}

func TestClients_AreBounded(t *testing.T) {
	s := start(t, Options{Sessions: 2})
	a := connect(t, s.Path())
	connect(t, s.Path())
	if _, err := greet(s.Path()); !errors.Is(err, wire.ErrLimit) {
		t.Errorf("a third client = %v, want ErrLimit", err)
	}
	_ = a.Close()
	testkit.Until(t, "the server notices that the client has gone", func() bool { return s.Clients() == 1 })
	connect(t, s.Path())
}

func TestClientThatDoesNotRead_IsDisconnectedAndHoldsUpNobody(t *testing.T) {
	s := start(t, Options{})
	good := connect(t, s.Path())
	id := good.create(t, "x", 4)
	deaf := connect(t, s.Path())
	frame, err := wire.AppendRequest(nil, &wire.Request{Op: wire.OpStat, Object: id})
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		err = deaf.Send(frame)
	}
	good.must(t, wire.Request{Op: wire.OpStat, Object: id})
	testkit.Until(t, "the server drops the client", func() bool { return s.Clients() == 1 }, "the last Send:", err)
}

func TestFilesThatAClientSends_AreClosed(t *testing.T) {
	s := start(t, Options{})
	r := connect(t, s.Path())
	before := openFiles(t)
	frame, err := wire.AppendRequest(nil, &wire.Request{Op: wire.OpList})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := r.Send(frame, 0, 1); err != nil {
			t.Fatal(err)
		}
		if _, err := r.next(); err != nil {
			t.Fatal(err)
		}
	}
	if after := openFiles(t); after > before+2 {
		t.Errorf("%d files are open, %d before", after, before)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func TestBatch_ThatDoesNotFitAReplyIsGivenBack(t *testing.T) {
	s := start(t, Options{})
	r := connect(t, s.Path())
	c := wire.Config{Capacity: 1, Tracks: make([]wire.Track, wire.MaxTracks)}
	values := make([]wire.Value, wire.MaxTracks)
	for i := range c.Tracks {
		c.Tracks[i].Bytes = 8
		values[i] = wire.ValueOf(wire.Bytes, 1, 1, 1, 1, 1, 1, 1, 1)
	}
	id := r.must(t, wire.Request{Op: wire.OpCreate, Name: "x", Config: c}).Object
	w := r.must(t, wire.Request{Op: wire.OpNew, Object: id})
	r.must(t, wire.Request{Op: wire.OpCommit, Claim: w.Claim, Values: values})
	if _, err := r.ask(wire.Request{Op: wire.OpBatch, Object: id, Indices: make([]uint64, 1000)}); !errors.Is(err, wire.ErrLimit) {
		t.Errorf("a thousand entries at once = %v, want ErrLimit", err)
	}
	b := r.must(t, wire.Request{Op: wire.OpBatch, Flags: wire.Range, Object: id, Most: 1 << 30})
	r.must(t, wire.Request{Op: wire.OpRelease, Claim: b.Claim})
	if stat, err := s.Store().Stat(id); err != nil || stat.Claims != 0 {
		t.Errorf("%d claims are left, %v", stat.Claims, err)
	}
}

func TestCancel_EndsAWaitAndKeepsTheEntry(t *testing.T) {
	s := start(t, Options{})
	r := connect(t, s.Path())
	id := r.create(t, "x", 1)
	pop, err := wire.AppendRequest(nil, &wire.Request{Op: wire.OpPop, Seq: 77, Object: id, Wait: wire.Forever})
	if err != nil {
		t.Fatal(err)
	}
	cancel, err := wire.AppendRequest(nil, &wire.Request{Op: wire.OpCancel, Index: 77})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second cancels a finished request
		if err := errors.Join(r.Send(pop), r.Send(cancel), r.Send(cancel)); err != nil {
			t.Fatal(err)
		}
		if reply, err := r.next(); !errors.Is(err, wire.ErrCanceled) || reply.Seq != 77 {
			t.Errorf("the pop ended with %v, want ErrCanceled", err)
		}
	}
	w := r.must(t, wire.Request{Op: wire.OpNew, Object: id})
	r.must(t, wire.Request{Op: wire.OpCommit, Claim: w.Claim, Values: []wire.Value{wire.ValueOf(wire.Bytes, 1)}})
	r.must(t, wire.Request{Op: wire.OpPop, Object: id})
}

// Whatever a client sends, the server keeps running, and releases all claims when the client disconnects.
func FuzzClient(f *testing.F) {
	for _, q := range []wire.Request{
		{Op: wire.OpNew, Object: 1}, {Op: wire.OpSpare, Object: 1}, {Op: wire.OpPop, Object: 1, Wait: wire.Forever},
		{Op: wire.OpCommit, Claim: 1, Values: []wire.Value{wire.ValueOf(wire.Bytes, 8)}},
		{Op: wire.OpBatch, Object: 1, Indices: []uint64{0, 0}}, {Op: wire.OpDelete, Object: 1, Flags: wire.Revoke},
		{Op: wire.OpCreate, Name: "y", Config: wire.Config{Capacity: 1, Tracks: []wire.Track{{Bytes: 1}}}},
		{Op: wire.OpOpen, Flags: wire.Write, Name: "x"}, {Op: wire.OpRelease, Claim: 2, Flags: wire.OneWay}, {Op: wire.OpCancel, Index: 1},
	} {
		frame, err := wire.AppendRequest(nil, &q)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame, frame)
	}
	s := start(f, Options{Limits: store.Limits{Objects: 8, Bytes: 1 << 20}})
	good := connect(f, s.Path())
	id := good.create(f, "x", 4)
	f.Fuzz(func(t *testing.T, a, b []byte) {
		bad := connect(t, s.Path())
		for _, frame := range [][]byte{a, b} {
			if len(frame) > 0 {
				_ = bad.Send(frame) // the server may have disconnected
			}
		}
		_ = bad.Close()
		if len(a) > 0 && a[0] == byte(wire.OpRemove) || len(b) > 0 && b[0] == byte(wire.OpRemove) {
			t.Skip() // it may remove the object that the check needs
		}
		good.must(t, wire.Request{Op: wire.OpStat, Object: id})
	})
}
