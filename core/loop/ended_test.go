package loop_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

func TestEnded_IsALoopThatRunsNoSlotsAnyMore(t *testing.T) {
	cases := []struct {
		name string
		end  func(t *testing.T, l *loop.Loop)
		want bool
	}{
		{"before it ran", func(*testing.T, *loop.Loop) {}, false},
		{"its context ended", func(t *testing.T, l *loop.Loop) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_ = l.Run(ctx) // that is how it ends
		}, false},
		{"told to stop", func(_ *testing.T, l *loop.Loop) { l.Stop() }, true},
		{"stopped", func(t *testing.T, l *loop.Loop) { l.Stop(); _ = l.Run(t.Context()) }, true},
		{"failed", func(t *testing.T, l *loop.Loop) { l.Fail(errors.New("fault")); _ = l.Run(t.Context()) }, true},
		{"closed", func(_ *testing.T, l *loop.Loop) { _ = l.Close() }, true},
	}
	for _, c := range cases {
		l := loop.New("l")
		c.end(t, l)
		if got := l.Ended(); got != c.want {
			t.Errorf("%s: Ended = %v, want %v", c.name, got, c.want)
		}
	}
}

func TestEnded_NotWhileItsLastSlotRuns(t *testing.T) {
	l := loop.New("l")
	r := l.NewReceiver("r")
	r.Post(func(*hostabi.Message) {
		l.Stop()
		if l.Ended() {
			t.Error("Ended in the slot that stops the loop")
		}
	}, hostabi.Message{})
	if err := l.Run(t.Context()); err != nil {
		t.Error(err)
	}
}
