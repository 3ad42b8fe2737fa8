package session

import (
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
)

// Who is paused first may be the one that others need to come to rest: a rollout waits for the answers of an inference, a batcher
// for room at a learner.
func TestPause_OfAllAfterOneThatOthersNeed(t *testing.T) {
	for _, mode := range []string{"async", "sync"} {
		t.Run(mode, func(t *testing.T) {
			r := begin(t, "train.mode="+mode, "component.rollout.splits=2", "component.batcher.dataset_rows=512")
			for _, first := range []string{"inference", "learner", "batcher"} {
				for _, then := range [][]string{nil, {"rollout"}} {
					r.learns()
					began := time.Now()
					r.pauses(first)
					made := uint64(0)
					testkit.Until(t, "the others have run into it", func() bool {
						before := made
						made = r.commands.envSteps()
						return made == before
					})
					r.pauses(then...)
					if d := time.Since(began); d > 10*time.Second {
						t.Errorf("%s, then %v: paused after %v", first, then, d)
					}
					var s control.StatusReply
					r.mustDo(control.VerbStatus, control.StatusRequest{}, &s)
					for _, c := range s.Components {
						if (then == nil || c.Name == first || c.Name == "rollout") != (c.State == control.Paused) {
							t.Errorf("%s, then %v: %s is %s", first, then, c.Name, c.State)
						}
					}
					r.mustDo(control.VerbResume, control.GroupRequest{}, nil)
				}
			}
		})
	}
}

// pauses pauses components, which have to come to rest.
func (r *rig) pauses(patterns ...string) {
	r.Helper()
	var reply control.GroupReply
	r.mustDo(control.VerbPause, control.GroupRequest{Patterns: patterns, Deadline: 20}, &reply)
	for _, a := range reply.Answers {
		if a.State != control.Paused || a.Error != nil {
			r.Errorf("pause %v: %s is %s: %v", patterns, a.Name, a.State, a.Error)
		}
	}
}
