package builtin

import (
	"errors"
	"log/slog"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// wrapperModules are the wrappers of the examples that are modules, in C.
func wrapperModules(t *testing.T) map[string]env.Wrapper {
	t.Helper()
	list := map[string]env.Wrapper{}
	for _, name := range []string{"shaper", "center"} {
		list[name] = env.Wrapper{"use": testkit.Committed(t, name)}
	}
	return list
}

// shapers are the same wrapper in each language, by the names of its modules. The one in Go reports its output.
func shapers(t *testing.T) map[string]env.Wrapper {
	t.Helper()
	list := map[string]env.Wrapper{}
	for name, file := range testkit.Guests(t, "shaper", t.TempDir()) {
		path, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		list[name] = env.Wrapper{"use": path, "args": map[string]any{"scale": 0.5, "shift": 0.25}}
		if strings.Contains(name, "go") {
			list[name]["grants"] = []any{"metric"}
		}
	}
	return list
}

// loader loads environments with wrappers until the test ends.
func loader(t *testing.T) func(list ...env.Wrapper) (env.Plugin, error) {
	t.Helper()
	_, e := New(Options{})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(list ...env.Wrapper) (env.Plugin, error) {
		p, err := e.wrapped(plugintest.New(plugintest.Script{
			Length: func(env, episode int) int { return 3 + (env+2*episode)%7 },
			Reward: func(at plugintest.At) float32 { return float32(at.Step) - 2.5 + float32(at.Env) },
		}), nil, list)
		if err == nil {
			t.Cleanup(func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		return p, err
	}
}

// Environments with modules around them keep their promises: any order of parts, saved states, copies, snapshots.
func TestWrapperModules_KeepThePromisesOfEnvironments(t *testing.T) {
	load, modules := loader(t), wrapperModules(t)
	list := shapers(t)
	list["center"] = modules["center"]
	for name, w := range list {
		t.Run(name, func(t *testing.T) {
			p, err := load(env.Wrapper{"time_limit": int64(6)}, w, env.Wrapper{"reward_clip": int64(1)}, modules["shaper"])
			if err != nil {
				t.Fatal(err)
			}
			plugintest.TestEnv(t, p, plugintest.Options{Seed: 3, Steps: 60})
		})
	}
}

// batchOf returns a batch, made with o, that is bound to a block with a column for shaped rewards.
func batchOf(t *testing.T, p env.Plugin, envs, steps int, o env.Options) (env.Env, trajectory.Trajectory) {
	t.Helper()
	schema, err := trajectory.NewSchema(p.Spec(), trajectory.Shape{Steps: steps, Envs: envs, Shaped: true})
	if err != nil {
		t.Fatal(err)
	}
	o.Name, o.Envs, o.Autoreset, o.Seed = "test", envs, hostabi.SameStep, 7
	e, err := p.NewEnv(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	tr := trajectory.Trajectory{Schema: schema, Mem: make([]byte, schema.Bytes)}
	if err := e.Bind(env.Block{Trajectory: tr, FD: -1}); err != nil {
		t.Fatal(err)
	}
	return e, tr
}

// One wrapper writes the same whatever language it is written in; the one in Go reports it, too.
func TestWrapperModules_AreOfAnyLanguage(t *testing.T) {
	load, modules := loader(t), shapers(t)
	if len(modules) < 3 && !testing.Short() {
		t.Log("compilers are missing: there is", slices.Collect(maps.Keys(modules)))
	}
	const envs, steps = 3, 20
	for name, w := range modules {
		t.Run(name, func(t *testing.T) {
			p, err := load(w)
			if err != nil {
				t.Fatal(err)
			}
			reported := 0
			e, tr := batchOf(t, p, envs, steps, env.Options{Metric: func(m env.Metric) {
				if reported++; m.Name != "shaper/reward" || m.Env != -1 {
					t.Errorf("it reports %+v", m)
				}
			}})
			if err := e.Reset(0, nil, nil); err != nil {
				t.Fatal(err)
			}
			for step := range steps {
				if err := e.Step(step); err != nil {
					t.Fatal(err)
				}
				shaped := tr.Row(trajectory.ShapedReward, step).Float32()
				for i, r := range tr.Row(trajectory.Reward, step).Float32() {
					if want := float32(0.5*float64(r) + 0.25); shaped[i] != want {
						t.Fatalf("step %d, env %d: learned from is %v, want %v", step, i, shaped[i], want)
					}
				}
			}
			if want := envs * steps; w["grants"] != nil && reported != want {
				t.Errorf("it has reported %d numbers, want %d", reported, want)
			}
		})
	}
}

// The wrapper center subtracts the mean of the rewards so far, of each environment by itself; its memory goes along in a snapshot.
func TestWrapperModules_RememberInColumnsOfTheHost(t *testing.T) {
	const envs, steps = 3, 20
	p, err := loader(t)(wrapperModules(t)["center"])
	if err != nil {
		t.Fatal(err)
	}
	e, tr := batchOf(t, p, envs, steps, env.Options{})
	if err := e.Reset(0, nil, []uint64{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	var half []byte
	for step := range steps {
		if step == steps/2 {
			if half, err = e.Snapshot(); err != nil {
				t.Fatal(err)
			}
			if err := e.Bind(env.Block{Trajectory: tr, FD: -1}); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Step(step); err != nil {
			t.Fatal(err)
		}
	}
	// Each step copies the reward, the shaped reward and two states of 8 bytes to the module, and all but the reward back.
	if got, want := env.Copied(e), uint64(steps*envs*(2*4+2*8+4+2*8)); got != want {
		t.Errorf("%d bytes are copied, want %d", got, want)
	}
	var sums [envs]float64
	for step := range steps {
		reward, learned := tr.Row(trajectory.Reward, step).Float32(), tr.Row(trajectory.ShapedReward, step).Float32()
		for i, r := range reward {
			mean := sums[i] / math.Max(1, float64(step))
			if want := float32(float64(r) - mean); learned[i] != want {
				t.Fatalf("env %d, step %d: learned from is %v, want %v", i, step, learned[i], want)
			}
			sums[i] += float64(r)
		}
	}
	again, other := batchOf(t, p, envs, steps, env.Options{})
	if err := again.Restore(half); err != nil {
		t.Fatal(err)
	}
	if err := again.Bind(env.Block{Trajectory: other, FD: -1}); err != nil {
		t.Fatal(err)
	}
	copy(other.Row(trajectory.Obs, steps/2).Data, tr.Row(trajectory.Obs, steps/2).Data)
	for step := steps / 2; step < steps; step++ {
		if err := again.Step(step); err != nil {
			t.Fatal(err)
		}
		got, want := other.Row(trajectory.ShapedReward, step).Float32(), tr.Row(trajectory.ShapedReward, step).Float32()
		if !slices.Equal(got, want) {
			t.Fatalf("step %d after a snapshot: learned from is %v, want %v", step, got, want)
		}
	}
}

// An error in a module is reported with its place.
func TestWrapperModules_MistakesHaveAPlace(t *testing.T) {
	load, modules := loader(t), wrapperModules(t)
	shaper := modules["shaper"]["use"]
	stranger := testkit.Committed(t, "chooser")
	for key, w := range map[string]env.Wrapper{
		"wrap[1].use":       {"use": "/none.wasm"},
		"wrap[1].args.clip": {"use": shaper, "args": map[string]any{"clip": int64(-1)}},
		"wrap[1].sha256":    {"use": shaper, "sha256": "12"},
		"wrap[1].args":      {"use": shaper, "args": int64(1)},
		"wrap[1].nope":      {"use": shaper, "nope": int64(1)},
		"wrap[1].grants":    {"use": shaper, "grants": []any{"log", "clock"}},
	} {
		_, err := load(env.Wrapper{"time_limit": int64(5)}, w)
		if found := table.All(err); len(found) != 1 || found[0].Key != key {
			t.Errorf("%v: %v, want an error of %s", w, err, key)
		}
	}
	for want, w := range map[string]env.Wrapper{
		"has the SHA-256": {"use": shaper, "sha256": strings.Repeat("a", 64)},
		"is no wrapper":   {"use": stranger},
	} {
		if _, err := load(w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", w, err, want)
		}
	}
}

// failing are modules each of whose calls fails: by its limit, by its output, by a trap.
func failing(t *testing.T) map[string]env.Wrapper {
	t.Helper()
	modules := wrapperModules(t)
	hostile, err := filepath.Abs("../../cmd/rlhost/testdata/guests/shapes.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]env.Wrapper{
		"limit":     {"use": modules["center"]["use"], "limits": map[string]any{"step": "1ns"}},
		"no number": {"use": modules["shaper"]["use"], "args": map[string]any{"scale": 1e300}},
		"trap":      {"use": hostile, "args": map[string]any{"fault": int64(1)}},
	}
}

// A call that fails and is tolerated costs the module's output of that step, and is counted.
func TestWrapperModules_AFaultCostsOneCall(t *testing.T) {
	load := loader(t)
	for name, w := range failing(t) {
		t.Run(name, func(t *testing.T) {
			p, err := load(w)
			if err != nil {
				t.Fatal(err)
			}
			const envs, steps = 100_000, 3 // the clock is looked at from time to time
			faults := 0.0
			var told []string
			e, tr := batchOf(t, p, envs, steps, env.Options{
				Tolerate: func(fault error) bool { told = append(told, fault.Error()); return true },
				Metric: func(m env.Metric) {
					if m.Name == "wrapper_faults" {
						faults += m.Value
					}
				},
			})
			if err := e.Reset(0, nil, nil); err != nil {
				t.Fatal(err)
			}
			want := steps
			if name == "trap" {
				want = 1 // in the first step of an episode
			}
			for step := range steps {
				if err := e.Step(step); err != nil {
					t.Fatal(err)
				}
				if got, want := tr.Row(trajectory.ShapedReward, step).Float32(), tr.Row(trajectory.Reward, step).Float32(); !slices.Equal(got, want) {
					t.Errorf("step %d: learned from are not the rewards", step)
				}
			}
			if faults != float64(want) || len(told) != want || !strings.Contains(told[0], w["use"].(string)) {
				t.Errorf("%v faults are counted, want %d; told is %q", faults, want, told)
			}
		})
	}
}

// A call that fails and is not tolerated is a fault of the environments, as in checks and trials; a trap poisons them until Renew.
func TestWrapperModules_AFaultIsTheEnvironments(t *testing.T) {
	load := loader(t)
	for name, w := range failing(t) {
		t.Run(name, func(t *testing.T) {
			p, err := load(w)
			if err != nil {
				t.Fatal(err)
			}
			const envs = 100_000
			e, tr := batchOf(t, p, envs, 2, env.Options{})
			for range 2 {
				if err := e.Reset(0, nil, nil); err != nil {
					t.Fatal(err)
				}
				var f *env.Fault
				if err := e.Step(0); !errors.As(err, &f) || f.Name != "test" || f.Source != w["use"] || f.Call != hostabi.ExportSlot || f.Step != 1 {
					t.Fatalf("%v, want a fault of %v", err, w["use"])
				}
				_, saved := e.Snapshot()
				for call, err := range map[string]error{"Step": e.Step(1), "Reset": e.Reset(1, nil, nil), "Bind": e.Bind(env.Block{Trajectory: tr, FD: -1}), "Snapshot": saved} {
					if errors.Is(err, env.ErrPoisoned) != f.Poisons() {
						t.Errorf("%s after a %v: %v", call, f.Kind, err)
					}
				}
				if err := errors.Join(e.Renew(), e.Bind(env.Block{Trajectory: tr, FD: -1})); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A wrapper of actions changes the environment's actions, in steps that its state selects; the chosen action stays in the block.
func TestWrapperModules_WriteActions(t *testing.T) {
	_, e := New(Options{})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	use, err := filepath.Abs("../../cmd/rlhost/testdata/guests/acts.wasm")
	if err != nil {
		t.Fatal(err)
	}
	const envs, steps = 3, 12
	load := func(t *testing.T, legal func(at plugintest.At, value int) bool, args map[string]any) env.Plugin {
		t.Helper()
		p, err := e.wrapped(plugintest.New(plugintest.Script{
			Length: func(env, episode int) int { return 2 + (env+episode)%4 },
			Reward: func(at plugintest.At) float32 { return float32(at.Action) },
			Legal:  legal,
		}), nil, []env.Wrapper{{"use": use, "args": args}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		if env.Shapes(p) {
			t.Error("it claims to write what is learned from")
		}
		return p
	}
	t.Run("keeps promises", func(t *testing.T) {
		plugintest.TestEnv(t, load(t, nil, map[string]any{"every": int64(3)}), plugintest.Options{Seed: 3, Steps: 60})
	})
	t.Run("writes", func(t *testing.T) {
		b, tr := batchOf(t, load(t, nil, map[string]any{"every": int64(3)}), envs, steps, env.Options{})
		if err := b.Reset(0, nil, []uint64{1, 2, 3}); err != nil {
			t.Fatal(err)
		}
		for step := range steps {
			actions := tr.Row(trajectory.Action, step).Int32()
			for i := range actions {
				actions[i] = int32(i+step) % 2
			}
			if err := b.Step(step); err != nil {
				t.Fatal(err)
			}
			for i, r := range tr.Row(trajectory.Reward, step).Float32() {
				chosen, taken := int32(i+step)%2, int32(i+step)%2
				if (step+1)%3 == 0 {
					taken = 1 - chosen
				}
				if actions[i] != chosen || r != float32(taken) {
					t.Errorf("step %d, env %d: in the block is %d, the environment took %v, want %d and %d", step, i, actions[i], r, chosen, taken)
				}
			}
		}
	})
	only0 := func(_ plugintest.At, value int) bool { return value == 0 }
	for name, c := range map[string]struct {
		legal func(plugintest.At, int) bool
		args  map[string]any
		kind  env.FaultKind
		says  string
	}{
		"none":      {nil, map[string]any{"fault": int64(1)}, env.FaultOutput, "element 0 is 2, want 0 to 1"},
		"forbidden": {only0, nil, env.FaultOutput, "element 0 is 1, which the mask forbids"},
		"trap":      {nil, map[string]any{"fault": int64(2)}, env.FaultTrap, "out of bounds"},
	} {
		t.Run(name, func(t *testing.T) {
			p := load(t, c.legal, c.args)
			for _, tolerated := range []bool{false, true} {
				o := env.Options{}
				if tolerated {
					o.Tolerate = func(error) bool { return true }
				}
				b, tr := batchOf(t, p, envs, steps, o)
				if err := b.Reset(0, nil, nil); err != nil {
					t.Fatal(err)
				}
				first, second := b.Step(0), b.Step(1) // it changes every second one
				var f *env.Fault
				switch {
				case first != nil || tolerated && second != nil:
					t.Errorf("tolerated %v: %v, %v", tolerated, first, second)
				case !tolerated && (!errors.As(second, &f) || f.Kind != c.kind || !strings.Contains(f.Error(), c.says)):
					t.Errorf("%v, want a fault of kind %v with %q", second, c.kind, c.says)
				}
				if got := tr.Row(trajectory.Reward, 1).Float32(); slices.ContainsFunc(got, func(r float32) bool { return r != 0 }) {
					t.Errorf("tolerated %v: the environments took %v, want what was chosen", tolerated, got)
				}
			}
		})
	}
}

// A wrapper logs where that is granted to it; without the grant it is not loaded, and the error says what it wants.
func TestWrapperModules_LogWithAGrant(t *testing.T) {
	use, err := filepath.Abs("../../cmd/rlhost/testdata/guests/tells.wasm")
	if err != nil {
		t.Fatal(err)
	}
	load := loader(t)
	_, err = load(env.Wrapper{"use": use, "grants": []any{"metric"}})
	if found := table.All(err); len(found) != 1 || found[0].Code != "E016" || found[0].Key != "wrap[0].use" || !strings.Contains(found[0].Reason, "rl_component.log, which is not granted") {
		t.Errorf("without the grant: %v", err)
	}
	p, err := load(env.Wrapper{"use": use, "grants": []any{"log"}})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	e, tr := batchOf(t, p, 2, 3, env.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err := e.Reset(0, nil, nil); err != nil {
		t.Fatal(err)
	}
	for step := range 3 {
		if err := e.Step(step); err != nil {
			t.Fatal(err)
		}
		if got, want := tr.Row(trajectory.ShapedReward, step).Float32(), tr.Row(trajectory.Reward, step).Float32(); !slices.Equal(got, want) {
			t.Errorf("step %d: learned from is %v, want %v", step, got, want)
		}
	}
	if n := strings.Count(log.String(), "level=WARN msg=\"a step was made\""); n != 3 {
		t.Errorf("%d lines of 3 steps:\n%s", n, log.String())
	}
}
