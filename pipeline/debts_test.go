package pipeline

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// muteDuel is a run in which the answers stop after a hundred.
func muteDuel(t *testing.T, sets ...string) *liveRun {
	t.Helper()
	answered := &rounds{by: map[string]*atomic.Uint64{}}
	parts := duelParts(answered)
	parts.Kinds["seconder"] = func() component.Component {
		asked := 0
		return &seconder{mute: func() bool { asked++; return asked > 100 }}
	}
	s, _ := newStage()
	r := runLive(t, s, parts, duelText(graph.ModeSync, "main"), BuildOptions{Grace: time.Nanosecond}, sets...)
	testkit.Until(t, "a hundred answers", func() bool { return answered.of("main").Load() >= 100 || len(r.over) > 0 })
	return r
}

// An answer that does not come within the time of its wire ends the run, with who owes it to whom, and the key that allows more.
func TestAnswer_OverdueEndsTheRun(t *testing.T) {
	r := muteDuel(t, `wire.duelist.obs_ready.answer="10ms"`)
	err := <-r.over
	for _, says := range []string{CodeOverdue, "seconder_main", "owes duelist an answer to duelist.obs_ready for more than 10ms"} {
		if err == nil || !strings.Contains(r.because(err).Error(), says) {
			t.Errorf("the run ended with %v, want %q in it", err, says)
		}
	}
	_ = r.Close() // it has failed
}

// Where answers may take for ever no component fails. The cause of the wait is named, also by StoodStill of a run that was cut.
func TestAnswer_OwedForEverIsNamed(t *testing.T) {
	r := muteDuel(t, `wire.duelist.obs_ready.answer="0s"`)
	const want = "seconder_main owes duelist an answer to duelist.obs_ready for "
	testkit.Until(t, "the cause", func() bool { return strings.HasPrefix(r.Status().Cause, want) || len(r.over) > 0 })
	r.Stop(component.StopWallTime)
	if err := <-r.over; err != nil {
		t.Errorf("the run ended with %v", err)
	}
	if cause := r.StoodStill(); !strings.HasPrefix(cause, want) {
		t.Errorf("the run stood still for %q, want %q", cause, want)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
