package main

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"

	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/examples/plugins/golden"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wasm"
	"github.com/rlhost/rlhost/sdk"
)

// TestGuests holds every CartPole to the promises of env.Env, to Gymnasium's recorded episodes, and to the
// others, bit for bit.
func TestGuests(t *testing.T) {
	episodes, err := golden.CartPole()
	if err != nil {
		t.Fatal(err)
	}
	r := newRuntime(t)
	hashes := map[string]uint64{}
	for name, file := range testkit.Guests(t, "cartpole", t.TempDir()) {
		t.Run(name, func(t *testing.T) {
			p := loadGuest(t, r, file, nil)
			want := hostabi.Arg{Name: "max_steps", Doc: "steps after which an episode is truncated", Type: hostabi.ArgInteger, Default: "500", Min: 1, Max: math.MaxInt32}
			if got := p.Spec().Args; len(got) != 1 || !reflect.DeepEqual(got[0], want) {
				t.Errorf("takes the arguments %+v, want %+v", got, want)
			}
			plugintest.TestEnv(t, p, plugintest.Options{Envs: 13, Seed: 3})
			t.Run("with truncations", func(t *testing.T) {
				plugintest.TestEnv(t, loadGuest(t, r, file, map[string]string{"max_steps": "7"}), plugintest.Options{Envs: 9})
			})
			t.Run("steps like Gymnasium from each recorded state", func(t *testing.T) { eachRecordedState(t, p, episodes) })
			t.Run("runs like Gymnasium for sixty steps", func(t *testing.T) { sixtySteps(t, p, episodes) })
			hashes[name] = traceHash(t, p)
		})
	}
	if values := slices.Sorted(maps.Values(hashes)); len(slices.Compact(values)) > 1 {
		t.Errorf("the guests write %x: want the same bits", hashes)
	}
}

func loadGuest(t *testing.T, r *wasm.Runtime, file string, args map[string]string) env.Plugin {
	t.Helper()
	p, err := r.Load(t.Context(), file, nil, env.Source{Name: "cartpole", Args: args})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// goldenBatch is a stage of CartPoles whose states can be set.
type goldenBatch struct {
	*env.Driver
	env.Stater
	envs int
}

// start begins episodes with the seeds that seedOf gives by index.
func (b *goldenBatch) start(t *testing.T, seedOf func(index int) uint64) {
	t.Helper()
	seeds := make([]uint64, b.envs)
	for index := range seeds {
		seeds[index] = seedOf(index)
	}
	if err := b.Reset(nil, seeds); err != nil {
		t.Fatal(err)
	}
}

func newGoldenBatch(t *testing.T, p env.Plugin, envs int) *goldenBatch {
	t.Helper()
	stage, err := env.NewDriver(p, env.DriverOptions{Options: env.Options{Name: "golden", Envs: envs}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stage.Close(); err != nil {
			t.Error(err)
		}
	})
	stater, ok := stage.Env.(env.Stater)
	if !ok {
		t.Fatalf("%T cannot set states", stage.Env)
	}
	seeds := make([]uint64, envs)
	if err := stage.Reset(nil, seeds); err != nil {
		t.Fatal(err)
	}
	return &goldenBatch{stage, stater, envs}
}

// LoadEnv sets one environment's state, flags and random stream, after the head of version 0.
func (b *goldenBatch) LoadEnv(env int, saved []byte) error {
	head := binary.LittleEndian.AppendUint32(make([]byte, 4), uint32(len(saved)))
	return b.Stater.LoadEnv(env, append(head, saved...))
}

// act chooses one environment's action: a number of a choice, or how hard it pushes.
func (b *goldenBatch) act(env int, action float32) {
	tr, row := b.Acting()
	m := tr.Row(trajectory.Action, row)
	bits := uint32(int32(action))
	if m.DType == hostabi.F32 {
		bits = math.Float32bits(action)
	}
	binary.LittleEndian.PutUint32(m.Data[env*m.StrideRow:], bits)
}

// put gives one environment a recorded state: four numbers, steps, flags, random stream.
func (b *goldenBatch) put(t *testing.T, env int, s golden.State, steps int) {
	t.Helper()
	saved := make([]byte, 0, 32)
	for _, v := range s {
		saved = binary.LittleEndian.AppendUint32(saved, math.Float32bits(float32(v)))
	}
	saved = binary.LittleEndian.AppendUint32(saved, uint32(steps))
	saved = append(saved, make([]byte, 12)...)
	if err := b.LoadEnv(env, saved); err != nil {
		t.Fatal(err)
	}
}

// away returns how far the environment's observation after a step is from a recorded state.
func (b *goldenBatch) away(env int, want golden.State) float64 {
	m := b.Obs()
	if b.Terminated()[env]|b.Truncated()[env] != 0 {
		m = b.FinalObs()
	}
	most := 0.0
	for i, v := range want {
		got := m.Float32()[(env*m.StrideRow+i*m.StrideElem)/4]
		most = max(most, math.Abs(float64(got)-v))
	}
	return most
}

// check compares a step's output with the record.
func (b *goldenBatch) check(t *testing.T, what string, env int, want golden.Step, within float64) {
	t.Helper()
	if away := b.away(env, want.State); away > within {
		t.Errorf("%s: %g away from Gymnasium's state, want %g at most", what, away, within)
	}
	if b.Reward()[env] != want.Reward || b.Terminated()[env] != want.Terminated || b.Truncated()[env] != want.Truncated {
		t.Errorf("%s: reward %g, terminated %d, truncated %d; Gymnasium has %g, %d, %d", what, b.Reward()[env],
			b.Terminated()[env], b.Truncated()[env], want.Reward, want.Terminated, want.Truncated)
	}
}

// eachRecordedState makes every recorded step from the recorded state before it.
func eachRecordedState(t *testing.T, p env.Plugin, episodes []golden.Episode) {
	const envs = 64
	b := newGoldenBatch(t, p, envs)
	for n, e := range episodes {
		for first := 0; first < len(e.Steps); first += envs {
			steps := e.Steps[first:min(first+envs, len(e.Steps))]
			clear(b.Action())
			for env, s := range steps {
				from := e.First
				if first+env > 0 {
					from = e.Steps[first+env-1].State
				}
				b.put(t, env, from, first+env)
				b.Action()[env] = int32(s.Action)
			}
			if _, err := b.Step(); err != nil {
				t.Fatal(err)
			}
			for env, s := range steps {
				b.check(t, fmt.Sprintf("episode %d step %d", n, first+env), env, s, 1e-6)
			}
		}
	}
}

// sixtySteps plays the first steps of every recorded episode without looking at the record.
func sixtySteps(t *testing.T, p env.Plugin, episodes []golden.Episode) {
	b := newGoldenBatch(t, p, len(episodes))
	for n, e := range episodes {
		b.put(t, n, e.First, 0)
	}
	for step := range 60 {
		for n, e := range episodes {
			b.Action()[n] = 0
			if step < len(e.Steps) {
				b.Action()[n] = int32(e.Steps[step].Action)
			}
		}
		if _, err := b.Step(); err != nil {
			t.Fatal(err)
		}
		for n, e := range episodes {
			if step < len(e.Steps) {
				b.check(t, fmt.Sprintf("episode %d step %d", n, step), n, e.Steps[step], 1e-4)
			}
		}
	}
}

// traceHash returns a hash of all that 1000 steps with fixed actions write.
func traceHash(t *testing.T, p env.Plugin) uint64 {
	t.Helper()
	b := newGoldenBatch(t, p, 13)
	b.start(t, func(index int) uint64 { return env.Seed(5, index) })
	spec := p.Spec()
	infos := len(spec.All(hostabi.RoleInfo))
	h := fnv.New64a()
	for step := range 1000 {
		for index := range b.envs {
			b.Action()[index] = int32(env.Seed(uint64(step), index) & 1)
		}
		if _, err := b.Step(); err != nil {
			t.Fatal(err)
		}
		for _, m := range b.Observed(trajectory.Observed) {
			h.Write(m.Data)
		}
		h.Write(b.Terminated())
		h.Write(b.Truncated())
		tr, now := b.Whole()
		for i := range infos {
			h.Write(tr.Row(trajectory.Info.At(i), now-1).Data)
		}
	}
	return h.Sum64()
}

// An environment whose positions are observed equals the other one in everything else.
func TestGuests_OfWhichPositionsAreObserved(t *testing.T) {
	r := newRuntime(t)
	for name, kept := range map[string][]int{"cartpole": {0, 2}, "pendulum": {0, 1}} {
		t.Run(name, func(t *testing.T) {
			const envs = 21
			load := func(builtin string) *goldenBatch {
				p, err := r.Load(t.Context(), builtin, plugins.Builtins()[builtin], env.Source{Name: "game"})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = p.Close() })
				plugintest.TestEnv(t, p, plugintest.Options{Envs: envs, Seed: 3})
				return newGoldenBatch(t, p, envs)
			}
			all, some := load(name+"@1"), load(name+"-positions@1")
			seen := func(step int) {
				t.Helper()
				for i := range envs {
					want, got := row(all.Observations(), i), row(some.Observations(), i)
					if !slices.Equal(got, []float64{want[kept[0]], want[kept[1]]}) {
						t.Fatalf("step %d of environment %d: observed %v, want elements %v of %v", step, i, got, kept, want)
					}
				}
			}
			seen(0)
			for step := range 300 {
				for _, b := range []*goldenBatch{all, some} {
					draws := sdk.NewRand(uint64(step))
					b.Draw(func(int) uint64 { return draws.Next() })
					if _, err := b.Step(); err != nil {
						t.Fatal(err)
					}
				}
				seen(step + 1)
				if !slices.Equal(all.Reward(), some.Reward()) || !slices.Equal(all.Terminated(), some.Terminated()) || !slices.Equal(all.Truncated(), some.Truncated()) {
					t.Fatalf("step %d: rewards or ends differ", step)
				}
			}
		})
	}
}
