package rollout

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// when gives a cue in one call of Step of one environment, before the first restart.
func when(env int, call uint64, cue plugintest.Cue) plugintest.Script {
	return plugintest.Script{
		Legal: func(at plugintest.At, action int) bool { return true },
		Cue: func(at plugintest.At) plugintest.Cue {
			if at.Env == env && at.Calls == call && at.Renewals == 0 {
				return cue
			}
			return plugintest.Nothing
		},
	}
}

func TestFault_IsNamedAndCostsOneBlock(t *testing.T) {
	for cue, want := range map[plugintest.Cue]string{
		plugintest.Trap:            "rollout env 4: trap in rl_step at step 7: trap on cue",
		plugintest.Deadline:        "rollout env 4: deadline in rl_step at step 7: late on cue",
		plugintest.ErrorStatus:     "rollout env 4: status in rl_step at step 7: error on cue",
		plugintest.NaNObservation:  "rollout env 4: output in rl_step at step 7: environment wrote a value that is not allowed: observation element 3 is NaN",
		plugintest.NaNReward:       "rollout env 4: output in rl_step at step 7: environment wrote a value that is not allowed: reward is NaN",
		plugintest.InfiniteReward:  "reward is +Inf",
		plugintest.TerminatedOfTwo: "rollout env 4: output in rl_step at step 7: environment wrote a value that is not allowed: terminated is 2, want 0 or 1",
		plugintest.TruncatedOfTwo:  "truncated is 2, want 0 or 1",
		plugintest.NoLegalAction:   "rollout env 4: output in rl_step at step 7: environment wrote a value that is not allowed: action_mask has no legal action",
		plugintest.MaskOfThree:     "action_mask holds a value other than 0 and 1",
	} {
		r := newRig(t, rigOptions{script: when(4, 7, cue)})
		r.until(t, 8)
		if !strings.Contains(r.Log.String(), want) || !strings.Contains(r.Log.String(), "restart=1 max_restarts=5 lost_env_steps=6") {
			t.Errorf("log %s\nwant it to say %q, restart 1 and 6 env steps lost", r.Log.String(), want)
		}
		if r.counter("rollout/restarts") != 1 || r.counter("rollout/lost_env_steps") != 6 {
			t.Errorf("%q: %d restarts and %d lost env steps, want 1 and 6: the two rows before it of 3 environments", want,
				r.counter("rollout/restarts"), r.counter("rollout/lost_env_steps"))
		}
		var sequences [2][]uint64
		for _, b := range r.blocks {
			sequences[b.meta.Split] = append(sequences[b.meta.Split], b.meta.Sequence)
			for k, s := range sequences[b.meta.Split] {
				if s != uint64(k) {
					t.Errorf("%q: blocks %v of split %d", want, sequences[b.meta.Split], b.meta.Split)
				}
			}
		}
	}
}

// A component on probation bears no fault: its owner hears of it, and replaces the component.
func TestFault_OnProbationIsNotBorne(t *testing.T) {
	for _, watched := range []bool{true, false} {
		r := newRig(t, rigOptions{script: when(4, 7, plugintest.Trap)})
		var told []error
		r.Host.Failed = func(fault error) bool {
			told = append(told, fault)
			if watched {
				r.Host.Receiver.Hold()
			}
			return watched
		}
		if watched {
			r.MustRun(func() bool { return len(told) > 0 })
			r.MustSettle()
		} else {
			r.until(t, 8)
		}
		want := uint64(1)
		if watched {
			want = 0
		}
		if len(told) != 1 || !strings.HasPrefix(told[0].Error(), "rollout env 4: trap") || r.counter("rollout/restarts") != want {
			t.Errorf("watched %v: told %v, %d restarts", watched, told, r.counter("rollout/restarts"))
		}
		if got := r.counter("rollout/lost_env_steps"); got != 6 {
			t.Errorf("watched %v: %d env steps lost, want 6", watched, got)
		}
	}
}

// After a restart environments have other seeds, episodes begin again, and env steps do not repeat: the steps that
// led to the fault are not played again.
func TestFault_TheNextBlockBeginsFromScratch(t *testing.T) {
	r := newRig(t, rigOptions{script: when(4, 7, plugintest.Trap)})
	r.until(t, 10)
	var first, again *kept
	for i := range r.blocks {
		b := &r.blocks[i]
		if b.meta.Split != 1 {
			continue
		}
		switch b.meta.Sequence {
		case 0:
			first = b
		case 1:
			again = b
		}
	}
	if again.meta.FirstStep != 4+2 {
		t.Errorf("the block after the fault begins at env step %d, want 6", again.meta.FirstStep)
	}
	for env := range 3 {
		before, after := first.obs[env*plugintest.ObsElems:], again.obs[env*plugintest.ObsElems:]
		if after[plugintest.ObsEpisode] != 0 || after[plugintest.ObsStep] != 0 {
			t.Errorf("environment %d goes on with %v, want a first episode", 3+env, after[:plugintest.ObsElems])
		}
		if after[plugintest.ObsChance] == before[plugintest.ObsChance] {
			t.Errorf("environment %d draws the number that it began with before the fault", 3+env)
		}
	}
}

func TestFault_InAResetIsAFaultToo(t *testing.T) {
	resets := 0
	script := plugintest.Script{Cue: func(at plugintest.At) plugintest.Cue {
		if at.Reset && at.Env == 1 {
			if resets++; resets == 1 {
				return plugintest.NaNObservation
			}
			if resets == 2 {
				return plugintest.Trap
			}
		}
		return plugintest.Nothing
	}}
	r := newRig(t, rigOptions{script: script})
	r.until(t, 4)
	for _, want := range []string{"rollout env 1: output in rl_reset at step 0", "rollout env 1: trap in rl_reset at step 0"} {
		if !strings.Contains(r.Log.String(), want) {
			t.Errorf("log %s\nwant %q", r.Log.String(), want)
		}
	}
	if r.counter("rollout/restarts") != 2 || r.counter("rollout/lost_env_steps") != 0 {
		t.Errorf("%d restarts, %d lost env steps; want 2 and 0", r.counter("rollout/restarts"), r.counter("rollout/lost_env_steps"))
	}
}

func TestFault_TheBudgetEnds(t *testing.T) {
	script := plugintest.Script{Cue: func(at plugintest.At) plugintest.Cue {
		if at.Env == 5 && at.Calls == 2 {
			return plugintest.Trap
		}
		return plugintest.Nothing
	}}
	for budget := range 3 {
		r := newRig(t, rigOptions{script: script, config: func(c *config) { c.MaxRestarts = budget }})
		err := r.RunUntil(func() bool { return len(r.blocks) > 50 })
		var f *env.Fault
		if !errors.As(err, &f) || f.Env != 5 {
			t.Fatalf("max_restarts = %d: %v, want the fault of environment 5", budget, err)
		}
		if want := "restarted " + string('0'+rune(budget)) + " times already (max_restarts)"; !strings.Contains(err.Error(), want) {
			t.Errorf("max_restarts = %d: %v, want %q", budget, err, want)
		}
		if got := r.counter("rollout/restarts"); got != uint64(budget) {
			t.Errorf("max_restarts = %d: %d restarts", budget, got)
		}
	}
}

// Environments that cannot make a single step are not restarted again and again: the run ends with one message.
func TestFault_NoFirstStepEndsTheRunAndIsToldOnce(t *testing.T) {
	for _, splits := range []int{1, 2} {
		script := plugintest.Script{Cue: func(at plugintest.At) plugintest.Cue {
			if !at.Reset {
				return plugintest.ErrorStatus
			}
			return plugintest.Nothing
		}}
		r := newRig(t, rigOptions{script: script, config: func(c *config) { c.Splits = splits }})
		err := r.RunUntil(func() bool { return len(r.blocks) > 0 })
		if !errors.Is(err, env.ErrFirstStep) || !strings.Contains(err.Error(), "status in rl_step at step 1") {
			t.Errorf("%d splits: %v, want the fault and %v", splits, err, env.ErrFirstStep)
		}
		if got := r.counter("rollout/restarts"); got != 1 {
			t.Errorf("%d splits: %d restarts, want 1", splits, got)
		}
		if log := r.Log.String(); strings.Contains(log, "restarted") {
			t.Errorf("%d splits: the log says too what the error says:\n%s", splits, log)
		}
	}
}

// stubborn is a plugin whose environments cannot be renewed.
type stubborn struct{ *plugintest.Plugin }

type stubbornEnv struct{ env.Env }

var errStubborn = errors.New("no way back")

func (p stubborn) NewEnv(o env.Options) (env.Env, error) {
	e, err := p.Plugin.NewEnv(o)
	return stubbornEnv{e}, err
}

func (stubbornEnv) Renew() error { return errStubborn }

func TestFault_AFailedRenewalEndsTheRun(t *testing.T) {
	r := newRig(t, rigOptions{plugin: stubborn{plugintest.New(when(0, 3, plugintest.Trap))}})
	if err := r.RunUntil(func() bool { return len(r.blocks) > 50 }); !errors.Is(err, errStubborn) {
		t.Errorf("got %v, want %v", err, errStubborn)
	}
}

func TestFault_OtherErrorsEndTheRun(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.c.splits[0].batch.env.Close() // its next call returns an error that is no fault of the environment's
	if err := r.RunUntil(func() bool { return len(r.blocks) > 50 }); !errors.Is(err, env.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
}

func TestOnActions_RefusesWhatNobodyAskedFor(t *testing.T) {
	for name, change := range map[string]func(*hostabi.Message){
		"another row":        func(m *hostabi.Message) { m.T++ },
		"another block":      func(m *hostabi.Message) { m.Handle++ },
		"another split":      func(m *hostabi.Message) { m.Split = 1 - m.Split },
		"no such split":      func(m *hostabi.Message) { m.Split = 9 },
		"the same once more": func(*hostabi.Message) {},
	} {
		r := newRig(t, rigOptions{})
		r.silent = true
		r.MustSettle()
		if len(r.asked) != 2 {
			t.Fatalf("%d requests, want one of each split", len(r.asked))
		}
		m := r.asked[0]
		if name == "the same once more" {
			r.answer(m)
		}
		change(&m)
		if err := r.answers.Emit(m); err != nil {
			t.Fatal(err)
		}
		if err := r.Settle(); err == nil || !strings.Contains(err.Error(), "which were not asked for") {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
}

// The successor of a component that was stopped without a state drops answers about unknown blocks, and refuses others as ever.
func TestOnActions_DropsWhatAPredecessorAsked(t *testing.T) {
	for name, change := range map[string]func(*hostabi.Message){
		"": func(m *hostabi.Message) { m.Handle += 1 << 40 },
		"row 1 of split 0, which were not asked for": func(m *hostabi.Message) { m.T++ },
	} {
		r := newRig(t, rigOptions{})
		r.silent = true
		r.MustSettle()
		r.c.h.Abrupt = true
		m := r.asked[0]
		change(&m)
		if err := r.answers.Emit(m); err != nil {
			t.Fatal(err)
		}
		switch err := r.Settle(); {
		case name == "" && err != nil:
			t.Errorf("an answer about another block: %v", err)
		case name != "" && (err == nil || !strings.Contains(err.Error(), name)):
			t.Errorf("%v, want %s", err, name)
		}
	}
}
