package control

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDo_AnswersWithNoticesBeforeTheReply(t *testing.T) {
	v := Verbs{}
	On(v, VerbScale, func(_ context.Context, q ScaleRequest, notice Notice) (ReloadReply, error) {
		for i := range q.Components["rollout"] {
			if err := notice(i); err != nil {
				return ReloadReply{}, err
			}
		}
		return ReloadReply{Outcome: Committed, EnvStep: 7}, nil
	})
	path, _ := serve(t, v)
	c := dial(t, path)
	for range 3 { // one connection serves several requests
		var notices []string
		var reply ReloadReply
		err := c.Do(t.Context(), VerbScale, ScaleRequest{Components: map[string]int{"rollout": 3}}, &reply,
			func(n json.RawMessage) { notices = append(notices, string(n)) })
		if err != nil || reply.Outcome != Committed || reply.EnvStep != 7 || strings.Join(notices, " ") != "0 1 2" {
			t.Errorf("Do = %+v with notices %v, %v", reply, notices, err)
		}
	}
}

func TestDo_ReturnsTheErrorOfTheJob(t *testing.T) {
	refusal := &Error{Code: CodeSpaces, Reason: "spaces differ", Help: "train anew", Problems: "a\nb", Exit: 5}
	v := Verbs{}
	On(v, VerbSwap, func(context.Context, SwapRequest, Notice) (SwapReply, error) { return SwapReply{}, refusal })
	On(v, VerbStop, func(context.Context, StopRequest, Notice) (StopReply, error) {
		return StopReply{}, errors.New("disk full")
	})
	On(v, VerbStatus, func(context.Context, StatusRequest, Notice) (any, error) { return func() {}, nil })
	On(v, VerbLogs, func(context.Context, LogsRequest, Notice) (any, error) {
		return strings.Repeat("x", MaxFrame), nil
	})
	path, _ := serve(t, v)
	c := dial(t, path)
	cases := []struct {
		verb    Verb
		request any
		want    Error
	}{
		{VerbSwap, SwapRequest{}, *refusal},
		{VerbStop, nil, Error{Code: CodeFailed, Reason: "disk full"}},
		{"dance", nil, Error{Code: CodeUnknown, Reason: `this job knows no request "dance"`}},
		{VerbSwap, map[string]any{"componnt": "x"}, Error{Code: CodeBad, Reason: `the request "swap": malformed frame: json: unknown field "componnt"`}},
		{VerbSwap, []int{1}, Error{Code: CodeBad, Reason: `the request "swap": malformed frame: json: cannot unmarshal array into Go value of type control.SwapRequest`}},
		{VerbStatus, nil, Error{Code: CodeFailed, Reason: `the answer to "status" cannot be sent: json: unsupported type: func()`}},
		{VerbLogs, nil, Error{Code: CodeFailed, Reason: `the answer to "logs" cannot be sent: unsent: 16777228 bytes are more than a frame of 16777216 may have`}},
	}
	for _, want := range cases {
		err := c.Do(t.Context(), want.verb, want.request, nil, nil)
		var e *Error
		if !errors.As(err, &e) || *e != want.want {
			t.Errorf("%s %v = %#v, want %#v", want.verb, want.request, err, want.want)
		}
	}
}

func TestDo_APanicIsAnErrorAndTheJobContinues(t *testing.T) {
	v := echo()
	On(v, "panic", func(context.Context, string, Notice) (string, error) {
		var none []int
		return "", json.Unmarshal(nil, &none[3])
	})
	path, log := serve(t, v)
	err := dial(t, path).Do(t.Context(), "panic", "", nil, nil)
	if code(t, err) != CodeFailed || !strings.Contains(err.Error(), "index out of range") {
		t.Errorf("Do = %v", err)
	}
	for _, part := range []string{"level=ERROR", "verb=panic", "index out of range", "socket_test.go"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log does not contain %q: %s", part, log)
		}
	}
	answers(t, path)
}

func TestOn_TwoAnswersToAVerbAreAMistakeOfTheJob(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	v := echo()
	On(v, "echo", func(context.Context, int, Notice) (int, error) { return 0, nil })
}

func TestDo_AClientThatGoesAwayCancelsItsRequest(t *testing.T) {
	causes := make(chan error, 1)
	late := make(chan error, 1)
	begun := make(chan struct{}, 1)
	v := echo()
	On(v, "wait", func(ctx context.Context, _ any, notice Notice) (any, error) {
		begun <- struct{}{}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		late <- notice(1)
		return nil, context.Cause(ctx)
	})
	path, _ := serve(t, v)
	c := dial(t, path)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("ctrl-c")
	go func() {
		<-begun
		cancel(why)
	}()
	if err := c.Do(ctx, "wait", nil, nil, nil); !errors.Is(err, why) {
		t.Errorf("Do = %v, want %v", err, why)
	}
	if err := <-causes; !errors.Is(err, errGone) {
		t.Errorf("the request's context ended with %v, want %v", err, errGone)
	}
	if err := <-late; err == nil {
		t.Error("a notice to a client that has gone was sent")
	}
	if err := c.Do(t.Context(), "echo", "x", nil, nil); err == nil {
		t.Error("a cancelled connection made another request")
	}
	answers(t, path)
}

func TestClose_EndsRequestsAndSaysSo(t *testing.T) {
	begun := make(chan struct{})
	v := echo()
	On(v, "wait", func(ctx context.Context, _ any, _ Notice) (any, error) {
		close(begun)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	path := filepath.Join(folder(t), "job.sock")
	s, err := Listen(path, v, ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	idle, busy := dial(t, path), dial(t, path)
	if err := idle.Do(t.Context(), "echo", "x", nil, nil); err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() { got <- busy.Do(context.Background(), "wait", nil, nil, nil) }()
	<-begun
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-got; code(t, err) != CodeEnded || err.Error() != "the run has ended" {
		t.Errorf("the request under way ended with %v", err)
	}
	if err := idle.Do(t.Context(), "echo", "x", nil, nil); code(t, err) != CodeEnded {
		t.Errorf("a request after the end = %v", err)
	}
	if _, err := Dial(t.Context(), path); code(t, err) != CodeNoJob {
		t.Errorf("Dial after the end = %v", err)
	}
	if err := s.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second Close = %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}

func TestSocketPath_IsShortAndTheSameForOneFolder(t *testing.T) {
	runtimeDir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", runtimeDir)
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 50), "0001")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	path := SocketPath(dir)
	if len(path) > maxPath || filepath.Dir(path) != filepath.Join(runtimeDir, "rlhost") {
		t.Errorf("SocketPath = %s", path)
	}
	t.Chdir(dir)
	for _, same := range []string{".", link, dir + "/", link + "/../link"} {
		if got := SocketPath(same); got != path {
			t.Errorf("SocketPath(%q) = %s, want %s", same, got, path)
		}
	}
	if other := SocketPath(filepath.Dir(dir)); other == path {
		t.Errorf("two folders have the path %s", path)
	}
	for _, dir := range []string{"", "relative", "/" + strings.Repeat("x", 80)} {
		t.Setenv("XDG_RUNTIME_DIR", dir)
		if got := SocketPath(link); !strings.HasPrefix(got, "/tmp/rlhost-") || filepath.Base(got) != filepath.Base(path) {
			t.Errorf("with runtime folder %q: %s", dir, got)
		}
	}
}

func TestDial_SaysWhoIsNotThere(t *testing.T) {
	if _, err := Dial(t.Context(), filepath.Join(folder(t), "none.sock")); code(t, err) != CodeNoJob {
		t.Errorf("no socket: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Dial(ctx, filepath.Join(folder(t), "none.sock")); err == nil {
		t.Error("Dial with a context that has ended returned a client")
	}
}
