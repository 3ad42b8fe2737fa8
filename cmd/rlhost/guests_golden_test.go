package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/rlhost/rlhost/core/env"

	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/examples/plugins/golden"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// exact are the built-in environments that compute in float64 as Gymnasium does. Their structs in C are the state,
// then the number of steps as int32.
var exact = []struct {
	name     string
	limit    uint32
	episodes func() ([]golden.Episode, error)
	start    [][2]float64 // between which an episode begins, uniformly
	// once is how far one step may be away from Gymnasium's, whose sine is another library's; at Acrobot's top speed
	// accelerations of thousands nearly cancel. away is how far a run of follow steps may get: Acrobot is chaotic.
	once   float64
	follow int
	away   float64
}{
	{"acrobot@1", 500, golden.Acrobot, [][2]float64{{-0.1, 0.1}, {-0.1, 0.1}, {-0.1, 0.1}, {-0.1, 0.1}}, 1e-12, 50, 1e-10},
	{"mountaincar@1", 200, golden.MountainCar, [][2]float64{{-0.6, -0.4}, {0, 0}}, 1e-15, 200, 1e-12},
	{"mountaincarcontinuous@1", 999, golden.MountainCarContinuous, [][2]float64{{-0.6, -0.4}, {0, 0}}, 0, 999, 0}, // float32, so no sine differs
	{"pendulum@1", 200, golden.Pendulum, [][2]float64{{-math.Pi, math.Pi}, {-1, 1}}, 1e-14, 50, 1e-11},
}

// TestGuests_ComputeWhatGymnasiumComputes puts an environment into every recorded state, float64 by float64, and compares its results.
func TestGuests_ComputeWhatGymnasiumComputes(t *testing.T) {
	r := newRuntime(t)
	for _, c := range exact {
		t.Run(c.name, func(t *testing.T) {
			episodes, err := c.episodes()
			if err != nil {
				t.Fatal(err)
			}
			p, err := r.Load(t.Context(), c.name, plugins.Builtins()[c.name], env.Source{Name: "golden"})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if got := p.Spec().EpisodeLimit; uint32(got) != c.limit {
				t.Errorf("the time limit is %d, want %d", got, c.limit)
			}
			plugintest.TestEnv(t, p, plugintest.Options{Envs: 13, Seed: 3})
			t.Run("starts", func(t *testing.T) { startsBetween(t, p, c.start) })
			t.Run("from each recorded state", func(t *testing.T) {
				for n, e := range episodes {
					b := exactBatch{newGoldenBatch(t, p, len(e.Steps))}
					from := e.First
					for env, s := range e.Steps {
						b.put(t, env, from, env)
						b.act(env, s.Action)
						from = s.State
					}
					b.step(t)
					for env, s := range e.Steps {
						b.check(t, fmt.Sprintf("episode %d step %d", n, env), env, s, c.once)
					}
				}
			})
			t.Run("on its own", func(t *testing.T) {
				for n, e := range episodes {
					b := exactBatch{newGoldenBatch(t, p, 1)}
					b.put(t, 0, e.First, 0)
					for i, s := range e.Steps[:min(len(e.Steps), c.follow)] {
						b.act(0, s.Action)
						b.step(t)
						b.check(t, fmt.Sprintf("episode %d step %d", n, i), 0, s, c.away)
					}
				}
			})
		})
	}
}

// startsBetween looks at the first states of many episodes: each within its bounds, together a uniform spread.
func startsBetween(t *testing.T, p env.Plugin, bounds [][2]float64) {
	const envs = 1000
	b := newGoldenBatch(t, p, envs)
	seeds := make([]uint64, envs)
	for env := range seeds {
		seeds[env] = uint64(env)
	}
	if err := b.Reset(nil, seeds); err != nil {
		t.Fatal(err)
	}
	sums, squares := make([]float64, len(bounds)), make([]float64, len(bounds))
	for env := range envs {
		for i, v := range stateOf(t, b, env, len(bounds)) {
			if low, high := bounds[i][0], bounds[i][1]; v < low-1e-8 || v > high+1e-8 {
				t.Fatalf("environment %d starts with state %d at %v, want %v to %v", env, i, v, low, high)
			}
			sums[i] += v
			squares[i] += v * v
		}
	}
	for i, bound := range bounds {
		width, mean := bound[1]-bound[0], sums[i]/envs
		deviation := math.Sqrt(max(0, squares[i]/envs-mean*mean))
		if off := math.Abs(mean - (bound[0]+bound[1])/2); off > 0.04*width || math.Abs(deviation-width/math.Sqrt(12)) > 0.03*width {
			t.Errorf("state %d starts with mean %v and standard deviation %v, want those of %v", i, mean, deviation, bound)
		}
	}
}

// stateOf returns the float64 numbers that an environment's saved state begins with.
func stateOf(t *testing.T, b *goldenBatch, env, n int) golden.State {
	t.Helper()
	saved, err := b.SaveEnv(env, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := make(golden.State, n)
	for i := range s {
		s[i] = math.Float64frombits(binary.LittleEndian.Uint64(saved[8*(i+1):])) // after the head
	}
	return s
}

// exactBatch is a stage of environments whose float64 states can be read and set.
type exactBatch struct{ *goldenBatch }

// put gives a running environment a recorded state and a number of steps; its limit and its other arguments stay.
func (b exactBatch) put(t *testing.T, env int, s golden.State, steps int) {
	t.Helper()
	saved, err := b.SaveEnv(env, nil)
	if err != nil {
		t.Fatal(err)
	}
	own := saved[8:] // after the head
	for i, v := range s {
		binary.LittleEndian.PutUint64(own[8*i:], math.Float64bits(v))
	}
	binary.LittleEndian.PutUint32(own[8*len(s):], uint32(steps))
	if err := b.Stater.LoadEnv(env, saved); err != nil {
		t.Fatal(err)
	}
}

func (b exactBatch) step(t *testing.T) {
	t.Helper()
	if _, err := b.Step(); err != nil {
		t.Fatal(err)
	}
}

// check compares everything that a step wrote. The state of an environment whose episode has ended is a new one; its
// last observation says where the old one was.
func (b exactBatch) check(t *testing.T, what string, env int, want golden.Step, within float64) {
	t.Helper()
	if !near(b.Reward()[env], want.Reward, within) || b.Terminated()[env] != want.Terminated || b.Truncated()[env] != want.Truncated {
		t.Errorf("%s: reward %g, terminated %d, truncated %d; Gymnasium has %g, %d, %d", what, b.Reward()[env],
			b.Terminated()[env], b.Truncated()[env], want.Reward, want.Terminated, want.Truncated)
	}
	obs := b.Obs()
	if want.Terminated|want.Truncated != 0 {
		obs = b.FinalObs()
	} else {
		for i, got := range stateOf(t, b.goldenBatch, env, len(want.State)) {
			if off := math.Abs(got - want.State[i]); !(off <= within*max(1, math.Abs(got))) {
				t.Errorf("%s: state %d is %v, Gymnasium's %v: %.2g apart", what, i, got, want.State[i], off)
			}
		}
	}
	for i, v := range want.Obs {
		got := obs.Float32()[(env*obs.StrideRow+i*obs.StrideElem)/4]
		if !near(got, v, within) {
			t.Errorf("%s: observation %d is %v, Gymnasium's %v", what, i, got, v)
		}
	}
}

// near reports whether Gymnasium's float64, if it may be off by within, can round to a float32.
func near(got, want float32, within float64) bool {
	return got == want || math.Abs(float64(got)-float64(want)) <= 10*within+math.Abs(float64(want))*0x1p-23
}

// TestTaxi_IsGymnasiumsInEveryState takes every action in each of the 500 states, and compares every mask.
func TestTaxi_IsGymnasiumsInEveryState(t *testing.T) {
	moves, legal, err := golden.Taxi()
	if err != nil {
		t.Fatal(err)
	}
	r := newRuntime(t)
	p, err := r.Load(t.Context(), "taxi@1", plugins.Builtins()["taxi@1"], env.Source{Name: "taxi", Args: map[string]string{"observation": "number"}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	plugintest.TestEnv(t, p, plugintest.Options{Envs: 13, Seed: 3})
	b := newGoldenBatch(t, p, golden.TaxiStates*golden.TaxiActions)
	for i := range b.envs {
		state := i / golden.TaxiActions
		var saved []byte
		for _, v := range []int{state / 100, state / 20 % 5, state / 4 % 5, state % 4, 7, 200, 1} { // and steps, their limit, the observation
			saved = binary.LittleEndian.AppendUint32(saved, uint32(v))
		}
		if err := b.LoadEnv(i, append(saved, make([]byte, 12)...)); err != nil {
			t.Fatal(err)
		}
		b.act(i, float32(i%golden.TaxiActions))
	}
	if _, err := b.Step(); err != nil {
		t.Fatal(err)
	}
	obs, mask := b.Obs(), b.Mask()
	for i := range b.envs {
		state, action := i/golden.TaxiActions, i%golden.TaxiActions
		want := moves[state][action]
		seen := obs
		if want.Terminated != 0 {
			seen = b.FinalObs()
		}
		if got := seen.Value(i, 0); got != float64(want.Next) || b.Reward()[i] != float32(want.Reward) || b.Terminated()[i] != want.Terminated {
			t.Errorf("state %d action %d: state %v, reward %v, terminated %d; Gymnasium has %+v", state, action, got, b.Reward()[i], b.Terminated()[i], want)
		}
		for a := range golden.TaxiActions {
			if now := int(obs.Value(i, 0)); mask.Value(i, a) != float64(legal[now][a]) {
				t.Errorf("state %d: legal action %d is %v, Gymnasium has %d", now, a, mask.Value(i, a), legal[now][a])
			}
		}
	}
}
