package session

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// A version that has failed is dealt with however long the change takes that is under way: until then it is watched, and
// status --wait waits.
func TestRollBack_WaitsForTheChangeUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnderWay()
		u.watched = []*probation{{number: 1}}
		long := &work{title: "a long change"}
		if _, err := u.begin(t.Context(), long); err != nil {
			t.Fatal(err)
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			(&watcher{job: &job{underWay: u}, life: t.Context()}).rollBack(failure{number: 1})
		}()
		time.Sleep(time.Hour)
		select {
		case <-over:
			t.Error("the failure is given up while a change is under way")
		default:
		}
		u.mu.Lock()
		u.watched = nil // the change has replaced it
		u.mu.Unlock()
		u.finish(long)
		<-over
		if u.current != nil {
			t.Error("a change is still under way")
		}
	})
}

// The time of a probation is that in which nothing is paused, and it is not over before every component has done something.
func TestProbation_CountsWhatRuns(t *testing.T) {
	u := newUnderWay()
	p := &probation{number: 1, left: time.Minute, idle: map[string]uint64{"rollout": 100, "shaper": 7}}
	u.begins(p)
	for _, step := range []struct {
		what            string
		lasts           time.Duration
		paused          bool
		rollout, shaper uint64
		over            bool
	}{
		{"a pause", time.Hour, true, 100, 7, false},
		{"its time, without a message", time.Hour, false, 100, 7, false},
		{"one of the two has done something", time.Second, false, 228, 7, false},
		{"the other one has an instance less", time.Second, false, 300, 3, false},
		{"and does something", time.Second, false, 300, 4, true},
	} {
		if over := u.pass(p, step.lasts, step.paused, map[string]uint64{"rollout": step.rollout, "shaper": step.shaper}); over != step.over {
			t.Errorf("%s: over %v, want %v", step.what, over, step.over)
		}
	}
}

// A change made while the run is paused is watched from its first steps on.
func TestProbation_OfAPausedRunBeginsWithItsResume(t *testing.T) {
	r := begin(t)
	r.learns()
	r.pauses()
	short := 0.001
	r.mustDo(control.VerbSwap, control.SwapRequest{Component: "rollout", File: module(t, "rust"), Probation: &short}, nil)
	var s control.StatusReply
	testkit.Until(t, "its time stands still", func() bool {
		s = control.StatusReply{}
		r.mustDo(control.VerbStatus, control.StatusRequest{}, &s)
		return len(s.Probation) == 1 && s.Probation[0].Paused
	}, &s)
	if p := s.Probation[0]; !p.Idle || p.Left != short {
		t.Errorf("the probation is %+v", p)
	}
	r.mustDo(control.VerbUnpause, control.GroupRequest{}, nil)
	r.mustDo(control.VerbStatus, control.StatusRequest{Wait: true}, &s)
	list, err := r.run.Changes()
	if err != nil || list[len(list)-1].Step != runs.StepSettled {
		t.Errorf("the last event is %+v, %v", list[len(list)-1], err)
	}
}

// A change of something else neither ends a probation nor is taken back with it; a run that is resumed rolls back watched changes.
func TestProbation_OfSeveralChanges(t *testing.T) {
	r := begin(t)
	r.learns()
	path, err := filepath.Abs("pipeline.toml")
	if err != nil {
		t.Fatal(err)
	}
	hash := func() string {
		plugin, err := r.pipeline.Env("cartpole")
		if err != nil {
			t.Fatal(err)
		}
		return plugin.Hash()
	}
	is := func(env, rate, inferences string, watched ...string) {
		t.Helper()
		text := r.pipeline.Graph().Expanded()
		if hash() != env || !strings.Contains(text, "learning_rate = "+rate) || !strings.Contains(text, "count = "+inferences) {
			t.Errorf("want %.8s, a rate of %s and %s inferences, not %.8s and\n%s", env, rate, inferences, hash(), text)
		}
		var s control.StatusReply
		r.mustDo(control.VerbStatus, control.StatusRequest{}, &s)
		var names []string
		for _, p := range s.Probation {
			names = append(names, p.Component)
		}
		if !slices.Equal(names, watched) {
			t.Errorf("%v are watched, want %v", names, watched)
		}
	}
	fails := func(number uint64, component string, back uint64) {
		t.Helper()
		r.commands.job.failed(failure{number: number, component: component, fault: errors.New("it fails")})
		var s control.StatusReply
		testkit.Until(t, "it is rolled back", func() bool {
			s = control.StatusReply{}
			r.mustDo(control.VerbStatus, control.StatusRequest{}, &s)
			return s.Swaps.RolledBack == back && s.Transition == ""
		}, &s)
	}
	minute, old := 60.0, hash()
	reload := func(sets ...string) uint64 {
		t.Helper()
		use := `env.cartpole.use="` + module(t, "rust") + `"`
		r.mustDo(control.VerbReload, control.ReloadRequest{File: path, Source: file, Sets: append(sets, use, "swap.probation=60s"), Undo: true}, nil)
		return r.commands.job.history.last
	}
	r.mustDo(control.VerbSwap, control.SwapRequest{Component: "rollout", File: module(t, "rust"), Probation: &minute}, nil)
	first, rust := r.commands.job.history.last, hash()
	second := reload("component.learner.learning_rate=0.003")
	r.mustDo(control.VerbScale, control.ScaleRequest{Components: map[string]int{"inference": 2}}, nil)
	is(rust, "0.003", "2", "rollout", "learner")
	fails(first, "rollout", 1)
	is(old, "0.003", "2", "learner")
	fails(second, "learner", 2)
	is(old, "0.0015", "2")
	if err := r.do(t.Context(), control.VerbRollback, control.RollbackRequest{Component: "learner"}, nil, nil); code(err) != control.CodeRefused {
		t.Errorf("a version that has failed can be gone back to: %v", err)
	}
	list, err := r.run.Changes()
	if err != nil || len(unproven(list)) > 0 {
		t.Errorf("%+v would be taken back: %v", unproven(list), err)
	}
	third := reload("component.learner.learning_rate=0.004")
	if list, err = r.run.Changes(); err != nil {
		t.Fatal(err)
	}
	left := unproven(list)
	if len(left) != 1 || left[0][0].Number != third {
		t.Fatalf("%+v would be taken back, want change %d", left, third)
	}
}

// A run that has stalled rolls back the newest change with which it has been learning.
func TestProbation_AStallRollsBackTheNewestChangeThatTheRunHasLearnedWith(t *testing.T) {
	u := newUnderWay()
	if u.newestMoving() != nil {
		t.Error("nothing is watched")
	}
	u.begins(&probation{number: 1})
	u.begins(&probation{number: 2, stood: true, trained: 5000})
	for _, step := range []struct{ trained, blamed uint64 }{{5000, 1}, {5001, 2}} {
		u.learned(step.trained)
		if p := u.newestMoving(); p == nil || p.number != step.blamed {
			t.Errorf("with %d env steps learned from %+v is to blame, want change %d", step.trained, p, step.blamed)
		}
	}
}

// A run that has stalled with a change that has nothing left to roll back does not report a rollback.
func TestRollBack_OfNothingIsNone(t *testing.T) {
	r := begin(t)
	r.learns()
	minute := 60.0
	r.mustDo(control.VerbSwap, control.SwapRequest{Component: "rollout", File: module(t, "rust"), Probation: &minute}, nil)
	number := r.commands.job.history.last
	p := r.commands.job.find(number)
	p.before = p.after
	r.commands.job.failed(failure{number: number, component: "rollout", fault: errors.New("the run stands still"), still: true})
	var s control.StatusReply
	testkit.Until(t, "it is watched no more", func() bool {
		s = control.StatusReply{}
		r.mustDo(control.VerbStatus, control.StatusRequest{}, &s)
		return len(s.Probation) == 0 && s.Transition == ""
	}, &s)
	list, err := r.run.Changes()
	if err != nil || list[len(list)-1].Step != runs.StepSettled || s.Swaps.RolledBack != 0 {
		t.Errorf("the last event is %+v, %v; %+v", list[len(list)-1], err, s.Swaps)
	}
	for _, c := range s.Components {
		if c.Note != "" {
			t.Errorf("%s: %s", c.Name, c.Note)
		}
	}
}
