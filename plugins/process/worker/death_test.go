package worker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// lost returns the environments that an error says are lost.
func lost(t *testing.T, err error) []env.Span {
	t.Helper()
	var f *env.Fault
	if !errors.As(err, &f) || f.Kind != env.FaultLost {
		t.Fatalf("got %v, want a loss", err)
	}
	return f.Lost
}

// killOf kills one process of a batch and waits until it is dead.
func killOf(t testing.TB, e env.Env, worker int) {
	t.Helper()
	w := e.(*batch).workers[worker]
	if err := unix.Kill(w.p.PID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-w.p.Died()
}

// blocksOf returns n blocks in one segment.
func blocksOf(t testing.TB, spec hostabi.EnvSpec, shape trajectory.Shape, n int) []env.Block {
	t.Helper()
	schema, err := trajectory.NewSchema(spec, shape)
	if err != nil {
		t.Fatal(err)
	}
	seg, err := shm.Create("test", n*schema.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { seg.Close() })
	var all []env.Block
	for k := range n {
		at := k * schema.Bytes
		all = append(all, env.Block{Trajectory: trajectory.Trajectory{Schema: schema, Mem: seg.Bytes()[at:][:schema.Bytes]},
			Index: uint32(k), FD: seg.FD(), Offset: int64(at)})
	}
	return all
}

func newBatch(t testing.TB, p env.Plugin, envs int, b env.Block) env.Env {
	t.Helper()
	spec := p.Spec()
	e, err := p.NewEnv(env.Options{Name: "batch", Envs: envs, Autoreset: spec.PickAutoreset()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(e.Bind(b), e.Reset(0, nil, nil)); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestDeath_LosesTheStepOfItsEnvironmentsOnly(t *testing.T) {
	const envs, steps = 7, 60
	p := loadIn(t, 3, env.Source{Use: "scripted@1"})
	blocks := blocksOf(t, p.Spec(), trajectory.Shape{Steps: steps, Envs: envs}, 2)
	a, b := newBatch(t, p, envs, blocks[0]), newBatch(t, p, envs, blocks[1])
	mask := []uint8{0, 0, 1, 1, 0, 0, 0}
	for step := range steps {
		if step == 5 {
			killOf(t, b, 1)
		}
		if err := a.Step(step); err != nil {
			t.Fatal(err)
		}
		err := b.Step(step)
		if step == 5 {
			if spans := lost(t, err); fmt.Sprint(spans) != "[{2 2}]" {
				t.Fatalf("lost %v, want the environments of the second of three processes", spans)
			}
			err = b.Reset(step+1, mask, make([]uint64, envs))
		}
		if err != nil {
			t.Fatal(err)
		}
		x, y := blocks[0].Row(trajectory.Obs, step+1).Float32(), blocks[1].Row(trajectory.Obs, step+1).Float32()
		for env := range envs {
			at := env * plugintest.ObsElems
			same := slices.Equal(x[at:][:plugintest.ObsElems], y[at:][:plugintest.ObsElems])
			if mask[env] == 0 && !same {
				t.Fatalf("step %d: environment %d observes %v, want %v", step, env, y[at:][:plugintest.ObsElems], x[at:][:plugintest.ObsElems])
			}
			if mask[env] != 0 && step == 5 && y[at+plugintest.ObsStep] != 0 {
				t.Errorf("environment %d goes on after its process has died: %v", env, y[at:][:plugintest.ObsElems])
			}
		}
	}
}

func TestDeath_InEveryCall(t *testing.T) {
	p := loadIn(t, 2, env.Source{Use: "scripted@1"})
	s := newStage(t, p, 4)
	for range 3 {
		killOf(t, s.Env, 1)
		if spans := lost(t, s.Bind()); fmt.Sprint(spans) != "[{2 2}]" {
			t.Errorf("in bind: lost %v", spans)
		}
		killOf(t, s.Env, 0)
		killOf(t, s.Env, 1)
		if spans := lost(t, s.Reset(nil, nil)); fmt.Sprint(spans) != "[{0 2} {2 2}]" {
			t.Errorf("in reset: lost %v", spans)
		}
		if err := s.Reset(nil, s.seeds()); err != nil {
			t.Fatal(err)
		}
		if err := s.next(); err != nil {
			t.Fatal(err)
		}
	}
	killOf(t, s.Env, 0)
	if _, err := s.Env.Snapshot(); err == nil {
		t.Error("a snapshot of a dead process")
	}
	if err := errors.Join(s.Env.Renew(), s.Bind(), s.Reset(nil, s.seeds()), s.next()); err != nil {
		t.Errorf("after Renew: %v", err)
	}
}

// A worker that answers and dies before the others have been replaced has made its step: it is lost in the next call.
func TestDeath_AfterTheAnswerIsTheNextCallsLoss(t *testing.T) {
	s := newStage(t, loadIn(t, 2, env.Source{Use: "scripted@1"}), 4)
	e := s.Env.(*batch)
	killOf(t, e, 0)
	killOf(t, e, 1)
	e.selectAll()
	e.workers[0].verdict, e.workers[1].verdict = died, answered
	e.workers[1].reply = hostabi.Message{}
	if spans := lost(t, e.judge(hostabi.ExportStep)); fmt.Sprint(spans) != "[{0 2}]" {
		t.Errorf("lost %v, want those of the first process", spans)
	}
	if err := s.Reset([]uint8{1, 1, 0, 0}, nil); err != nil {
		t.Errorf("a reset of those: %v", err)
	}
	if spans := lost(t, s.next()); fmt.Sprint(spans) != "[{2 2}]" {
		t.Errorf("then lost %v, want those of the second", spans)
	}
}

// A process that does not answer is killed at the limit, even a stopped one.
func TestDeadline_EndsAProcessThatHangs(t *testing.T) {
	const limit = 300 * time.Millisecond
	s := newStage(t, loadIn(t, 2, env.Source{Use: "hangs@1", Limits: env.Limits{Step: limit}}), 4)
	stopped := newStage(t, loadIn(t, 2, env.Source{Use: "scripted@1", Limits: env.Limits{Step: limit}}), 4)
	var err error
	for range 3 {
		if err == nil {
			err = s.next()
		}
	}
	check := func(what string, s *stage, err error) {
		var f *env.Fault
		if !errors.As(err, &f) || f.Kind != env.FaultDeadline || !strings.Contains(err.Error(), "environments 2 to 3) did not answer within") {
			t.Errorf("%s: %v", what, err)
		}
		if err := s.next(); !errors.Is(err, env.ErrPoisoned) {
			t.Errorf("%s: a step afterwards: %v", what, err)
		}
		if err := errors.Join(s.Env.Renew(), s.Bind(), s.Reset(nil, s.seeds()), s.next()); err != nil {
			t.Errorf("%s: after Renew: %v", what, err)
		}
	}
	check("asleep", s, err)
	pid := stopped.Env.(*batch).workers[1].p.PID()
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for err = stopped.next(); err == nil; err = stopped.next() {
		// the signal reaches its threads one by one
	}
	check("stopped", stopped, err)
}
