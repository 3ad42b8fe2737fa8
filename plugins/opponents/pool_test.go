package opponents

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

func seed(n uint64) plugintest.RigOptions {
	return plugintest.RigOptions{Run: component.Run{Seed: n}}
}

func kept(t *testing.T, c *Pool) []uint64 {
	t.Helper()
	list, err := c.Versions(written(t, c))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestPool_KeepsTheFirstVersionAndTheNewest(t *testing.T) {
	r, c := newPool(t, seed(1), component.State{}, func(c *config) { c.Keep, c.EveryVersions = 3, 2 })
	for _, step := range []struct{ upTo, from uint64 }{{0, 0}, {1, 1}, {3, 2}, {8, 4}, {13, 9}} {
		r.learn(t, upTo(step.from, step.upTo)...)
		want := map[uint64][]uint64{0: {0}, 1: {0}, 3: {0, 2}, 8: {0, 4, 6, 8}, 13: {0, 8, 10, 12}}[step.upTo]
		if got := kept(t, c); !slices.Equal(got, want) {
			t.Errorf("after version %d it keeps %v, want %v", step.upTo, got, want)
		}
	}
	r.learn(t, 19) // some did not arrive
	if got, want := kept(t, c), []uint64{0, 10, 12, 19}; !slices.Equal(got, want) {
		t.Errorf("it keeps %v, want %v", got, want)
	}
	s := written(t, c)
	for _, v := range kept(t, c) {
		if w, err := c.Weights(s, &r.network, v); err != nil || !sameWeights(&w, &r.network, v) {
			t.Errorf("the kept version %d has other weights (%v)", v, err)
		}
	}
	if _, err := c.Weights(s, &r.network, 4); err == nil {
		t.Error("a version that is gone has weights")
	}
	other := network(5)
	if _, err := c.Weights(s, &other, 12); err == nil {
		t.Error("a version has weights of another network")
	}
}

// Kept versions are equally likely; with `newest` the newest one has that probability in addition.
func TestPool_DrawsByItsRule(t *testing.T) {
	const draws, keep = 20_000, 3
	for _, newest := range []float64{0, 0.5, 1} {
		c := &Pool{config: config{Newest: newest}, h: &component.Host{Run: &component.Run{Seed: 11}}, key: 5, kept: make([]version, keep+1)}
		counts := [keep + 1]float64{}
		for range draws {
			counts[c.pick()]++
			c.draws++
		}
		for i, n := range counts {
			p := (1 - newest) / (keep + 1)
			if i == keep {
				p += newest
			}
			if deviation := math.Sqrt(draws*p*(1-p)) + 1e-9; math.Abs(n-draws*p) > 4.5*deviation {
				t.Errorf("newest = %g: version %d of %d was drawn %g times of %d, want about %g", newest, i, keep+1, n, draws, draws*p)
			}
		}
	}
}

func TestPool_DrawsAnewEveryFewVersions(t *testing.T) {
	r, c := newPool(t, seed(3), component.State{}, func(c *config) { c.Keep, c.EveryVersions, c.DrawEveryVersions, c.Newest = 5, 1, 4, 1 })
	r.learn(t, upTo(0, 12)...)
	if want := []uint64{0, 4, 8, 12}; !slices.Equal(r.published, want) {
		t.Errorf("published %v, want %v", r.published, want)
	}
	if v, ok, err := c.Drawn(written(t, c)); v != 12 || !ok || err != nil {
		t.Errorf("the state's drawn version is %d, %t (%v), want 12", v, ok, err)
	}
	r.learn(t, 12, 12) // the same again, as after a resume of the learner
	if n := len(r.published); n != 4 {
		t.Errorf("published %v: a version that came before was drawn for", r.published)
	}
}

func TestPool_DrawsDependOnSeedAndNameAlone(t *testing.T) {
	play := func(seedOf uint64, versions []uint64) []uint64 {
		r, _ := newPool(t, seed(seedOf), component.State{}, func(c *config) { c.EveryVersions = 1 })
		r.learn(t, versions...)
		return r.published
	}
	a := play(1, upTo(0, 40))
	if b := play(1, upTo(0, 40)); !slices.Equal(a, b) {
		t.Errorf("published %v, then %v", a, b)
	}
	if b := play(2, upTo(0, 40)); slices.Equal(a, b) {
		t.Errorf("seeds 1 and 2 draw the same: %v", a)
	}
	if len(slices.Compact(slices.Sorted(slices.Values(a)))) < 8 {
		t.Errorf("published %v: want many versions", a)
	}
}

// A pool that continues from its state draws, publishes and keeps the same versions as without the break, wherever that is:
// also where the published version is kept no more.
func TestPool_ContinuesExactly(t *testing.T) {
	set := func(c *config) { c.Keep, c.EveryVersions, c.DrawEveryVersions = 2, 1, 5 }
	whole, unbroken := newPool(t, seed(9), component.State{}, set)
	whole.learn(t, upTo(0, 60)...)
	evicted := false
	for at := uint64(0); at <= 30; at++ {
		first, c := newPool(t, seed(9), component.State{}, set)
		first.learn(t, upTo(0, at)...)
		s := written(t, c)
		drawn, _, err := c.Drawn(s)
		if err != nil {
			t.Fatal(err)
		}
		evicted = evicted || !slices.Contains(kept(t, c), drawn)
		second, again := newPool(t, seed(9), s, set)
		if !slices.Equal(second.published, []uint64{drawn}) {
			t.Fatalf("restored at version %d it publishes %v, want %d", at, second.published, drawn)
		}
		second.learn(t, upTo(at, 60)...) // the learner publishes its version again
		if got := slices.Concat(first.published, second.published[1:]); !slices.Equal(got, whole.published) {
			t.Errorf("broken off at version %d it publishes %v, want %v", at, got, whole.published)
		}
		if got, want := encoded(t, again), encoded(t, unbroken); got != want {
			t.Errorf("broken off at version %d its state ends as %.200q, want %.200q", at, got, want)
		}
	}
	if !evicted {
		t.Error("no break came while the published version was kept no more")
	}
}

func encoded(t *testing.T, c component.Component) string {
	t.Helper()
	b, err := component.EncodeState(written(t, c))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPool_DropsVersionsOfAnotherNetwork(t *testing.T) {
	r, c := newPool(t, seed(1), component.State{}, nil)
	r.learn(t, 0, 20, 40)
	next, again := poolOf(t, network(6), seed(1), written(t, c), nil)
	if got := next.Log.String(); !strings.Contains(got, "the pool begins from scratch") || !strings.Contains(got, "[0 20 40]") {
		t.Errorf("log %q", got)
	}
	next.learn(t, 41)
	if got := kept(t, again); !slices.Equal(got, []uint64{41}) || !slices.Equal(next.published, []uint64{41}) {
		t.Errorf("it keeps %v and publishes %v, want version 41", got, next.published)
	}
}

func TestPool_RefusesADamagedState(t *testing.T) {
	r, c := newPool(t, seed(1), component.State{}, func(c *config) { c.Keep, c.EveryVersions, c.DrawEveryVersions = 1, 1, 3 })
	r.learn(t, upTo(0, 5)...)
	s := written(t, c)
	damaged := func(change func(s *savedPool)) component.State {
		var meta savedPool
		if err := s.Decode(&meta); err != nil {
			t.Fatal(err)
		}
		change(&meta)
		raw, err := json.Marshal(meta)
		if err != nil {
			t.Fatal(err)
		}
		return component.State{RawMeta: raw, Blobs: s.Blobs}
	}
	for name, state := range map[string]component.State{
		"no JSON":                       {RawMeta: []byte("{")},
		"descending versions":           damaged(func(m *savedPool) { slices.Reverse(m.Kept) }),
		"a drawn version not saved":     damaged(func(m *savedPool) { m.Drawn = 77 }),
		"more versions than pools have": damaged(func(m *savedPool) { m.Kept = make([]uint64, maxKeep+2) }),
	} {
		if err := new(Pool).restoreInto(c, state); err == nil {
			t.Errorf("%s: restored", name)
		}
	}
}

// restoreInto restores a pool with the host and format of another.
func (p *Pool) restoreInto(like *Pool, s component.State) error {
	p.config, p.h, p.format = like.config, like.h, like.format
	return p.Restore(s)
}

// In synchronous mode the pool claims trajectories until the version that is learned from them is received. It does not
// claim a trajectory that comes after that version, from a rollout in another process: there would be no next version.
func TestPool_ClaimsNoTrajectoryThatIsLearnedFrom(t *testing.T) {
	o := seed(1)
	o.Run.Synchronous = true
	o.Tables.Policies = map[string]component.PolicyTable{past: {Of: "main"}}
	r, c := newPool(t, o, component.State{}, nil)
	schema, err := trajectory.NewSchema(testkit.Spec(3, 2, false), trajectory.Shape{Steps: 4, Envs: 2, Policies: "main past"})
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := r.Host.Arenas.Add(arena.Config{Name: "trajectories", Blocks: 4, BlockBytes: schema.Bytes, Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	to := r.To("on_trajectories")
	acted := func(version uint64, claims int) {
		t.Helper()
		plugintest.Give(t, to, hostabi.Message{}, blocks, func(block []byte) {
			tr := trajectory.Trajectory{Schema: schema, Mem: block}
			for row := range schema.Shape.Steps {
				tr.Uint64(trajectory.PolicyVersion.At(1))[row] = version
				tr.Uint64(trajectory.PolicyVersion.At(2))[row] = 100 // of the pool's own policy
			}
		})
		r.MustSettle()
		if len(c.held) != claims {
			t.Errorf("a trajectory of version %d makes it %d claims, want %d", version, len(c.held), claims)
		}
	}
	acted(0, 1) // before it has received any
	r.learn(t, 0)
	acted(0, 1)
	acted(0, 2)
	r.learn(t, 1)
	acted(0, 0)
	acted(1, 1)
	acted(0, 1)
	r.learn(t, 2)
	if len(c.held) != 0 {
		t.Errorf("%d claims behind the version that they were for", len(c.held))
	}
}

// Hearing of a version keeps and draws, in memory that is there already.
func TestPool_DoesNotAllocateByMessage(t *testing.T) {
	r, c := newPool(t, seed(1), component.State{}, func(c *config) { c.Keep, c.EveryVersions, c.Newest = 2, 1, 0.5 })
	r.learn(t, upTo(0, 10)...)
	number := uint64(10)
	allocs := testing.AllocsPerRun(200, func() {
		number++
		c.keep(version{number, append(c.memory(), c.kept[0].weights...)})
		c.choose()
	})
	if allocs != 0 || len(c.free)+len(c.kept) > 5 {
		t.Errorf("%g allocations for a version; memory of %d is free and of %d kept", allocs, len(c.free), len(c.kept))
	}
}

func TestPool_Configuration(t *testing.T) {
	for want, change := range map[string]func(*config){
		"policy":              func(c *config) { c.Policy = "" },
		"keep":                func(c *config) { c.Keep = 0 },
		"every_versions":      func(c *config) { c.EveryVersions = 0 },
		"draw_every_versions": func(c *config) { c.DrawEveryVersions = 0 },
		"newest":              func(c *config) { c.Newest = 1.5 },
	} {
		err := New().Configure(func(into any) error {
			c := into.(*config)
			c.Policy = past
			change(c)
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := New().Configure(func(into any) error { into.(*config).Newest = math.NaN(); return nil }); err == nil || !strings.Contains(err.Error(), "newest") {
		t.Errorf("newest = NaN: %v", err)
	}
}
