package pipeline

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/pipeline/loops"
)

// learnedRig is the replacement of a rollout that has an arena with a trajectory.
type learnedRig struct {
	step  *replacement
	arena *arena.Arena
	loan  arena.Loan
}

func newLearnedRig(t *testing.T) *learnedRig {
	t.Helper()
	schema, err := trajectory.NewSchema(graphtest.Described{Obs: 4}.Spec(), trajectory.Shape{Steps: 4, Envs: 2})
	if err != nil {
		t.Fatal(err)
	}
	set := arena.NewSet()
	t.Cleanup(func() { _ = set.Close() }) // with the block that some cases keep
	r := &learnedRig{}
	r.arena, err = set.Add(arena.Config{Name: "rollout.trajectories", Blocks: 2, BlockBytes: schema.Bytes, Schema: schema})
	if err == nil {
		r.loan, err = r.arena.Loan()
	}
	if err != nil {
		t.Fatal(err)
	}
	x := func() *instance {
		host := &component.Host{Run: &component.Run{Synchronous: true}}
		host.Bind(component.Manifest{})
		return &instance{host: host, loop: new(loops.Set).Join("rollout")}
	}
	of := &graph.Component{Flow: component.Flow{Envs: 2}}
	r.step = &replacement{t: &Transition{p: &Pipeline{}}, of: of, old: member{instance: x(), of: of}, new: x()}
	r.step.old.host.Own(r.arena)
	return r
}

// A successor in a synchronous run must not act before its predecessor's trajectories have been learned from, even if
// nothing else makes it wait.
func TestTransition_WaitsForASynchronousRolloutsTrajectories(t *testing.T) {
	gone := errors.New("nobody waits any more")
	for name, c := range map[string]struct {
		change func(r *learnedRig)
		waits  bool
	}{
		"blocks of its own":    {func(*learnedRig) {}, true},
		"its blocks are taken": {func(r *learnedRig) { r.step.new.host.Own(r.arena) }, false},
		"asynchronous":         {func(r *learnedRig) { r.step.old.host.Run.Synchronous = false }, false},
		"runs no environments": {func(r *learnedRig) { r.step.old.of.Flow.Envs = 0 }, false},
		"has failed":           {func(r *learnedRig) { r.step.old.live.fault = gone }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newLearnedRig(t)
			c.change(r)
			h, err := r.loan.Commit()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(gone)
			if err := r.step.learned(ctx, &Outcome{}); errors.Is(err, gone) != c.waits {
				t.Errorf("with a trajectory that is not learned from: %v, want one who waits %v", err, c.waits)
			}
			learned := make(chan error, 1)
			go func() { learned <- r.step.learned(t.Context(), &Outcome{}) }()
			if err := r.arena.Release(h); err != nil {
				t.Error(err)
			}
			if err := <-learned; err != nil {
				t.Errorf("learned from: %v", err)
			}
		})
	}
}

// The last claim on a trajectory may be that of the process that made it, which ends it without a word to the host.
func TestTransition_SeesBlocksThatAnotherProcessFrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLearnedRig(t)
		h, err := r.loan.Commit()
		if err != nil {
			t.Fatal(err)
		}
		process := attach(t, r.arena)
		if err := errors.Join(process.Retain(h), r.arena.Release(h)); err != nil {
			t.Fatal(err)
		}
		learned := make(chan error, 1)
		go func() { learned <- r.step.learned(t.Context(), &Outcome{}) }()
		synctest.Wait()
		if err := process.Release(h); err != nil {
			t.Error(err)
		}
		if err := <-learned; err != nil {
			t.Errorf("learned from: %v", err)
		}
	})
}

// attach returns the arena as another process sees it.
func attach(t *testing.T, a *arena.Arena) *arena.Arena {
	t.Helper()
	var err error
	shared := a.Share()
	for _, fd := range []*int{&shared.WordsFD, &shared.DataFD} {
		if *fd, err = shm.Dup(*fd); err != nil {
			t.Fatal(err)
		}
	}
	view, err := arena.Attach(shared, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = view.Close() })
	return view
}

func TestTransition_TheEndOfTheRunEndsTheWaitForLearning(t *testing.T) {
	r := newLearnedRig(t)
	if _, err := r.loan.Commit(); err != nil {
		t.Fatal(err)
	}
	r.step.old.loop.Finish()
	if err := r.step.learned(t.Context(), &Outcome{}); !errors.Is(err, ErrEnded) {
		t.Errorf("%v, want ErrEnded", err)
	}
}
