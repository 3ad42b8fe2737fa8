package control

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

// elsewhere serves the job at path as another machine has it, and returns where.
func elsewhere(t *testing.T, path string) string {
	t.Helper()
	there := filepath.Join(folder(t), "elsewhere.sock")
	s, err := ServeLines(there, slog.New(slog.DiscardHandler), func() (Line, error) {
		near, far := testkit.NewLine()
		go Carry(path, far, "echo", "wait")
		return near, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return there
}

// What another machine may ask is answered as here, the rest is refused by name, and the end of a request gets there.
func TestCarry_AnswersWhatIsPermitted(t *testing.T) {
	verbs := echo()
	began, ended := make(chan struct{}), make(chan error, 1)
	On(verbs, "wait", func(ctx context.Context, _ string, _ Notice) (string, error) {
		close(began)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return "", nil
	})
	On(verbs, "stop", func(context.Context, string, Notice) (string, error) {
		t.Error("another machine has stopped the job")
		return "", nil
	})
	path, _ := serve(t, verbs)
	c := dial(t, elsewhere(t, path))
	var got string
	for _, want := range []string{"x", string(make([]byte, 1<<20))} {
		if err := c.Do(t.Context(), "echo", want, &got, nil); err != nil || got != want {
			t.Fatalf("%d bytes for %d, %v", len(got), len(want), err)
		}
		var e *Error
		if err := c.Do(t.Context(), "stop", "", nil, nil); !errors.As(err, &e) || e.Code != CodeHere || e.Help == "" {
			t.Fatalf("a verb for the run's own machine: %v", err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-began; cancel(io.ErrUnexpectedEOF) }()
	if err := c.Do(ctx, "wait", "", nil, nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a request that is canceled: %v", err)
	}
	if err := <-ended; !errors.Is(err, errGone) {
		t.Errorf("the job hears %v", err)
	}
}

func TestCarry_SaysWhyNobodyAnswers(t *testing.T) {
	there := filepath.Join(folder(t), "cut.sock")
	s, err := ServeLines(there, slog.New(slog.DiscardHandler), func() (Line, error) { return nil, io.ErrNoProgress })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for path, code := range map[string]Code{elsewhere(t, filepath.Join(folder(t), "nobody.sock")): CodeNoJob, there: CodeCut} {
		c, err := Dial(t.Context(), path)
		if err == nil {
			err = c.Do(t.Context(), "echo", "x", nil, nil)
		}
		var e *Error
		if !errors.As(err, &e) || e.Code != code || e.Help == "" {
			t.Errorf("nobody answers: %v, want code %s", err, code)
		}
	}
}
