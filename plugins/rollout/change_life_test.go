package rollout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// After rested nothing is emitted, and Resume continues where the component was.
func TestPause_EveryBlockIsEnded(t *testing.T) {
	for _, async := range []bool{false, true} {
		for row := range 5 {
			w := newWorld(t, worldOptions{splits: 2, async: async})
			w.inRow(1, row)
			rested := 0
			w.c.Pause(func() { rested++ })
			w.run(func() bool { return rested > 0 })
			blocks := 0
			w.run(func() bool { blocks = len(w.blocks); return true })
			for _, s := range w.c.splits {
				if s.rows.writing || s.asked != 0 || s.stepping {
					t.Error("a split is in the middle of a block")
				}
			}
			state, err := w.c.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			w.MustSettle()
			if len(w.blocks)-blocks > 4 || rested != 1 || len(w.c.Waiting()) != 0 {
				t.Errorf("%d blocks after it, rested called %d times", len(w.blocks)-blocks, rested)
			}
			if len(state.Blobs) != 2 {
				t.Errorf("%d instances saved, want 2", len(state.Blobs))
			}
			w.c.Resume()
			w.more(4)
			w.balance()
		}
	}
}

// A dataset takes a block of every split in synchronous mode: no split pauses with a block that others wait to follow.
func TestPause_SplitsOfASynchronousRunRestAfterTheSameBlock(t *testing.T) {
	for _, sync := range []bool{true, false} {
		r := newRig(t, rigOptions{run: component.Run{Synchronous: sync}, config: func(c *config) { c.Blocks = 1 }})
		r.keep = true
		r.until(t, 2)
		r.letGo(t)
		r.until(t, 2) // the other split's block and this split's second
		rested := false
		r.c.Pause(func() { rested = true })
		r.MustSettle()
		if rested == sync {
			t.Errorf("synchronous %v: at rest %v while one split is a block behind", sync, rested)
		}
		r.letGo(t)
		r.MustSettle()
		if want := map[bool]int{true: 2, false: 1}[sync]; !rested || len(r.blocks) != want {
			t.Errorf("synchronous %v: at rest %v with %d blocks out, want %d", sync, rested, len(r.blocks), want)
		}
		r.letGo(t)
		r.MustSettle()
		if want := map[bool]int{true: 1, false: 0}[sync]; len(r.blocks) != want {
			t.Errorf("synchronous %v: a component at rest has begun a block", sync)
		}
	}
}

// A split makes other blocks for the datasets of its dropped ones. It is not ahead, and nobody waits for a block that cannot come.
func TestPause_SplitsOfASynchronousRunPauseDespiteLosses(t *testing.T) {
	for _, lost := range [][]int{{}, {0}, {1}, {0, 0}, {1, 1}, {1, 1, 1}, {0, 1, 1}, {1, 0, 0}} {
		for first := range 2 {
			r := newRig(t, rigOptions{run: component.Run{Synchronous: true}, config: func(c *config) { c.Blocks = 1 }})
			r.keep = true
			letGo := func(split int) {
				i := max(0, slices.IndexFunc(r.blocks, func(b kept) bool { return int(b.meta.Split) == split }))
				r.blocks[0], r.blocks[i] = r.blocks[i], r.blocks[0]
				r.letGo(t)
			}
			for _, split := range lost {
				r.until(t, 2)
				letGo(split)
			}
			r.until(t, 2)
			rests := 0
			r.c.Pause(func() { rests++ })
			for range 2 {
				for len(r.blocks) > 0 { // at once: that has been learned from
					letGo(first)
				}
				r.MustSettle()
				if rests != 1 {
					t.Fatalf("lost %v, %d first: rested %d times, %d blocks out", lost, first, rests, len(r.blocks))
				}
			}
			r.c.Resume()
			r.until(t, 2)
		}
	}
}

func TestPause_CanBeTakenBack(t *testing.T) {
	w := newWorld(t, worldOptions{splits: 2})
	w.inRow(0, 1)
	w.c.Pause(func() { t.Error("it rests") })
	w.c.Resume()
	w.more(4)
	w.rest()
	said := false
	w.c.Pause(func() { said = true })
	if !said {
		t.Error("a component at rest does not say so at once")
	}
	w.c.Resume()
	w.more(4)
	w.balance()
}

// A component that takes the place of another continues from the other's saved state, in its arena, and with the
// blocks that come back.
func TestPause_AnotherComponentContinues(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		o := worldOptions{splits: 2, async: true}
		run := func(replace bool) []string {
			w := newWorld(t, o)
			w.more(6)
			w.rest()
			if fresh {
				w.change(1, component.EnvChange{At: component.AtTrajectory})
			}
			w.MustSettle()
			first := len(w.bits)
			if !replace {
				w.c.Resume()
				w.more(6)
				return w.bits[first : first+6]
			}
			state, err := w.c.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			next := newWorld(t, o)
			if err := next.c.Restore(state); err != nil {
				t.Fatal(err)
			}
			for i, s := range next.c.splits {
				next.steps[i] = s.steps
			}
			next.more(6)
			return next.bits[:6]
		}
		want, got := run(false), run(true)
		for i := range want {
			if want[i] != got[i] {
				t.Errorf("fresh %v: block %d of the other component differs", fresh, i)
			}
		}
	}
}

// While the component is paused, or waits for blocks, it goes over at once.
func TestChange_WhileNothingRuns(t *testing.T) {
	for _, at := range []component.Boundary{component.AtNow, component.AtStep, component.AtTrajectory} {
		for _, keep := range []bool{false, true} {
			w := newWorld(t, worldOptions{splits: 2, async: true})
			w.keep = true
			w.run(func() bool { return len(w.blocks) == 4 }) // all that there are
			w.MustSettle()
			p := w.prepare(2, component.EnvChange{At: at, KeepState: keep})
			w.commit(p)
			if len(w.went) != 1 || w.went[0].Envs != 6 || w.went[0].Dropped != 0 || keep != (w.went[0].Kept == 6) || keep == (w.went[0].Truncated > 0) {
				t.Errorf("%v, keep %v: went %+v at once", at, keep, w.went)
			}
			w.keep = false
			for range 4 {
				w.letGo(t)
			}
			w.more(4)
			w.balance()
		}
	}
}

// An episode's end comes only when somebody steps.
func TestChange_AtEpisodesWaitsForAPausedComponent(t *testing.T) {
	w := newWorld(t, worldOptions{splits: 2, masked: true})
	w.inRow(0, 2)
	w.rest()
	w.commit(w.prepare(2, component.EnvChange{At: component.AtEpisode}))
	w.MustSettle()
	if len(w.went) != 0 {
		t.Errorf("went %+v while nobody steps", w.went)
	}
	if _, err := w.c.Snapshot(); err == nil {
		t.Error("a state of two versions side by side is saved")
	}
	w.c.Resume()
	w.run(func() bool { return len(w.went) == 1 })
	w.more(2)
	w.balance()
}

// Stop in the middle of a change leaves nothing.
func TestChange_StopsWhereverItIs(t *testing.T) {
	for _, at := range []component.Boundary{component.AtNow, component.AtStep, component.AtTrajectory, component.AtEpisode} {
		for rounds := range 16 {
			w := newWorld(t, worldOptions{splits: 2, async: rounds%2 == 0, wrap: func(p env.Plugin) env.Plugin { return elsewhere{p} }})
			w.more(rounds % 3)
			p := w.prepare(2, component.EnvChange{Plugin: elsewhere{w.plugins[2]}, At: at, Probation: rounds%4 < 2, Envs: rounds / 8 * 2})
			if rounds != 7 {
				w.commit(p)
			}
			n := 0
			w.MustRun(func() bool { n++; return n > 2*rounds })
			if err := w.c.Stop(); err != nil {
				t.Errorf("Stop: %v", err)
			}
			if err := p.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			w.wantOpen(map[int]int{})
			if _, err := w.c.PrepareEnvs(t.Context(), component.EnvChange{Plugin: w.plugins[2]}); err == nil {
				t.Error("a component that has stopped prepares a change")
			}
		}
	}
}

// Side by side a step allocates nothing either.
func TestStep_SideBySideAllocatesNothing(t *testing.T) {
	w := newWorld(t, worldOptions{masked: true, steps: 1000, limit: 7})
	w.change(2, component.EnvChange{Envs: 3})
	w.inRow(0, 100)
	s := w.c.splits[0]
	if s.versions == nil {
		t.Fatal("nothing is side by side")
	}
	clear(s.rows.tr.Bytes(trajectory.Action))
	m := trajectory.ActRequest{Block: s.loan.Handle()}.Message()
	n := testing.AllocsPerRun(500, func() {
		m.T = uint32(s.t)
		w.c.onActions(&m)
	})
	if n != 0 || s.t < 500 {
		t.Errorf("%v allocations a step after %d steps, want 0", n, s.t)
	}
	w.loose = true
	w.asked = nil
	if err := w.c.Stop(); err != nil {
		t.Error(err)
	}
}

// Versions beyond the first ones are counted together.
func TestVersions_AreBounded(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.silent = true
	const versions = maxVersions + 6
	for k := range versions {
		p := plugintest.New(plugintest.Script{Name: fmt.Sprintf("w%d@1", k), Actions: 3, Length: func(env, _ int) int { return worldLength(env) },
			Reward: func(plugintest.At) float32 { return float32(100 + k) }, Infos: worldInfos(), Tell: worldTell(100 + k)})
		w.plugins[100+k], w.loose = p, true
		done := false
		c, err := w.c.PrepareEnvs(t.Context(), component.EnvChange{Plugin: p, At: component.AtTrajectory, Went: func(component.EnvsWent) { done = true }})
		if err != nil {
			t.Fatal(err)
		}
		w.inRow(0, 1)
		w.commit(c)
		w.run(func() bool { return done })
	}
	w.inRow(0, 2)
	if len(w.c.known.byID) != maxVersions {
		t.Errorf("%d versions are counted apart, want %d", len(w.c.known.byID), maxVersions)
	}
	if got := w.counter("version/others/env_steps"); got == 0 {
		t.Error("the others are not counted")
	}
}

// Whatever is done in whatever order: rows are what they must be, the counts add up, and nothing is left.
func TestChange_RandomOperations(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4, 5, 6, 7, 8, uint64(time.Now().UnixNano())}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Logf("seed %d", seed)
			randomOperations(t, rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

func randomOperations(t *testing.T, r *rand.Rand) {
	flaws := map[int]func(*plugintest.Script){}
	cues := []plugintest.Cue{plugintest.Trap, plugintest.ErrorStatus, plugintest.NaNReward, plugintest.NaNObservation}
	for v := 3; v <= 4; v++ { // they fail now and then, but not before episodes end
		env, call, cue := r.IntN(6), uint64(8+r.IntN(60)), cues[r.IntN(len(cues))]
		flaws[v] = at(env, call, cue)
	}
	o := worldOptions{mode: hostabi.Autoreset(1 << r.IntN(3)), splits: 1 + r.IntN(3), async: r.IntN(2) == 0, masked: r.IntN(2) == 0,
		limit: 4 * r.IntN(2), flaws: flaws, config: func(c *config) { c.MaxRestarts = 1 << 20 }}
	wrap := func(p *plugintest.Plugin) env.Plugin { return p }
	switch r.IntN(3) {
	case 0:
		wrap = func(p *plugintest.Plugin) env.Plugin { return elsewhere{p} }
	case 1: // processes die now and then
		var mu sync.Mutex
		wrap = func(p *plugintest.Plugin) env.Plugin {
			return mortal{p, func(string, int, int) []env.Span {
				mu.Lock()
				defer mu.Unlock()
				if r.IntN(100) > 0 {
					return nil
				}
				return []env.Span{{First: r.IntN(2), Count: 1}}
			}}
		}
	}
	o.wrap = func(p env.Plugin) env.Plugin { return wrap(p.(*plugintest.Plugin)) }
	t.Logf("%+v", o)
	w := newWorld(t, o)
	w.loose = true
	var last component.PreparedEnvs
	open := 0
	for range 120 {
		n, rounds := 0, r.IntN(60)
		w.MustRun(func() bool { n++; return n > rounds })
		switch r.IntN(10) {
		default:
			version := 1 + r.IntN(4)
			c := component.EnvChange{Plugin: limited(t, wrap(w.plugins[version]), o.limit), At: component.Boundary(r.IntN(4)), KeepState: r.IntN(2) == 0,
				Probation: r.IntN(2) == 0, Envs: max(r.IntN(12)-6, 0)}
			if c.Envs > 0 {
				c.Task = onTrial
			}
			c.Went = func(e component.EnvsWent) { w.went = append(w.went, e) }
			c.RolledBack = func(err error) { w.rolledBack = append(w.rolledBack, err) }
			p, err := w.c.PrepareEnvs(t.Context(), c)
			if err != nil {
				open++
				break
			}
			last = p
			if r.IntN(8) == 0 {
				if err := p.Close(); err != nil {
					t.Fatal(err)
				}
			} else if err := p.Commit(); err != nil {
				t.Fatal(err)
			}
		case 0:
			if last != nil {
				last.Cancel()
			}
		case 1:
			if last != nil {
				last.Settle()
			}
		case 2:
			w.c.Pause(func() {})
		case 3:
			w.c.Resume()
		}
	}
	w.c.Resume()
	w.run(func() bool { return w.c.changes.reserved == nil }) // the change under way ends
	w.change(2, component.EnvChange{At: component.AtStep})
	w.balance()
	w.wantOpen(map[int]int{2: o.splits})
	if open == 0 || len(w.went) < 5 {
		t.Logf("%d refused, %d went, %d rolled back, %d restarts", open, len(w.went), len(w.rolledBack), w.c.restarted.All())
	}
}
