package rollout

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// elsewhere is a plugin whose environments are stepped by other goroutines.
type elsewhere struct{ env.Plugin }

type elsewhereEnv struct {
	env.Env
	steps  sync.WaitGroup
	err    error
	begun  int
	gate   chan struct{} // a step waits for it, if there is one
	halves int           // steps that wait for their second half
}

func (p elsewhere) NewEnv(o env.Options) (env.Env, error) {
	e, err := p.Plugin.NewEnv(o)
	return &elsewhereEnv{Env: e}, err
}

// StartStep is over at once now and then.
func (e *elsewhereEnv) StartStep(t int, ready func()) (bool, error) {
	if e.begun++; e.begun%5 == 0 && e.gate == nil {
		return true, e.Env.Step(t)
	}
	e.halves++
	e.steps.Go(func() {
		if e.gate != nil {
			<-e.gate
		}
		e.err = e.Env.Step(t)
		ready()
	})
	return false, nil
}

func (e *elsewhereEnv) FinishStep() error {
	e.steps.Wait()
	e.halves--
	return e.err
}

func (e *elsewhereEnv) Close() error {
	if e.halves != 0 {
		return errors.New("closed between the two halves of a step")
	}
	return e.Env.Close()
}

// slow is a plugin that says that its environments take long to make and to reset.
type slow struct{ env.Plugin }

func (p slow) Spec() hostabi.EnvSpec {
	s := p.Plugin.Spec()
	s.Flags |= hostabi.SpecInitCalls
	return s
}

// Environments that take long to make are reported to the waiting user.
func TestNewBatch_TellsOfEnvironmentsThatTakeLong(t *testing.T) {
	const line = "environments are made, which takes long by what they say"
	p := plugintest.New(plugintest.Script{})
	if r := newRig(t, rigOptions{plugin: p}); strings.Contains(r.Log.String(), line) {
		t.Errorf("of others the log says %s", r.Log.String())
	}
	if r := newRig(t, rigOptions{plugin: slow{p}}); strings.Count(r.Log.String(), line) != 2 || !strings.Contains(r.Log.String(), "envs=3 first=3") {
		t.Errorf("the log says %s, want a line for each split", r.Log.String())
	}
}

// Whether the split waits for its environments or others do changes nothing in the blocks.
func TestStarter_ChangesNoBlock(t *testing.T) {
	script := scriptOfSixSteps
	dies := once("rl_step", 9, env.Span{First: 1, Count: 2})
	_, want := play(t, rigOptions{plugin: mortal{plugintest.New(script), dies}}, 6)
	r, got := play(t, rigOptions{plugin: elsewhere{mortal{plugintest.New(script), dies}}}, 6)
	if r.c.splits[0].batch.starter == nil {
		t.Fatal("steps are not made in halves")
	}
	for i := range want.valid {
		if got.valid[i] != want.valid[i] || got.reward[i] != want.reward[i] || got.terminated[i] != want.terminated[i] || got.truncated[i] != want.truncated[i] {
			t.Fatalf("row %d of environment %d differs", i/3, i%3)
		}
	}
	for i := range want.obs {
		if got.obs[i] != want.obs[i] {
			t.Fatalf("observation %d is %v, want %v", i, got.obs[i], want.obs[i])
		}
	}
}

func TestStarter_IsNotUsedWhereNoOtherSplitRuns(t *testing.T) {
	p := elsewhere{plugintest.New(plugintest.Script{})}
	for name, o := range map[string]rigOptions{
		"one split":        {plugin: p, config: func(c *config) { c.Splits = 1 }},
		"synchronous mode": {plugin: p, run: component.Run{Synchronous: true}},
	} {
		if r := newRig(t, o); r.c.splits[0].batch.starter != nil {
			t.Errorf("%s: steps are made in halves", name)
		}
	}
}

// While a step is under way there is nothing to save, and an end waits for it.
func TestStarter_BetweenTheHalves(t *testing.T) {
	r := newRig(t, rigOptions{plugin: elsewhere{plugintest.New(plugintest.Script{})}})
	r.silent = true
	r.MustSettle()
	gate := make(chan struct{})
	for _, s := range r.c.splits {
		s.batch.env.(*elsewhereEnv).gate = gate
	}
	r.silent = false
	r.answer(r.asked[0])
	r.MustSettle()
	if !r.c.splits[0].stepping {
		t.Fatal("no step is under way")
	}
	if _, err := r.c.Snapshot(); !errors.Is(err, component.ErrNoSnapshot) || !strings.Contains(err.Error(), "in the middle") {
		t.Errorf("a snapshot meanwhile: %v", err)
	}
	close(gate) // the rig stops the component next
}
