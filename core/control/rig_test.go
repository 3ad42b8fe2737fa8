package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

// TestMain is also the child processes of tests.
func TestMain(m *testing.M) {
	if role := os.Getenv("CONTROL_TEST_ROLE"); role != "" {
		os.Exit(child(role, os.Getenv("CONTROL_TEST_PATH")))
	}
	os.Exit(testkit.Run(m))
}

// child performs a test's task in another process, and prints the result.
func child(role, path string) int {
	switch role {
	case "serve":
		if _, err := Listen(path, Verbs{}, ListenOptions{}); err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println("serving")
		select {}
	case "dial":
		c, err := Dial(context.Background(), path)
		if err == nil {
			err = c.Do(context.Background(), "echo", "x", nil, nil)
		}
		fmt.Println(err)
	case "raw": // does not look at who answers
		conn, err := net.Dial("unix", path)
		if err != nil {
			fmt.Println(err)
			break
		}
		for {
			frame, err := readFrame(conn)
			fmt.Printf("%s %v\n", frame, err)
			if err != nil {
				break
			}
		}
	}
	return 0
}

// folder returns a folder that only this user may enter.
func folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "p")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// serve answers verbs until the test ends.
func serve(t *testing.T, verbs Verbs) (path string, log *testkit.Buffer) {
	t.Helper()
	log = &testkit.Buffer{}
	s, err := Listen(filepath.Join(folder(t), "job.sock"), verbs, ListenOptions{Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return s.Path(), log
}

// echo answers the verb "echo" with the text that it was given.
func echo() Verbs {
	v := Verbs{}
	On(v, "echo", func(_ context.Context, text string, _ Notice) (string, error) { return text, nil })
	return v
}

func dial(t *testing.T, path string) *Client {
	t.Helper()
	c, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// answers reports whether a fresh client gets its answer.
func answers(t *testing.T, path string) {
	t.Helper()
	c := dial(t, path)
	defer c.Close()
	var got string
	if err := c.Do(t.Context(), "echo", "still here", &got, nil); err != nil || got != "still here" {
		t.Errorf("a fresh client got %q, %v", got, err)
	}
}

// raw connects without saying anything.
func raw(t *testing.T, path string) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func write(t *testing.T, conn net.Conn, v any) {
	t.Helper()
	frame, err := encodeFrame(v)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(frame); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, conn net.Conn, v any) {
	t.Helper()
	frame, err := readFrame(conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(frame, v); err != nil {
		t.Fatal(err)
	}
}

// code returns the code of an *Error.
func code(t *testing.T, err error) Code {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no *Error", err)
	}
	return e.Code
}
