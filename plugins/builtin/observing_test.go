package builtin

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// flickers are the same wrapper of observations in each language, by the names of its modules.
func flickers(t *testing.T, every int) map[string]env.Wrapper {
	t.Helper()
	list := map[string]env.Wrapper{}
	for name, file := range testkit.Guests(t, "flicker", t.TempDir()) {
		path, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		list[name] = env.Wrapper{"use": path, "args": map[string]any{"every": int64(every)}}
	}
	return list
}

// flicker is the one in C.
func flicker(t *testing.T, every int) env.Wrapper {
	t.Helper()
	return env.Wrapper{"use": testkit.Committed(t, "flicker"), "args": map[string]any{"every": int64(every)}}
}

// observedPlugin loads scripted environments of uneven episodes, or built-in ones by name, with wrappers.
func observedPlugin(t *testing.T, e *Engines, name string, script plugintest.Script, list ...env.Wrapper) (env.Plugin, error) {
	t.Helper()
	p, err := e.wrapped(plugintest.New(script), nil, list)
	if name != "" {
		p, err = e.load(t.Context(), name, graph.EnvTable{Source: env.Source{Use: name, Wrap: list}}, "")
	}
	if err == nil {
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return p, err
}

func engines(t *testing.T) *Engines {
	t.Helper()
	_, e := New(Options{})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

var unevenEpisodes = plugintest.Script{Length: func(env, episode int) int { return 3 + (env+2*episode)%7 }}

// Environments whose observations a module writes keep their promises: any order of parts, saved states, copies, snapshots, in each
// mode of reset, with limits within and around.
func TestObserving_KeepsThePromisesOfEnvironments(t *testing.T) {
	e := engines(t)
	for name, w := range flickers(t, 3) {
		for _, mode := range []hostabi.Autoreset{0, hostabi.NextStep} {
			t.Run(name+" "+mode.String(), func(t *testing.T) {
				s := unevenEpisodes
				s.Autoreset = mode
				p, err := observedPlugin(t, e, "", s, env.Wrapper{"time_limit": int64(7)}, w, env.Wrapper{"time_limit": int64(6)}, env.Wrapper{"reward_clip": int64(1)})
				if err != nil {
					t.Fatal(err)
				}
				plugintest.TestEnv(t, p, plugintest.Options{Seed: 3, Steps: 60})
			})
		}
	}
}

// A policy sees the environment's observations, except each third one of an episode, which may be its last. Rewards, flags and the
// environment's own state are unchanged. In each language.
func TestObserving_WritesObservationsInEachLanguage(t *testing.T) {
	const envs, steps, every = 3, 24, 3
	e, modules := engines(t), flickers(t, every)
	if len(modules) < 3 && !testing.Short() {
		t.Log("compilers are missing: there is", slices.Collect(maps.Keys(modules)))
	}
	plain, err := observedPlugin(t, e, "", unevenEpisodes)
	if err != nil {
		t.Fatal(err)
	}
	run := func(t *testing.T, p env.Plugin) (trajectory.Trajectory, [][]float32, env.Env) {
		b, tr := batchOf(t, p, envs, steps, env.Options{})
		if err := b.Reset(0, nil, []uint64{1, 2, 3}); err != nil {
			t.Fatal(err)
		}
		var finals [][]float32
		for step := range steps {
			for i := range envs {
				tr.Row(trajectory.Action, step).Int32()[i] = int32((step + i) % 2)
			}
			if err := b.Step(step); err != nil {
				t.Fatal(err)
			}
			finals = append(finals, slices.Clone(tr.Row(trajectory.FinalObs, 0).Float32()))
		}
		return tr, finals, b
	}
	want, wantFinals, _ := run(t, plain)
	for name, w := range modules {
		t.Run(name, func(t *testing.T) {
			p, err := observedPlugin(t, e, "", unevenEpisodes, w)
			if err != nil {
				t.Fatal(err)
			}
			got, finals, b := run(t, p)
			elems := want.Row(trajectory.Obs, 0).Elems
			blank := make([]float32, elems)
			seen := func(row []float32, count int) []float32 {
				if count%every == 0 {
					return blank
				}
				return row
			}
			ended := 0
			for env := range envs {
				of := func(row []float32) []float32 { return row[env*elems:][:elems] }
				count := 1
				for step := range steps {
					count++
					if want.Row(trajectory.Terminated, step).Data[env] != 0 {
						if x := seen(of(wantFinals[step]), count); !slices.Equal(of(finals[step]), x) {
							t.Fatalf("env %d, the last observation behind step %d is %v, want %v", env, step, of(finals[step]), x)
						}
						count, ended = 1, ended+1
					}
					if g, x := of(got.Row(trajectory.Obs, step+1).Float32()), seen(of(want.Row(trajectory.Obs, step+1).Float32()), count); !slices.Equal(g, x) {
						t.Fatalf("env %d, row %d: it observes %v, want %v", env, step+1, g, x)
					}
				}
			}
			for _, c := range []trajectory.Column{trajectory.Reward, trajectory.Terminated, trajectory.Truncated} {
				for step := range steps {
					if !slices.Equal(got.Row(c, step).Data, want.Row(c, step).Data) {
						t.Errorf("%v of step %d differs", c, step)
					}
				}
			}
			if least := uint64(steps * envs * elems * 4 * 3); ended == 0 || env.Copied(b) < least {
				t.Errorf("%d episodes have ended; %d bytes are copied, want %d or more: out of the environment, to the module and back", ended, env.Copied(b), least)
			}
		})
	}
}

// Errors name an impossible setting.
func TestObserving_NamesImpossibleSettings(t *testing.T) {
	e := engines(t)
	for name, want := range map[string]string{
		"chase@1":            "those of several agents are no wrapper's to write",
		"minatar-breakout@1": "it wants the column obs to be f32, it is u8",
	} {
		if _, err := observedPlugin(t, e, name, plugintest.Script{}, flicker(t, 2)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// An observation that a module has written has no bounds, and keeps its type and shape.
func TestObserving_DescribesItsOutput(t *testing.T) {
	p, err := observedPlugin(t, engines(t), "pendulum@1", plugintest.Script{}, flicker(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	spec := p.Spec()
	obs := spec.All(hostabi.RoleObservation)[0]
	if low, high := obs.Bounds(0); low > -1e30 || high < 1e30 || obs.Shape[0] != 3 || obs.DType != hostabi.F32 {
		t.Errorf("%+v", obs)
	}
}

// A call that fails leaves the observation as it was, and is counted.
func TestObserving_AFaultCostsOneCall(t *testing.T) {
	const envs, steps = 100_000, 2 // the clock is looked at from time to time
	e := engines(t)
	w := flicker(t, 2)
	w["limits"] = map[string]any{"step": "1ns"}
	p, err := observedPlugin(t, e, "", unevenEpisodes, w)
	if err != nil {
		t.Fatal(err)
	}
	faults := 0
	b, tr := batchOf(t, p, envs, steps, env.Options{Tolerate: func(error) bool { faults++; return true }})
	if err := b.Reset(0, nil, nil); err != nil {
		t.Fatal(err)
	}
	for step := range steps {
		if err := b.Step(step); err != nil {
			t.Fatal(err)
		}
		obs := tr.Row(trajectory.Obs, step+1)
		if got := obs.Float32()[obs.StrideRow/4+plugintest.ObsStep]; got != float32(step+1) {
			t.Errorf("step %d: environment 1 observes step %v", step, got)
		}
	}
	if faults != 1+steps {
		t.Errorf("%d faults, want one of each call", faults)
	}
	if b, _ := batchOf(t, p, envs, steps, env.Options{}); b.Reset(0, nil, nil) == nil {
		t.Error("a fault that nobody tolerates is none")
	}
}
