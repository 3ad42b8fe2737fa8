package runner

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
)

// endOf lets an environment end an episode of a task.
func (g *rig) endOf(task uint16, env int, ret float32) {
	g.t.Helper()
	e := trajectory.Episode{Return: ret, Length: 1, Env: uint32(env), Task: task}
	if err := g.episodes.Emit(e.Message()); err != nil {
		g.t.Fatal(err)
	}
	synctest.Wait()
}

// Returns under different rewards are not comparable: a run must not stop for a mean over both.
func TestANewTaskRestartsTheWindow(t *testing.T) {
	watch(t, setup{run: component.Run{Stop: component.StopRule{Return: new(10.0), Window: 4}}, envs: 2}, func(t *testing.T, g *rig) {
		for i := range 4 {
			g.endOf(0, i%2, 9)
		}
		g.endOf(trajectory.TrialTask, 0, 1e6)
		if len(g.stops()) != 0 || g.r.window.Len() != 4 {
			t.Errorf("an episode on trial counts: stops %v, %d in the window", g.stops(), g.r.window.Len())
		}
		g.endOf(1, 0, 100)
		if g.r.window.Len() != 1 || g.r.window.Full() {
			t.Errorf("the window holds %d episodes of both tasks", g.r.window.Len())
		}
		g.endOf(0, 1, 1e6)
		if g.r.window.Len() != 1 {
			t.Error("a late episode of the old task counts")
		}
		for i := range 3 {
			g.endOf(1, i%2, 100)
		}
		if len(g.stops()) != 1 {
			t.Errorf("stopped %d times by the full window of the new task, want once", len(g.stops()))
		}
		g.wantCount("runner/episodes", 10)
	})
}

// A replacing runner in the same process continues the counts: nothing twice, and the window stays full.
func TestARunnerThatTakesOverCountsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := component.Run{Dir: t.TempDir(), Stop: component.StopRule{Window: 4}}
		g := start(t, setup{run: run, envs: 2})
		for i := range 6 {
			g.episode(i%2, 3, 5)
		}
		state := g.snapshot()
		defer g.end()

		next := New(Output{})().(*Runner)
		if err := next.Configure(func(any) error { return nil }); err != nil {
			t.Fatal(err)
		}
		h := *g.h
		h.Receiver = g.loop.NewReceiver("runner")
		h.Inherited = map[string]*arena.Arena{}
		h.Bind(next.Manifest())
		if err := next.Start(&h); err != nil {
			t.Fatal(err)
		}
		h.Receiver.Control(func(*hostabi.Message) {
			if err := next.Restore(state); err != nil {
				t.Error(err)
			}
		}, hostabi.Message{})
		synctest.Wait()
		g.h.Stats.Counter("rollout/env_steps").Add(7)
		synctest.Wait()
		if got := next.envStepsMade(); got != 37 {
			t.Errorf("%d env steps made, want 37", got)
		}
		if n := h.Stats.Counter("runner/episodes").Value(); n != 6 {
			t.Errorf("%d episodes counted, want 6", n)
		}
		if !next.window.Full() {
			t.Error("the window waits for environments that never stopped")
		}
		if err := next.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// Environments may be stepping before the runner's loop runs; their steps belong to the run all the same.
func TestStepsBeforeTheLoopRunsCount(t *testing.T) {
	watch(t, setup{envs: 2, early: 50}, func(t *testing.T, g *rig) {
		g.episode(0, 3, 5)
		state := g.snapshot()
		if made := g.r.envStepsMade(); made != 55 {
			t.Errorf("%d env steps made, want 55", made)
		}
		if strings.Contains(string(state.RawMeta), "18446744") {
			t.Errorf("the snapshot has a number that wrapped: %s", state.RawMeta)
		}
	})
}
