package main

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/examples/plugins/golden"
	"github.com/rlhost/rlhost/plugins/envcheck"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// lunarLander is the module, in two of its forms: with choices, and with thrusts in wind.
var lunarLander = struct {
	file  string
	forms map[string]map[string]string // arguments
}{"../../examples/plugins/lunarlander-cpp/lunarlander.wasm", map[string]map[string]string{
	"discrete": nil, "continuous": {"continuous": "true", "enable_wind": "true"},
}}

func TestLunarLander_PassesEveryCheck(t *testing.T) {
	r := newRuntime(t)
	for form, args := range lunarLander.forms {
		t.Run(form, func(t *testing.T) {
			p := loadGuest(t, r, lunarLander.file, args)
			for _, got := range envcheck.Run(t.Context(), p, envcheck.Options{Steps: 1200, Seed: 2}) {
				if got.Verdict != envcheck.OK {
					t.Errorf("%+v", got)
				}
			}
			plugintest.TestEnv(t, p, plugintest.Options{Envs: 64, Seed: 3})
		})
	}
}

// TestLunarLander_FliesAsGymnasiumsDoes flies the recorded episodes. Sines are of another library, which may round the last bit otherwise, and
// Box2D makes more of it with each contact: the first 200 steps are compared, and the ends of the discrete form, in which no leg touches the
// moon a step earlier or later.
func TestLunarLander_FliesAsGymnasiumsDoes(t *testing.T) {
	const follow, within, rewardWithin = 200, 0.001, 0.01
	r := newRuntime(t)
	for form, record := range map[string]func() ([]golden.Episode, error){"discrete": golden.LunarLander, "continuous": golden.LunarLanderContinuous} {
		t.Run(form, func(t *testing.T) {
			episodes, err := record()
			if err != nil {
				t.Fatal(err)
			}
			b := newGoldenBatch(t, loadGuest(t, r, lunarLander.file, lunarLander.forms[form]), 1)
			for seed, e := range episodes {
				if err := b.Reset(nil, []uint64{uint64(seed)}); err != nil {
					t.Fatal(err)
				}
				for i, s := range e.Steps {
					b.fly(form, int(s.Action))
					if _, err := b.Step(); err != nil {
						t.Fatal(err)
					}
					ended := b.Terminated()[0] == s.Terminated && b.Truncated()[0] == s.Truncated
					if !ended && (i < follow || form == "discrete") {
						t.Errorf("seed %d step %d: terminated %d, truncated %d, want %d and %d", seed, i, b.Terminated()[0], b.Truncated()[0], s.Terminated, s.Truncated)
					}
					if i >= follow {
						continue
					}
					if away := b.away(0, widened(s.Obs)); away > within {
						t.Errorf("seed %d step %d: an observation is %g away", seed, i, away)
					}
					if away := math.Abs(float64(b.Reward()[0] - s.Reward)); away > rewardWithin {
						t.Errorf("seed %d step %d: the reward is %g away", seed, i, away)
					}
				}
			}
		})
	}
}

// fly gives an action of a record, which stands for two thrusts in the continuous form.
func (b *goldenBatch) fly(form string, action int) {
	if form == "discrete" {
		b.act(0, float32(action))
		return
	}
	tr, row := b.Acting()
	m := tr.Row(trajectory.Action, row)
	for i, level := range []int{action % 16, action / 16} {
		binary.LittleEndian.PutUint32(m.Data[i*m.StrideElem:], math.Float32bits(float32(float64(level)/7.5-1)))
	}
}

func widened(from []float32) golden.State {
	to := make(golden.State, len(from))
	for i, v := range from {
		to[i] = float64(v)
	}
	return to
}

// A state is an episode's seed and actions: what is not one is refused, and changes nothing.
func TestLunarLander_RefusesBrokenStates(t *testing.T) {
	b := newGoldenBatch(t, loadGuest(t, newRuntime(t), lunarLander.file, nil), 2)
	for range 30 {
		b.act(0, 2)
		b.act(1, 2)
		if _, err := b.Step(); err != nil {
			t.Fatal(err)
		}
	}
	saved, err := b.SaveEnv(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	const head, tail = 8, 12 // before the state, and after it: flags and the random stream
	state := saved[head : len(saved)-tail]
	for name, broken := range map[string][]byte{
		"no seed": state[:4], "half an action": state[:len(state)-4], "too many actions": append(state[:len(state):len(state)], make([]byte, 8*1000)...),
	} {
		if err := b.LoadEnv(0, append(broken[:len(broken):len(broken)], saved[len(saved)-tail:]...)); err == nil {
			t.Errorf("a state with %s is taken", name)
		}
	}
	if after, err := b.SaveEnv(0, nil); err != nil || string(after) != string(saved) {
		t.Errorf("%v, or the state is another one after the refusals", err)
	}
	if err := b.Stater.LoadEnv(1, saved); err != nil {
		t.Fatal(err)
	}
}

// From about -180 at random to here takes 100,000 env steps, and to 200 eight times as many.
func TestLunarLander_IsLearned(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	file, err := filepath.Abs("../../examples/pipelines/lunarlander-module.toml")
	if err != nil {
		t.Fatal(err)
	}
	w.reaches(-60, 250_000, file)
}
