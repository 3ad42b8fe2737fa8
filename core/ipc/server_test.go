package ipc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// childVariable makes the test binary serve at that path.
const childVariable = "RLHOST_TEST_IPC_CHILD"

var errEnded = errors.New("the end")

func TestMain(m *testing.M) {
	path := os.Getenv(childVariable)
	if path == "" {
		os.Exit(m.Run())
	}
	if _, err := Listen(config(path)); err != nil {
		panic(err)
	}
	fmt.Println("serving")
	select {}
}

// config is for a server that says "hello" to clients, or the reason of a refusal.
func config(path string) Config {
	return Config{
		Name: "test", Path: path, Network: "unixpacket", Sweep: "job-*.sock", Clients: 2, Ended: errEnded, Log: slog.New(slog.DiscardHandler),
		Serve: func(_ context.Context, c *Conn) {
			_, _ = c.Write([]byte("hello")) // it may have gone
			_, _ = c.Read(make([]byte, 1))  // until it goes
		},
		Refuse: func(c *Conn, why error) { _, _ = c.Write([]byte(why.Error())) },
	}
}

// socketPath returns a path in a folder that only this user may enter, short enough for a socket.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ipc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "p", "s")
}

func listen(t *testing.T, c Config) *Server {
	t.Helper()
	s, err := Listen(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return s
}

func dial(t *testing.T, s *Server) net.Conn {
	t.Helper()
	conn, err := net.Dial(s.config.Network, s.Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// said returns a server's first words.
func said(conn net.Conn) string {
	buf := make([]byte, 1000)
	n, err := conn.Read(buf)
	if err != nil {
		return err.Error()
	}
	return string(buf[:n])
}

// another serves at a path in another process, and kills it when the test ends.
func another(t *testing.T, path string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	t.Cleanup(kill)
	if _, err := io.ReadFull(out, make([]byte, len("serving\n"))); err != nil {
		t.Fatal(err)
	}
	return kill
}

func TestListen_InAPrivateFolder(t *testing.T) {
	s := listen(t, config(socketPath(t)))
	for path, want := range map[string]fs.FileMode{s.Path(): 0o600, filepath.Dir(s.Path()): 0o700, s.Path() + ".lock": 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want mode %#o", path, info.Mode(), err, want)
		}
	}
	for _, mode := range []fs.FileMode{0o710, 0o750, 0o755, 0o701} {
		open := t.TempDir()
		if err := os.Chmod(open, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Listen(config(filepath.Join(open, "s"))); err == nil || !strings.Contains(err.Error(), "chmod 700") {
			t.Errorf("a folder of mode %#o: %v, want an error that says what to do", mode, err)
		}
	}
	file := filepath.Join(filepath.Dir(s.Path()), "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(config(file)); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("over a file: %v", err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "mine" {
		t.Errorf("the file is now %q, %v", data, err)
	}
}

func TestListen_OnceAtOnePath(t *testing.T) {
	s := listen(t, config(socketPath(t)))
	if _, err := Listen(config(s.Path())); !errors.Is(err, ErrInUse) {
		t.Errorf("a second server = %v, want ErrInUse", err)
	}
	if got := said(dial(t, s)); got != "hello" {
		t.Errorf("the first says %q", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Dir(s.Path())); err != nil || len(left) != 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
	if err := s.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second Close = %v, want net.ErrClosed", err)
	}
	listen(t, config(s.Path()))
}

func TestListen_WhereAKilledProcessServed(t *testing.T) {
	path := socketPath(t)
	for range 3 {
		kill := another(t, path)
		if _, err := Listen(config(path)); !errors.Is(err, ErrInUse) {
			t.Fatalf("while it lives: %v, want ErrInUse", err)
		}
		conn, err := net.Dial("unixpacket", path)
		if err != nil {
			t.Fatal(err)
		}
		if got := said(conn); got != "hello" {
			t.Errorf("it says %q", got)
		}
		kill()
		if got := said(conn); got != "EOF" && !strings.Contains(got, "reset") {
			t.Errorf("killed, it says %q", got)
		}
		_ = conn.Close()
	}
	if got := said(dial(t, listen(t, config(path)))); got != "hello" {
		t.Errorf("the next says %q", got)
	}
}

func TestListen_SweepsWhatKilledProcessesHaveLeft(t *testing.T) {
	dir := filepath.Dir(socketPath(t))
	at := func(name string) string { return filepath.Join(dir, name) }
	another(t, at("job-killed.sock"))()
	another(t, at("killed.sock"))()
	another(t, at("job-alive.sock"))
	for _, name := range []string{"job-other.sock", "other.lock"} {
		if err := os.WriteFile(at(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	listen(t, config(at("job-new.sock")))
	var left []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := "job-alive.sock job-alive.sock.lock job-new.sock job-new.sock.lock job-other.sock killed.sock killed.sock.lock other.lock"
	if strings.Join(left, " ") != want {
		t.Errorf("left: %v, want %s", left, want)
	}
}

func TestListen_ManyStartAtOnceAfterOthersWereKilled(t *testing.T) {
	dir := filepath.Dir(socketPath(t))
	at := func(i int) string { return filepath.Join(dir, fmt.Sprintf("job-%d.sock", i)) }
	for range 5 {
		for i := range 4 {
			another(t, at(i))()
		}
		var all sync.WaitGroup
		servers := make([]*Server, 4)
		for i := range servers {
			all.Go(func() {
				var err error
				if servers[i], err = Listen(config(at(i))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, s := range servers {
			if s == nil {
				continue
			}
			if got := said(dial(t, s)); got != "hello" {
				t.Errorf("%s says %q", s.Path(), got)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestClients_AreBounded(t *testing.T) {
	var log bytes.Buffer
	c := config(socketPath(t))
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	s := listen(t, c)
	first, second := dial(t, s), dial(t, s)
	if a, b := said(first), said(second); a != "hello" || b != "hello" || s.Clients() != 2 {
		t.Errorf("two clients heard %q and %q, and %d are served", a, b, s.Clients())
	}
	if got := said(dial(t, s)); got != ErrFull.Error() {
		t.Errorf("a third heard %q, want %v", got, ErrFull)
	}
	_ = first.Close()
	for s.Clients() == 2 {
		runtime.Gosched()
	}
	if got := said(dial(t, s)); got != "hello" {
		t.Errorf("after one left the next heard %q", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "test: client refused") {
		t.Errorf("the log: %s", log.String())
	}
}

// A client that waits for the server to be full must not make it hold connections without end.
func TestRefused_AreBoundedAndHoldUpNoClose(t *testing.T) {
	c := config(socketPath(t))
	c.Clients = 0
	c.Refuse = func(c *Conn, _ error) { _, _ = c.Read(make([]byte, 1)) } // until it goes
	s := listen(t, c)
	for range maxRefusals {
		dial(t, s)
	}
	if got := said(dial(t, s)); got != "EOF" {
		t.Errorf("one more heard %q, want EOF", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestMakeRoom_EndsTheOneIdleLongestAndNoneThatIsBusy(t *testing.T) {
	c := config(socketPath(t))
	c.MakeRoom = true
	occupied := make(chan bool, 3)
	c.Serve = func(ctx context.Context, conn *Conn) {
		_, _ = conn.Write([]byte("hello"))
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			return
		}
		ok := conn.Occupy(true)
		occupied <- ok
		if !ok {
			return
		}
		<-ctx.Done()
		_, _ = conn.Write([]byte(context.Cause(ctx).Error()))
		if conn.Occupy(false) {
			t.Error("a server that is closed goes on")
		}
	}
	s := listen(t, c)
	busy, idle := dial(t, s), dial(t, s)
	_, _ = said(busy), said(idle)
	if _, err := busy.Write([]byte("x")); err != nil || !<-occupied {
		t.Fatalf("a client cannot ask: %v", err)
	}
	next := dial(t, s)
	if a, b := said(next), said(idle); a != "hello" || b != "EOF" {
		t.Errorf("the next heard %q, the idle one %q; want hello, EOF", a, b)
	}
	if _, err := next.Write([]byte("x")); err != nil || !<-occupied {
		t.Fatalf("the next cannot ask: %v", err)
	}
	if got := said(dial(t, s)); got != ErrFull.Error() {
		t.Errorf("with all busy, one more heard %q, want %v", got, ErrFull)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if a, b := said(busy), said(next); a != errEnded.Error() || b != errEnded.Error() {
		t.Errorf("the end was told as %q and %q, want %v", a, b, errEnded)
	}
}

func TestCheckPeer_TellsWhoIsThere(t *testing.T) {
	conn := dial(t, listen(t, config(socketPath(t)))).(*net.UnixConn)
	if peer, err := CheckPeer(conn); err != nil || peer != (Peer{UID: os.Geteuid(), PID: os.Getpid()}) {
		t.Errorf("got %+v, %v", peer, err)
	}
}
