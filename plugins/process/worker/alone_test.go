package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

const orderedEnv = `import gymnasium, numpy, os, time
class Ordered(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1000, (1,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(4)
    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return numpy.zeros(1, numpy.float32), {}
    def step(self, action):
        if action == 1:
            time.sleep(1000)
        if action == 2:
            os._exit(3)
        if action == 3:
            import gc
            from rlhost import _native
            from rlhost.gymnasium import Worker
            worker = next(o for o in gc.get_objects() if isinstance(o, Worker))
            worker._send(_native.LINK_ENV_STEPPED_ALONE, 0, 0, 99)
            time.sleep(1000)
        self.steps += 1
        return numpy.full(1, self.steps, numpy.float32), float(self.steps), False, False, {}
`

// loneStage is a batch that is stepped one by one, and the ends of steps.
type loneStage struct {
	*env.Alone
	t    *testing.T
	over chan loneEnd
}

type loneEnd struct {
	index int
	err   error
}

func newLoneStage(t *testing.T, envs, workers, threads int) *loneStage {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ordered.py"), []byte(orderedEnv), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", dir)
	program := gymnasium(t)
	program.Env = append(program.Env, "PYTHONPATH")
	p := loadFrom(t, program, workers, env.Source{Name: "gym", Use: "ordered:Ordered", Threads: threads, Limits: env.Limits{Step: time.Second}})
	s := &loneStage{t: t, over: make(chan loneEnd, envs)}
	var err error
	s.Alone, err = env.NewAlone(p, env.Options{Name: "alone", Envs: envs, Autoreset: hostabi.SameStep},
		func(index int, _ trajectory.Ended, err error) { s.over <- loneEnd{index, err} })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Reset(nil, make([]uint64, envs)); err != nil {
		t.Fatal(err)
	}
	return s
}

// step begins a step of an environment.
func (s *loneStage) step(index int32, action int32) {
	s.t.Helper()
	block := s.Block()
	block.Row(trajectory.Action, 0).Int32()[index] = action
	if n, err := s.Step([]int32{index}); n != 1 || err != nil {
		s.t.Fatal(n, err)
	}
}

func (s *loneStage) reward(index int) float32 {
	block := s.Block()
	return block.Row(trajectory.Reward, 0).Float32()[index]
}

func TestAlone_ProcessesStepInTheOrderOfTheirActions(t *testing.T) {
	s := newLoneStage(t, 4, 1, 1)
	for round := range 50 {
		for _, index := range []int32{2, 0, 3} {
			s.step(index, 0)
		}
		for _, want := range []int{2, 0, 3} {
			if end := <-s.over; end.index != want || end.err != nil || s.reward(want) != float32(round+1) {
				t.Fatalf("round %d: %+v, want environment %d with reward %d, not %g", round, end, want, round+1, s.reward(want))
			}
		}
	}
}

// A process that dies again and again costs its own environments the steps that they are in, each time.
func TestAlone_ADeadProcessIsReplaced(t *testing.T) {
	s := newLoneStage(t, 4, 2, 1)
	for round := range 3 {
		s.step(0, 2)
		s.step(3, 0)
		var f *env.Fault
		for range 2 {
			end := <-s.over
			switch {
			case end.index == 3 && end.err == nil && s.reward(3) == float32(round+1):
			case end.index == 0 && errors.As(end.err, &f) && f.Kind == env.FaultLost && fmt.Sprint(f.Lost) == "[{0 2}]":
			default:
				t.Fatalf("round %d: %+v", round, end)
			}
		}
		if err := s.Reset([]uint8{1, 1, 0, 0}, make([]uint64, 4)); err != nil {
			t.Fatal(err)
		}
		s.step(1, 0)
		if end := <-s.over; end.index != 1 || end.err != nil || s.reward(1) != 1 {
			t.Fatalf("round %d: %+v", round, end)
		}
	}
}

// The limit on a step is for one environment, from the end of the one before it on.
func TestAlone_TheOneThatHangsIsNamed(t *testing.T) {
	for _, threads := range []int{1, 2} {
		s := newLoneStage(t, 4, 1, threads)
		s.step(3, 0)
		if end := <-s.over; end.err != nil {
			t.Fatal(end.err)
		}
		s.step(2, 1)
		if threads == 1 {
			s.step(1, 0)
		}
		var f *env.Fault
		if end := <-s.over; !errors.As(end.err, &f) || f.Kind != env.FaultDeadline || f.Env != 2 || !strings.Contains(f.Error(), "did not answer within") {
			t.Errorf("environment 2 hangs: %+v", end)
		}
		if _, err := s.Step([]int32{0}); !errors.Is(err, env.ErrPoisoned) {
			t.Errorf("after it: %v", err)
		}
	}
}

func TestAlone_ProgramsThatDoNotKnowItAreNamed(t *testing.T) {
	p := loadIn(t, 2, env.Source{Use: "scripted@1"})
	_, err := env.NewAlone(p, env.Options{Name: "alone", Envs: 4}, func(int, trajectory.Ended, error) {})
	if !errors.Is(err, env.ErrUnsupported) || !strings.Contains(fmt.Sprint(err), "stepped in whole batches") {
		t.Errorf("%v", err)
	}
}

// An answer to a step that nobody has asked for ends the process.
func TestAlone_AnAnswerToNothingEndsTheProcess(t *testing.T) {
	s := newLoneStage(t, 2, 1, 1)
	for _, index := range []int32{0, 1} {
		s.step(index, 3)
		var f *env.Fault
		if end := <-s.over; !errors.As(end.err, &f) || f.Kind != env.FaultLost || !strings.Contains(end.err.Error(), "it wrote nonsense into its ring") {
			t.Errorf("%+v", end)
		}
		if err := s.Reset(nil, make([]uint64, 2)); err != nil {
			t.Fatal(err)
		}
	}
}

// A process that dies while none of its environments is in a step has lost them all the same.
func TestAlone_ADeathBetweenStepsIsToldInTheNext(t *testing.T) {
	s := newLoneStage(t, 2, 1, 1)
	s.step(1, 0)
	if end := <-s.over; end.err != nil {
		t.Fatal(end.err)
	}
	killOf(t, s.Env(), 0)
	s.step(0, 0)
	var f *env.Fault
	if end := <-s.over; end.index != 0 || !errors.As(end.err, &f) || f.Kind != env.FaultLost || fmt.Sprint(f.Lost) != "[{0 2}]" {
		t.Errorf("%+v", end)
	}
}
