package session

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline"
)

// The instance paused first may be one that others need in order to pause: a rollout waits for the answers of an inference, a
// batcher for room at a learner.
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
						made = r.commands.job.envSteps()
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
					r.mustDo(control.VerbUnpause, control.GroupRequest{}, nil)
				}
			}
		})
	}
}

// pauses pauses components, which must succeed.
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

// In a run that is paused as a whole, a checkpoint, a reload, a scaling and a swap need nothing to run, and the instances that they
// add are paused.
func TestPause_OfAllMakesNoEnvStepWhateverIsAsked(t *testing.T) {
	for _, mode := range []string{"async", "sync"} {
		t.Run(mode, func(t *testing.T) {
			sets := []string{"train.mode=" + mode, "component.rollout.splits=2", "component.batcher.dataset_rows=512"}
			r := begin(t, sets...)
			r.learns()
			r.pauses()
			before := r.pipeline.Steps()
			still := func(what string) {
				t.Helper()
				if now := r.pipeline.Steps(); now.Made != before.Made || now.Trained != before.Trained {
					t.Errorf("%s: %d env steps were made and %d trained before, %d and %d after", what, before.Made, before.Trained, now.Made, now.Trained)
				}
				for _, c := range r.pipeline.Status().Components {
					if c.State != control.Paused {
						t.Errorf("%s: %s is %s", what, c.Name, c.State)
					}
				}
			}
			save := func() {
				t.Helper()
				saved := false
				err := r.pipeline.AtNextBoundary(t.Context(), func(snapshot pipeline.Snapshot) error {
					saved = true
					states, err := snapshot()
					if _, ok := states["learner"]; !ok {
						t.Error("the snapshot lacks the learner")
					}
					return err
				})
				if err != nil || !saved {
					t.Errorf("a checkpoint: %v", err)
				}
			}
			save()
			still("a checkpoint")
			r.mustDo(control.VerbCheckpoint, nil, nil)
			still("the next checkpoint")
			path, err := filepath.Abs("pipeline.toml")
			if err != nil {
				t.Fatal(err)
			}
			reload := control.ReloadRequest{File: path, Source: file, Sets: append(sets, "component.learner.learning_rate=0.0003")}
			r.mustDo(control.VerbReload, reload, nil)
			still("a reload")
			r.mustDo(control.VerbScale, control.ScaleRequest{Components: map[string]int{"inference": 2}}, nil)
			still("a scaling")
			if mode == "async" { // in synchronous mode the batcher would need other rows
				r.mustDo(control.VerbScale, control.ScaleRequest{Components: map[string]int{"rollout": 2}}, nil)
				still("a scaling of the rollout")
			}
			keep := true
			r.mustDo(control.VerbSwap, control.SwapRequest{Component: "rollout", File: module(t, "rust"), KeepState: &keep}, nil)
			still("a swap")
			save()
			r.mustDo(control.VerbUnpause, control.GroupRequest{}, nil)
			testkit.Until(t, "all run and learn", func() bool {
				return r.pipeline.Steps().Trained > before.Trained+8192
			})
			if s := r.pipeline.Steps(); s.Made != s.Trained+s.Dropped+s.UnderWay {
				t.Errorf("%+v does not add up", s)
			}
		})
	}
}
