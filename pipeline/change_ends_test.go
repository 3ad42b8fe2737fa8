package pipeline

import (
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/internal/testkit"
)

// A change that is under way when a stop rule is met is abandoned and reverted. A synchronous run waits at its last boundary meanwhile:
// it learns no more.
func TestTransition_AnEndingRunWaitsForAnAbandonedChange(t *testing.T) {
	s, parts := newStage()
	var atStop, players uint64
	var r *liveRun
	asked := make(chan struct{})
	s.pause = func(h *component.Host, _ func()) bool { // the counter never pauses, so that the change gives up when the run should end
		close(asked)
		return true
	}
	s.start = func(h *component.Host) error {
		if h.Name != "player" {
			return nil
		}
		if players++; players < 2 {
			return nil
		}
		// The previous player is made again, which takes as long as the run needs to reach its last boundary, or to miss some.
		testkit.Until(t, "the run stands at its boundary, or goes on", func() bool {
			return s.counted.Load() > atStop+8 || r.ending.standing.Load()
		})
		return nil
	}
	r = runLive(t, s, parts, liveFile, BuildOptions{Grace: time.Minute, AtBoundary: func(Snapshot) error { return nil }},
		"component.counter.strict=true", "train.mode=sync")
	r.await(4)
	x := r.prepare(TransitionOptions{}, "component.player.rate=2", "component.counter.scale=3")
	failed := make(chan error)
	go func() {
		_, err := x.Commit(t.Context())
		failed <- err
	}()
	<-asked
	r.onCounter(func() {
		atStop = s.counted.Load()
		r.Stop(component.StopEnvSteps)
	})
	if err := <-failed; err == nil {
		t.Error("the change was made")
	}
	r.end()
	if n := s.counted.Load() - atStop; n > 2 || players < 2 {
		t.Errorf("%d blocks were counted after the stop, want at most those of one boundary; %d players were made anew", n, players)
	}
}

// onCounter calls fn on the loop of the counter.
func (r *liveRun) onCounter(fn func()) {
	for _, m := range r.running.now().members {
		if m.name == "counter" {
			m.loop.Do(fn)
		}
	}
}
