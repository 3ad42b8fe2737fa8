package control

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlhost/rlhost/internal/testkit"
)

func TestHostile_GarbageEndsItsSenderAlone(t *testing.T) {
	path, _ := serve(t, echo())
	good := dial(t, path)
	length := func(n uint32, body string) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, n), body...)
	}
	frames := [][]byte{
		length(0, ""), length(MaxFrame+1, "{}"), length(1<<31, ""), length(1<<32-1, "x"),
		length(3, "{}"), length(2, "{}{}"), length(4, "null"), length(2, "[]"), length(4, `"a"b`),
		length(22, `{"rlhost_control": -1}`), bytes.Repeat([]byte{0xff}, 1000), []byte("GET / HTTP/1.1\r\n\r\n"),
	}
	for _, frame := range frames {
		bad := raw(t, path)
		if _, err := bad.Write(frame); err != nil {
			t.Fatal(err)
		}
		if err := bad.(*net.UnixConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, bad); err != nil && !errors.Is(err, io.EOF) {
			t.Logf("%q: %v", frame, err) // the server hung up with bytes unread
		}
		after := raw(t, path)
		write(t, after, hello{Protocol})
		if _, err := after.Write(frame); err != nil {
			t.Fatal(err)
		}
		_ = after.Close()
		var got string
		if err := good.Do(t.Context(), "echo", "x", &got, nil); err != nil || got != "x" {
			t.Fatalf("after %q another client got %q, %v", frame, got, err)
		}
	}
}

func TestHostile_OtherVersionsGetBothVersions(t *testing.T) {
	path, _ := serve(t, echo())
	conn := raw(t, path)
	if _, err := conn.Write(append(binary.LittleEndian.AppendUint32(nil, 34), `{"rlhost_control":9,"more":[1,2] }`...)); err != nil {
		t.Fatal(err)
	}
	var h hello
	var a answer
	read(t, conn, &h)
	read(t, conn, &a)
	if h.Protocol != Protocol || a.Error == nil || a.Error.Code != CodeProtocol || a.Error.Help == "" ||
		a.Error.Reason != "the client speaks version 9 of the control protocol, this job version 1" {
		t.Errorf("hello %+v, answer %+v", h, a.Error)
	}
	other := filepath.Join(folder(t), "s")
	l, err := net.Listen("unix", other)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	say := func(v any) {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		frame, _ := encodeFrame(v)
		_, _ = conn.Write(frame)
		_, _ = io.Copy(io.Discard, conn)
	}
	for _, v := range []any{hello{2}, "hello", map[string]int{}} {
		go say(v)
		if _, err := Dial(t.Context(), other); code(t, err) != CodeProtocol {
			t.Errorf("a job that says %v: %v", v, err)
		}
	}
}

func TestHostile_ARequestBeforeTheAnswerEndsBoth(t *testing.T) {
	causes := make(chan error, 1)
	v := echo()
	On(v, "wait", func(ctx context.Context, _ any, _ Notice) (any, error) {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil, nil
	})
	path, _ := serve(t, v)
	conn := raw(t, path)
	write(t, conn, hello{Protocol})
	write(t, conn, ask{Verb: "wait"})
	write(t, conn, ask{Verb: "wait"})
	if err := <-causes; !errors.Is(err, ErrFrame) {
		t.Errorf("the request ended with %v", err)
	}
	var h hello
	var a answer
	read(t, conn, &h)
	read(t, conn, &a)
	if a.Error == nil || a.Error.Code != CodeBad {
		t.Errorf("answer %+v", a)
	}
	if _, err := readFrame(conn); err == nil {
		t.Error("the connection goes on")
	}
}

func TestHostile_ManyConnectionsLockNoClientOut(t *testing.T) {
	path, _ := serve(t, echo())
	early := dial(t, path)
	for i := range 2000 {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		switch i % 4 { // silent, half a hello, a hello and half a request, gone
		case 1:
			_, _ = conn.Write([]byte{20, 0})
		case 2:
			frame, _ := encodeFrame(hello{Protocol})
			_, _ = conn.Write(append(frame, 9, 0, 0, 0, '{'))
		case 3:
			_ = conn.Close()
		}
		if i%500 == 499 {
			answers(t, path)
		}
	}
	if err := early.Do(t.Context(), "echo", "x", nil, nil); err == nil {
		t.Log("the oldest idle client is still served")
	}
	answers(t, path)
}

func TestHostile_RequestsUnderWayAreNotEndedForNewcomers(t *testing.T) {
	release := make(chan struct{})
	begun := make(chan struct{}, defaultClients)
	v := echo()
	On(v, "wait", func(ctx context.Context, _ any, _ Notice) (bool, error) {
		begun <- struct{}{}
		<-release
		return ctx.Err() == nil, nil
	})
	path, _ := serve(t, v)
	results := make(chan error, defaultClients)
	for range defaultClients {
		c := dial(t, path)
		go func() {
			var undisturbed bool
			err := c.Do(context.Background(), "wait", nil, &undisturbed, nil)
			if err == nil && !undisturbed {
				err = errors.New("cancelled")
			}
			results <- err
		}()
		<-begun
	}
	if c, err := Dial(t.Context(), path); err == nil {
		err = c.Do(t.Context(), "echo", "x", nil, nil)
		if code(t, err) != CodeBusy {
			t.Errorf("one client too many got %v", err)
		}
		_ = c.Close()
	}
	close(release)
	for range defaultClients {
		if err := <-results; err != nil {
			t.Errorf("a request under way: %v", err)
		}
	}
	testkit.Until(t, "a fresh client is answered", func() bool { // a request counts a moment longer than its client waits
		c := dial(t, path)
		defer c.Close()
		err := c.Do(t.Context(), "echo", "x", nil, nil)
		if err != nil && code(t, err) != CodeBusy {
			t.Fatal(err)
		}
		return err == nil
	})
}

// pair returns a session over a pipe and its client's end, in a bubble: its time limits pass at once.
func pair(verbs Verbs) (client net.Conn, ended chan struct{}) {
	client, server := net.Pipe()
	c := newSession(context.Background(), verbs, slog.New(slog.DiscardHandler), server, func(bool) bool { return true })
	ended = make(chan struct{})
	go func() {
		c.serve()
		close(ended)
	}()
	return client, ended
}

func TestSlow_ClientsAreHungUpOn(t *testing.T) {
	say := func(conn net.Conn, vs ...any) {
		for _, v := range vs {
			frame, _ := encodeFrame(v)
			_, _ = conn.Write(frame)
		}
	}
	cases := []struct {
		name   string
		speak  func(conn net.Conn)
		within time.Duration
	}{
		{"says nothing", func(net.Conn) {}, frameTime},
		{"begins a hello", func(c net.Conn) { _, _ = c.Write([]byte{5, 0}) }, frameTime},
		{"announces much", func(c net.Conn) { _, _ = c.Write([]byte{0, 0, 0, 1, '{'}) }, frameTime},
		{"asks for nothing", func(c net.Conn) { say(c, hello{Protocol}) }, idleTime},
		{"begins a request", func(c net.Conn) { say(c, hello{Protocol}); _, _ = c.Write([]byte{5, 0, 0, 0, '{'}) }, frameTime},
		{"asks once", func(c net.Conn) { say(c, hello{Protocol}, ask{"echo", []byte(`"x"`)}) }, idleTime},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, ended := pair(echo())
				defer conn.Close()
				go func() { _, _ = io.Copy(io.Discard, conn) }()
				start := time.Now()
				c.speak(conn)
				<-ended
				if took := time.Since(start); took != c.within {
					t.Errorf("hung up after %v, want %v", took, c.within)
				}
			})
		})
	}
}

func TestSlow_AClientThatDoesNotReadEndsItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := Verbs{}
		var sent int
		var failed, cause error
		On(v, "flood", func(ctx context.Context, _ any, notice Notice) (any, error) {
			for failed = notice(sent); failed == nil; failed = notice(sent) {
				sent++
			}
			cause = context.Cause(ctx)
			return nil, failed
		})
		conn, ended := pair(v)
		defer conn.Close()
		frame, _ := readFrame(conn)
		if err := checkHello(frame, "job", "test"); err != nil {
			t.Error(err)
		}
		write(t, conn, hello{Protocol})
		write(t, conn, ask{Verb: "flood"})
		start := time.Now()
		<-ended
		if took := time.Since(start); took != frameTime || failed == nil || !errors.Is(cause, errGone) {
			t.Errorf("after %v and %d notices: %v, cause %v", took, sent, failed, cause)
		}
	})
}

// FuzzFrames gives a session arbitrary input of a client. It must end, and answer with frames.
func FuzzFrames(f *testing.F) {
	frames := func(vs ...any) (all []byte) {
		for _, v := range vs {
			frame, err := encodeFrame(v)
			if err != nil {
				f.Fatal(err)
			}
			all = append(all, frame...)
		}
		return all
	}
	f.Add(frames(hello{Protocol}, ask{"echo", []byte(`"x"`)}))
	f.Add(frames(hello{Protocol}, ask{"none", nil}, ask{"echo", []byte(`{"a":1}`)}))
	f.Add(frames(hello{Protocol + 1}))
	f.Add(frames(hello{Protocol}, answer{Error: &Error{}}))
	f.Add([]byte{2, 0, 0, 0, '{', '}'})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		conn, ended := pair(echo())
		heard := make(chan []byte)
		go func() {
			defer close(heard)
			for frame, err := readFrame(conn); err == nil; frame, err = readFrame(conn) {
				heard <- frame
			}
		}()
		go func() {
			_, _ = conn.Write(data) // until the session hangs up
			_ = conn.Close()
		}()
		for frame := range heard {
			var a answer
			if decode(frame, &a) != nil && checkHello(frame, "job", "test") != nil {
				t.Errorf("the job said %s", frame)
			}
		}
		<-ended
	})
}
