package rollout

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/wasm"
	wasmcomponent "github.com/rlhost/rlhost/plugins/wasm/component"
	"github.com/rlhost/rlhost/plugins/wasm/module"
	"github.com/rlhost/rlhost/plugins/wrap"
)

// guests loads guests of the examples, by language.
func guests(t testing.TB, languages ...string) map[string]env.Plugin {
	t.Helper()
	runtime, err := wasm.New(wasm.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]env.Plugin{}
	for _, language := range languages {
		path := "../../examples/plugins/cartpole-" + language + "/cartpole.wasm"
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		p, err := runtime.Load(t.Context(), path, source, env.Source{})
		if err != nil {
			t.Fatal(err)
		}
		list[language] = p
	}
	t.Cleanup(func() { // before the rig's own: bound environments stay usable without their plugin
		for _, p := range list {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := runtime.Close(); err != nil {
			t.Error(err)
		}
	})
	return list
}

// cartRig is a rig with guests.
func cartRig(t testing.TB, p env.Plugin, run component.Run, change func(*config)) *rig {
	return newRig(t, rigOptions{plugin: p, run: run, config: func(c *config) {
		c.Envs, c.Splits, c.Horizon = 12, 2, 16
		if change != nil {
			change(c)
		}
	}})
}

// swap prepares and commits a change and runs until it is made.
func swap(t testing.TB, r *rig, c component.EnvChange) component.EnvsWent {
	t.Helper()
	var went []component.EnvsWent
	c.Went = func(e component.EnvsWent) { went = append(went, e) }
	p, err := r.c.PrepareEnvs(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Commit(); err != nil {
		t.Fatal(err)
	}
	r.MustRun(func() bool { return len(went) > 0 })
	p.Settle()
	return went[0]
}

// The same module at every boundary, with the state carried over, changes no bit of any block.
func TestS13TheSameModuleAtEveryBoundaryChangesNothing(t *testing.T) {
	for _, at := range []component.Boundary{component.AtTrajectory, component.AtStep} {
		for _, mode := range []string{"c", "rust"} {
			t.Run(fmt.Sprintf("%v/%s", at, mode), func(t *testing.T) {
				p := guests(t, mode)[mode]
				blocks := func(change bool) []string {
					r := cartRig(t, p, component.Run{Seed: 3, Synchronous: true}, nil)
					var list []string
					r.eachBlock(t, func(_ *hostabi.Message, tr trajectory.Trajectory) { list = append(list, contents(tr)) })
					for len(list) < 40 {
						if !change {
							r.until(t, len(r.blocks)+1)
							continue
						}
						if went := swap(t, r, component.EnvChange{Plugin: p, At: at, KeepState: true}); went.Kept == 0 && len(list) > 2 {
							t.Fatalf("%+v", went)
						}
					}
					return list[:40]
				}
				want, got := blocks(false), blocks(true)
				for i := range want {
					if want[i] != got[i] {
						t.Fatalf("block %d differs", i)
					}
				}
			})
		}
	}
}

// contents returns all of a block that a learner looks at.
func contents(tr trajectory.Trajectory) string {
	var b bytes.Buffer
	for _, c := range []trajectory.Column{trajectory.Action, trajectory.Obs, trajectory.Reward, trajectory.Terminated,
		trajectory.Truncated, trajectory.Valid, trajectory.PluginVersion} {
		b.Write(tr.Bytes(c))
	}
	fmt.Fprintf(&b, "%+v", *tr.Meta())
	return b.String()
}

// Between two languages state goes environment by environment: no episode ends for it, and CartPole continues to the bit.
func TestChange_CarriesStateBetweenLanguages(t *testing.T) {
	p := guests(t, "c", "rust")
	blocks := func(change bool) []string {
		r := cartRig(t, p["c"], component.Run{Seed: 3, Synchronous: true}, nil)
		var list []string
		r.eachBlock(t, func(_ *hostabi.Message, tr trajectory.Trajectory) {
			list = append(list, string(slices.Concat(tr.Bytes(trajectory.Obs), tr.Bytes(trajectory.Terminated))))
		})
		for k := 0; len(list) < 20; k++ {
			if !change {
				r.until(t, len(r.blocks)+1)
				continue
			}
			went := swap(t, r, component.EnvChange{Plugin: p[[]string{"rust", "c"}[k%2]], At: component.AtStep, KeepState: true})
			if went.Truncated > 0 || k > 1 && went.Kept != 12 {
				t.Fatalf("change %d went %+v", k, went)
			}
		}
		return list[:20]
	}
	want, got := blocks(false), blocks(true)
	for i := range want {
		if want[i] != got[i] {
			t.Fatalf("block %d differs", i)
		}
	}
}

// The calls of a change for each environment allocate nothing while stepping is paused: they were made once before.
func TestKeepState_CarryingAllocatesNothing(t *testing.T) {
	p := guests(t, "c", "rust")
	r := cartRig(t, p["c"], component.Run{Seed: 3}, nil)
	r.until(t, 4)
	prepared, err := r.c.PrepareEnvs(t.Context(), component.EnvChange{Plugin: p["rust"], At: component.AtTrajectory, KeepState: true})
	if err != nil {
		t.Fatal(err)
	}
	s := r.c.splits[0]
	n := testing.AllocsPerRun(100, func() {
		if err := prepared.(*change).batches[0].takeEach(s.ownerOf); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations for %d environments, want 0", n, s.rows.n)
	}
	if err := prepared.Close(); err != nil {
		t.Error(err)
	}
}

// memory tells when it is closed.
type memory struct{ closed bool }

func (c *memory) close() error { c.closed = true; return nil }

func TestLetGo_WaitsUntilSteppingResumes(t *testing.T) {
	w := newWorld(t, worldOptions{})
	s, k := w.c.splits[0], &w.c.closing
	over := 0
	m := &move{s: s, progress: inPlace, over: func(*move) { over++ }}
	s.next = m
	first, second := &memory{}, &memory{}
	s.letGo(first)
	k.group.Wait()
	if first.closed {
		t.Error("it is closed while stepping stands still")
	}
	m.finish()
	s.letGo(second)
	k.group.Wait()
	if !first.closed || !second.closed || len(m.rest) != 0 || over != 1 {
		t.Errorf("closed: %v, %v; %d left, over %d times", first.closed, second.closed, len(m.rest), over)
	}
}

// Memory goes from one instance to another where the module and its arguments are the same.
func TestChange_OtherArgumentsAreAnotherInstance(t *testing.T) {
	runtime, err := wasm.New(wasm.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../../examples/plugins/cartpole-c/cartpole.wasm")
	if err != nil {
		t.Fatal(err)
	}
	var list []env.Plugin
	for _, steps := range []string{"30", "40", "30"} {
		p, err := runtime.Load(t.Context(), "cartpole.wasm", source, env.Source{Args: map[string]string{"max_steps": steps}})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	if env.SameInstances(list[0], list[1]) || !env.SameInstances(list[0], list[2]) {
		t.Error("instances are told apart by something else than their arguments")
	}
	r := cartRig(t, list[0], component.Run{Synchronous: true}, func(c *config) { c.Horizon = 64 })
	r.until(t, 3)
	if went := swap(t, r, component.EnvChange{Plugin: list[1], At: component.AtStep, KeepState: true}); went.Kept != 12 {
		t.Errorf("went %+v", went)
	}
	r.episodes = nil
	r.until(t, len(r.blocks)+6)
	longest := uint32(0)
	for _, e := range r.episodes {
		longest = max(longest, e.Length)
	}
	if longest != 40 {
		t.Errorf("the longest episode has %d steps, want the new limit of 40", longest)
	}
	for _, p := range list {
		p.Close()
	}
	runtime.Close()
}

// BenchmarkSwap swaps at every trajectory boundary of 64 environments and reports how long stepping was paused, and
// the same for the boundary without a swap.
func BenchmarkSwap(b *testing.B) {
	for _, c := range []struct {
		name, from, to string
		at             component.Boundary
		keep           bool
	}{
		{"c-rust/trajectory", "c", "rust", component.AtTrajectory, false},
		{"c-rust/step", "c", "rust", component.AtStep, false},
		{"c-c/trajectory/keep", "c", "c", component.AtTrajectory, true},
		{"c-rust/trajectory/keep", "c", "rust", component.AtTrajectory, true},
		{"go-c/trajectory/keep", "go", "c", component.AtTrajectory, true},
		{"go-go/trajectory", "go", "go", component.AtTrajectory, false},
		{"go-go/trajectory/keep", "go", "go", component.AtTrajectory, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			list := guests(b, c.from, c.to)
			benchmarkSwap(b, list[c.from], list[c.to], c.at, c.keep)
		})
	}
	for _, at := range []component.Boundary{component.AtTrajectory, component.AtStep} {
		b.Run(fmt.Sprintf("wrapper/%v/keep", at), func(b *testing.B) {
			guest := guests(b, "c", "c")["c"]
			var list []env.Plugin
			for _, name := range []string{"a", "b"} {
				p, err := wrap.New(guest, []env.Wrapper{{"time_limit": int64(400)}, {"record_stats": name}, {"reward_scale": 0.5}}, nil)
				if err != nil {
					b.Fatal(err)
				}
				list = append(list, p)
			}
			benchmarkSwap(b, list[0], list[1], at, true)
		})
	}
}

// BenchmarkSwapModule is BenchmarkSwap for a wrapper of three that is a module, between two versions of the module.
func BenchmarkSwapModule(b *testing.B) {
	runtime, err := wasm.New(wasm.Options{CacheDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	modules := wasmcomponent.NewModules(runtime)
	b.Cleanup(func() {
		if err := errors.Join(modules.Close(), runtime.Close()); err != nil {
			b.Error(err)
		}
	})
	load := func(t wrap.ModuleTable) (wrap.Module, error) {
		w, err := modules.Wrapper(wasmcomponent.Source{Source: env.Source{Use: t.Use, Grants: t.Grants}}, t.Args)
		return shapingModule{w}, err
	}
	for name, file := range testkit.Guests(b, "shaper", b.TempDir()) {
		b.Run(name, func(b *testing.B) {
			guest := guests(b, "c")["c"]
			var list []env.Plugin
			for _, scale := range []float64{0.5, 2} {
				module := env.Wrapper{"use": file, "args": map[string]any{"scale": scale}, "grants": []any{"metric"}}
				p, err := wrap.New(guest, []env.Wrapper{{"time_limit": int64(400)}, module, {"reward_clip": int64(1)}}, load)
				if err != nil {
					b.Fatal(err)
				}
				list = append(list, p)
			}
			benchmarkSwap(b, list[0], list[1], component.AtTrajectory, true)
		})
	}
}

// shapingModule is a module as wrap knows it.
type shapingModule struct{ *wasmcomponent.Wrapper }

func (m shapingModule) New(o env.Options, agents int, columns []wrap.ModuleColumn) (wrap.ModuleInstance, error) {
	shape := wasmcomponent.Shape{Envs: o.Envs, Agents: agents}
	for _, c := range columns {
		shape.Columns = append(shape.Columns, wasmcomponent.ShapeOf(c))
	}
	return m.Wrapper.New(wasmcomponent.WrapperOptions{Name: o.Name, Seed: o.Seed, Shape: shape})
}

func benchmarkSwap(b *testing.B, from, to env.Plugin, at component.Boundary, keep bool) {
	list := []env.Plugin{to, from}
	r := cartRig(b, from, component.Run{Seed: 3}, func(c *config) { c.Envs, c.Splits, c.Horizon = 64, 1, 64 })
	var pauses, plain []time.Duration
	s := r.c.splits[0]
	for k := 0; b.Loop(); k++ {
		next := list[k%2]
		went := swap(b, r, component.EnvChange{Plugin: next, At: at, KeepState: keep})
		pauses = append(pauses, time.Duration(went.PauseNS[0]))
		r.until(b, len(r.blocks)+1)
		r.MustRun(func() bool { return s.rows.writing && s.asked != 0 && s.t == s.rows.c.config.Horizon })
		began := time.Now()
		r.MustRun(func() bool { return s.rows.writing && s.asked != 0 && s.t == 0 })
		plain = append(plain, time.Since(began))
		for range len(r.blocks) {
			r.letGo(b)
		}
	}
	report := func(name string, list []time.Duration) {
		slices.Sort(list)
		b.ReportMetric(float64(list[len(list)/2].Nanoseconds())/1e3, name+"-p50-µs")
		b.ReportMetric(float64(list[len(list)*99/100].Nanoseconds())/1e3, name+"-p99-µs")
		b.ReportMetric(float64(list[len(list)-1].Nanoseconds())/1e3, name+"-max-µs")
	}
	report("pause", pauses)
	report("without", plain)
	b.ReportMetric(0, "ns/op")
}

// A guest's figures by index become one an episode as each says: the last, the sum, the mean, the largest or the least. It
// reports its age before each step and ten times its index; episodes have three steps.
func TestMetric_IsGatheredAsTheGuestSays(t *testing.T) {
	const path = "../../hostabi/conformance/metric-env.wasm"
	runtime, err := wasm.New(wasm.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	p, err := runtime.Load(t.Context(), path, nil, env.Source{Grants: []string{module.GrantMetric}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Close(), runtime.Close()); err != nil {
			t.Error(err)
		}
	})
	r := newRig(t, rigOptions{plugin: p})
	r.until(t, 6)
	want := map[string]float64{}
	for _, e := range r.episodes {
		index := float64(10 * (e.Env % 3)) // within its split
		for name, own := range map[string]float64{"last": 2 + index, "sum_": 3 + 3*index, "mean": 1 + index, "max_": 2 + index, "min_": index} {
			want[name] += own
		}
	}
	for name, sum := range want {
		d := r.Host.Stats.Histogram("env/" + name).Snapshot()
		if int(d.Count) != len(r.episodes) || d.Sum != sum {
			t.Errorf("env/%s has %d numbers that sum up to %v, want %v of %d episodes", name, d.Count, d.Sum, sum, len(r.episodes))
		}
	}
	if d := r.Host.Stats.Histogram("env/none").Snapshot(); d.Count != 0 || len(r.episodes) == 0 {
		t.Errorf("env/none has %d numbers of %d episodes", d.Count, len(r.episodes))
	}
}
