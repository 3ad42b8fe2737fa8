package plugintest

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
)

// uneven is a script whose environments end at different times, in both ways.
func uneven() Script {
	return Script{
		Length: func(env, episode int) int { return 1 + (3*env+5*episode)%11 },
		Ends:   func(env, episode int) End { return End(1 + (env+episode)%3) },
		Reward: func(at At) float32 { return float32(at.Step) + float32(at.Action)/2 },
	}
}

func TestEnv_ScriptedEnvironmentsPass(t *testing.T) {
	masked := uneven()
	masked.Actions = 3
	masked.Legal = func(at At, action int) bool { return action != (at.Env+at.Episode+at.Step)%3 }
	scripts := map[string]Script{"plain": {}, "uneven": uneven(), "masked": masked,
		"one at a time": {MaxEnvs: 1}, "next_step alone": {Autoreset: hostabi.NextStep},
		"disabled alone": {Autoreset: hostabi.Disabled}}
	shows := uneven()
	shows.Observations = []hostabi.Tensor{
		{Path: "state", DType: hostabi.I32, N: 400, Start: -2},
		{Path: "level", DType: hostabi.U8, Rank: 1, Shape: [hostabi.MaxRank]uint32{2}, High: 255},
		{Path: "sum", DType: hostabi.F32, Flags: hostabi.TensorNoLow | hostabi.TensorNoHigh},
	}
	shows.Show = func(at At, elems []float64) {
		copy(elems, []float64{float64(at.Env%400 - 2), float64(at.Episode), float64(at.Step), float64(at.Sum)})
	}
	scripts["several observations"] = shows
	for name, list := range Spaces() {
		s := uneven()
		s.Spaces, s.Picture = list, true
		scripts[name] = s
		s.Legal = func(at At, value int) bool { return value != (at.Env+at.Episode+at.Step)%3 } // each element keeps one
		scripts[name+", masked"] = s
	}
	for name, s := range scripts {
		t.Run(name, func(t *testing.T) {
			p := New(s)
			TestEnv(t, p, Options{Steps: 100})
			if p.Open() != 0 {
				t.Errorf("%d batches are not closed", p.Open())
			}
		})
	}
}

// broken is a batch with a fault that no script can have.
type broken struct {
	env.Env
	how  string
	next int // row of the next step
}

type brokenPlugin struct {
	*Plugin
	how string
}

func (p brokenPlugin) NewEnv(o env.Options) (env.Env, error) {
	if p.how == "options" && o.Envs < 1 {
		o.Envs = 1
	}
	e, err := p.Plugin.NewEnv(o)
	if err != nil {
		return nil, err
	}
	return &broken{Env: e, how: p.how}, nil
}

func (b *broken) Spec() *hostabi.EnvSpec {
	s := *b.Env.Spec()
	if b.how == "spec" {
		s.Name = "other@1"
	}
	return &s
}

func (b *broken) Bind(block env.Block) error {
	if b.how == "bind" && b.next > 0 && b.next < block.Schema.Shape.Steps {
		return nil // in the middle of a block it continues there
	}
	b.next = 0
	if b.how == "soa" && block.Schema.Shape.SoA {
		other, _ := trajectory.NewSchema(block.Schema.Spec, trajectory.Shape{Steps: block.Schema.Shape.Steps, Envs: block.Schema.Shape.Envs})
		block.Schema = other
	}
	return b.Env.Bind(block)
}

func (b *broken) Step(t int) error {
	if b.how == "range" && t < 0 {
		return nil
	}
	b.next = t + 1
	return b.Env.Step(t)
}

func (b *broken) Reset(t int, mask []uint8, seeds []uint64) error {
	if b.how == "mask" {
		mask = nil
	}
	return b.Env.Reset(t, mask, seeds)
}

func (b *broken) Renew() error {
	if b.how == "renew" {
		return nil
	}
	return b.Env.Renew()
}

func TestEnv_EachCheckFindsItsFault(t *testing.T) {
	flawed := func(f Flaws) env.Plugin {
		s := uneven()
		s.Flaws = f
		return New(s)
	}
	// Memory that was never written is NaN where blocks are poisoned, and found as that.
	const unwritten = "|of the last observation of an episode, is NaN"
	calls := 0
	moody := uneven()
	moody.Reward = func(At) float32 { calls++; return float32(calls) }
	for _, c := range []struct {
		check  string
		plugin env.Plugin
		want   string
	}{
		{"describes itself", brokenPlugin{New(uneven()), "spec"}, "describes itself as"},
		{"the same seeds give the same steps", New(moody), "differs from real step 0"},
		{"a reset with seeds forgets what was before", flawed(Flaws{IgnoresSeeds: true}), "differs from real step 0"},
		{"a reset with seeds forgets what was before", flawed(Flaws{Leftover: true}), "differs from real step"},
		{"environments do not know of each other", flawed(Flaws{SharedChance: true}), "environment 0 differs"},
		{"blocks can be switched between any two steps", brokenPlugin{New(uneven()), "bind"}, ""},
		{"a masked reset touches no other environment", brokenPlugin{New(uneven()), "mask"}, "differs from real step"},
		{"both layouts give the same steps", brokenPlugin{New(uneven()), "soa"}, "differs from real step" + unwritten},
		{"autoreset modes agree on real steps", flawed(Flaws{NoFinalObs: true}), "same_step against next_step" + unwritten},
		{"autoreset modes agree on real steps", flawed(Flaws{PhantomReward: 2}), "the step after an end has reward 2"},
		{"a renewed batch is like a new one", brokenPlugin{New(uneven()), "renew"}, "no block bound"},
		{"a snapshot gives the same future", flawed(Flaws{LossySnapshot: true}), "differs from real step"},
		{"what is out of range is refused", brokenPlugin{New(uneven()), "range"}, "step -1"},
		{"what is out of range is refused", brokenPlugin{New(uneven()), "options"}, "NewEnv takes"},
		{"a step allocates nothing", flawed(Flaws{Allocates: true}), "allocations a step"},
	} {
		t.Run(c.check, func(t *testing.T) {
			for _, k := range checks() {
				if k.name != c.check {
					continue
				}
				err := k.run(newKit(c.plugin, Options{Steps: 100}))
				if err == nil || !regexp.MustCompile(c.want).MatchString(err.Error()) {
					t.Errorf("got %v, want an error with %q", err, c.want)
				}
				return
			}
			t.Errorf("there is no check %q", c.check)
		})
	}
}

func TestEnv_WhatIsNotOfferedIsSkipped(t *testing.T) {
	for check, s := range map[string]Script{
		"both layouts give the same steps":       {Caps: 1 << 30},
		"autoreset modes agree on real steps":    {Autoreset: hostabi.SameStep},
		"a snapshot gives the same future":       {Flaws: Flaws{NoSnapshot: true}},
		"environments do not know of each other": {MaxEnvs: 1},
	} {
		for _, k := range checks() {
			if k.name != check {
				continue
			}
			if err := k.run(newKit(New(s), Options{Steps: 50})); !errors.Is(err, errSkipped) {
				t.Errorf("%s: %v, want errSkipped", check, err)
			}
		}
	}
}

func TestScript_CuesComeWhenAsked(t *testing.T) {
	for _, c := range []struct {
		cue  Cue
		kind env.FaultKind // 0 = its output is wrong
		want string
	}{
		{Trap, env.FaultTrap, "trap on cue"},
		{Deadline, env.FaultDeadline, "late on cue"},
		{ErrorStatus, env.FaultStatus, "error on cue"},
		{NaNObservation, 0, "observation element 3 is NaN"},
		{NaNReward, 0, "reward is NaN"},
		{InfiniteReward, 0, "reward is +Inf"},
		{TerminatedOfTwo, 0, "terminated is 2"},
		{TruncatedOfTwo, 0, "truncated is 2"},
		{NoLegalAction, 0, "no legal action"},
		{MaskOfThree, 0, "other than 0 and 1"},
	} {
		p := New(Script{
			Legal: func(At, int) bool { return true },
			Cue: func(at At) Cue {
				if at.Env == 2 && at.Calls == 4 && at.Renewals == 0 {
					return c.cue
				}
				return Nothing
			},
		})
		err := newKit(p, Options{Envs: 3}).with(playing{}, func(p *player) error {
			if err := p.start(1); err != nil {
				return err
			}
			err := p.play(10)
			if renewed := p.env.Renew(); renewed != nil {
				t.Errorf("%s: Renew: %v", c.want, renewed)
			}
			return errors.Join(err, p.start(1), p.play(10))
		})
		if err == nil || !strings.HasPrefix(err.Error(), "step 3: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("cue %d: %v, want %q in step 3", c.cue, err, c.want)
		}
		var f *env.Fault
		if errors.As(err, &f) != (c.kind != 0) || f != nil && (f.Kind != c.kind || f.Env != 2 || f.Step != 4) {
			t.Errorf("cue %d: fault %+v, want kind %v of environment 2 in step 4", c.cue, f, c.kind)
		}
	}
}

func TestScript_APoisonedBatchWantsRenew(t *testing.T) {
	p := New(Script{Cue: func(at At) Cue {
		if at.Reset {
			return Nothing
		}
		return Trap
	}})
	err := newKit(p, Options{}).with(playing{}, func(p *player) error {
		if err := p.start(1); err != nil {
			return err
		}
		clear(p.blocks[0].Int32(trajectory.Action))
		_ = p.env.Step(0)
		for what, err := range map[string]error{"Step": p.env.Step(0), "Reset": p.env.Reset(0, nil, nil), "Bind": p.env.Bind(p.blocks[0])} {
			if !errors.Is(err, env.ErrPoisoned) {
				t.Errorf("%s after a trap: %v, want ErrPoisoned", what, err)
			}
		}
		return p.env.Renew()
	})
	if err != nil {
		t.Error(err)
	}
}
