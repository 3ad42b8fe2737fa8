package evaluation

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/plugins/plugintest"
)

// mortal is a plugin whose second and third environment are lost in some calls.
type mortal struct {
	*plugintest.Plugin
	dies func(call int) bool // calls of Step and Reset are counted together
}

type mortalEnv struct {
	env.Env
	dies  func(call int) bool
	calls int
	block env.Block
}

func (p mortal) NewEnv(o env.Options) (env.Env, error) {
	e, err := p.Plugin.NewEnv(o)
	return &mortalEnv{Env: e, dies: p.dies}, err
}

func (e *mortalEnv) Bind(b env.Block) error {
	e.block = b
	return e.Env.Bind(b)
}

// lost writes illegal values into the rows of the lost environments.
func (e *mortalEnv) lost(row int) error {
	if e.calls++; !e.dies(e.calls) {
		return nil
	}
	obs := e.block.Row(trajectory.Obs, row)
	for env := 1; env < 3; env++ {
		obs.Float32()[env*obs.StrideRow/4] = float32(math.NaN())
		if row > 0 {
			e.block.Row(trajectory.Reward, row-1).Float32()[env] = float32(math.Inf(1))
			e.block.Row(trajectory.Terminated, row-1).Data[env] = 1
		}
	}
	return &env.Fault{Kind: env.FaultLost, Env: -1, Lost: []env.Span{{First: 1, Count: 2}}, Err: errors.New("killed")}
}

func (e *mortalEnv) Step(t int) error {
	if err := e.Env.Step(t); err != nil {
		return err
	}
	return e.lost(t + 1)
}

func (e *mortalEnv) Reset(t int, mask []uint8, seeds []uint64) error {
	if err := e.Env.Reset(t, mask, seeds); err != nil {
		return err
	}
	return e.lost(t)
}

// Episodes of a process that dies are played again, to the same ends.
func TestS12ALossChangesNoResult(t *testing.T) {
	o := Options{Episodes: 11, Envs: 4, Seed: 5}
	want, _ := played(t, script(), o)
	for name, dies := range map[string]func(int) bool{
		"in a step":           func(call int) bool { return call == 7 },
		"in the first reset":  func(call int) bool { return call <= 2 },
		"in a reset of some":  func(call int) bool { return call == 11 },
		"in the last episode": func(call int) bool { return call > 30 && call < 33 },
	} {
		p := mortal{plugintest.New(script()), dies}
		o.Plugin, o.Actor = p, &dice{}
		got, err := Run(t.Context(), o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(got.Returns, want.Returns) || !slices.Equal(got.Lengths, want.Lengths) {
			t.Errorf("%s: returns %v of lengths %v, want %v, %v", name, got.Returns, got.Lengths, want.Returns, want.Lengths)
		}
	}
	o.Plugin = mortal{plugintest.New(script()), func(int) bool { return true }}
	if _, err := Run(t.Context(), o); env.Lost(err) == nil {
		t.Errorf("environments that are always lost: %v", err)
	}
}
