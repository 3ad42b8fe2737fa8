package objects

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/objects/wire"
	"github.com/rlhost/rlhost/internal/testkit"

	server "github.com/rlhost/rlhost/plugins/objects"
)

// childVariable makes the test binary a child process: its value is the part and the path of the socket.
const childVariable = "RLHOST_TEST_OBJECTS_CHILD"

// parts are the parts of child processes; their errors go to standard error.
func parts() map[string]func(ctx context.Context, s *Store) error {
	return map[string]func(context.Context, *Store) error{
		"hold": hold, "churn": churn, "writer": pushForEver, "player": play, "integrity": integrity,
		"locker": halfWrite, "scribbler": scribble,
	}
}

func TestMain(m *testing.M) {
	part, path, ok := strings.Cut(os.Getenv(childVariable), " ")
	switch {
	case !ok:
		os.Exit(withDefault(m))
	case part == "serve":
		_, err := server.Start(server.Options{Path: path})
		exit(err)
		fmt.Println("up")
		select {}
	}
	ctx := context.Background()
	s, err := Dial(ctx, path)
	exit(err)
	exit(parts()[part](ctx, s))
}

// withDefault runs the tests with a server at the default path, which examples dial.
func withDefault(m *testing.M) int {
	dir, err := os.MkdirTemp("", "rlhost-objects-")
	exit(err)
	defer os.RemoveAll(dir)
	exit(os.Setenv(wire.PathVariable, filepath.Join(dir, "objects.sock")))
	host, err := server.Start(server.Options{})
	exit(err)
	defer host.Close()
	return m.Run()
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// process is a child process.
type process struct {
	*exec.Cmd
	out io.Reader
	err strings.Builder
}

func run(t testing.TB, part, path string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0])}
	p.Env = append(os.Environ(), childVariable+"="+part+" "+path)
	p.Stderr = &p.err
	var err error
	if p.out, err = p.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// says waits until the child has printed a word.
func (p *process) says(t testing.TB, want string) {
	t.Helper()
	got := make([]byte, len(want)+1)
	if _, err := io.ReadFull(p.out, got); err != nil || string(got) != want+"\n" {
		t.Fatalf("the child says %q, %v, want %q: %s", got, err, want, p.err.String())
	}
}

func (p *process) ends(t testing.TB) {
	t.Helper()
	if err := p.Wait(); err != nil {
		t.Errorf("child: %v: %s", err, p.err.String())
	}
}

func (p *process) kill(t testing.TB) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = p.Wait() // killed
}

func serve(t testing.TB) *server.Server {
	t.Helper()
	s, err := server.Start(server.Options{Path: socketPath(t), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
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

func socketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rlhost-objects-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "objects.sock")
}

func dial(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func create(t testing.TB, s *Store, name string, capacity, bytes int) {
	t.Helper()
	if err := s.Create(t.Context(), name, Config{Capacity: capacity, Tracks: []Track{{Bytes: bytes}}}); err != nil {
		t.Fatal(err)
	}
}

// settled waits until an object has no claims but at most spares spare blocks, because the death of a client is noticed
// later, and returns the object's state. It fails the test if that does not happen.
func settled(t testing.TB, s *Store, name string, spares int) Stat {
	t.Helper()
	var stat Stat
	testkit.Until(t, name+" has no claims", func() bool {
		var err error
		if stat, err = s.Stat(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		return stat.Claims == stat.Spares && stat.Spares <= spares && stat.Writing == 0 && stat.Kept == 0 && stat.Waiting == 0
	}, &stat)
	return stat
}

// stamp fills a block with a number, so that a torn one shows.
func stamp(b []byte, n uint64) {
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], n+uint64(i))
	}
}

func torn(b []byte) error {
	n := binary.LittleEndian.Uint64(b)
	for i := 0; i+8 <= len(b); i += 8 {
		if got := binary.LittleEndian.Uint64(b[i:]); got != n+uint64(i) {
			return fmt.Errorf("torn at byte %d: %d, want %d", i, got, n+uint64(i))
		}
	}
	return nil
}

// push pushes an array.
func push[T Element](t *testing.T, s *Store, name string, data []T) {
	t.Helper()
	if _, err := Push(t.Context(), s, name, data); err != nil {
		t.Fatal(err)
	}
}

// pop pops an entry, which the caller releases.
func pop(t *testing.T, s *Store, name string) *Entry {
	t.Helper()
	e, err := s.Pop(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// popWhole pops an entry of stamped bytes, and ends the test if it is torn.
func popWhole(t *testing.T, s *Store, name string) {
	t.Helper()
	e := pop(t, s, name)
	if err := errors.Join(torn(e.Bytes(0)), e.Release()); err != nil {
		t.Fatal(err)
	}
}
