package rollout

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// patience is how long what must happen may take.
const patience = 20 * time.Second

// live is a rollout on a loop that runs, with an inference and a learner on another one.
type live struct {
	*plugintest.Stage
	t *testing.T
	c *Rollout
}

func newLive(t *testing.T, p env.Plugin) *live {
	l := &live{t: t, c: New().(*Rollout)}
	l.Stage = plugintest.NewStage(t, l.c, plugintest.StageOptions{Name: "rollout", Seed: 3, Envs: map[string]env.Plugin{"cart": p},
		Table:  map[string]any{"env": "cart", "envs": int64(12), "splits": int64(2), "horizon": int64(16)},
		Before: func(component.Component) error { l.c.Pause(func() {}); return nil }}) // until there is who answers
	block := bus.Options{Mode: bus.All, Depth: 64, Overflow: bus.Block}
	answers := l.To("on_actions", true, block)
	l.Handle("obs_ready", block, func(m *hostabi.Message) {
		q := trajectory.ActRequestOf(m)
		tr, err := trajectory.Borrowed(l.Arenas, q.Block)
		if err != nil {
			t.Error(err)
			return
		}
		if !q.ValueOnly {
			clear(tr.Row(trajectory.Action, q.T).Data)
		}
		if err := answers.Emit(*m); err != nil {
			t.Error(err)
		}
	})
	l.Handle("trajectories", block, func(*hostabi.Message) {})
	l.Handle("episodes", block, func(*hostabi.Message) {})
	l.OnLoop(l.c.Resume)
	return l
}

// swap makes a change while everything runs.
func (l *live) swap(c component.EnvChange) component.EnvsWent {
	l.t.Helper()
	went := make(chan component.EnvsWent, 1)
	c.Went = func(e component.EnvsWent) { went <- e }
	c.RolledBack = func(err error) { l.t.Error(err) }
	p, err := l.c.PrepareEnvs(l.t.Context(), c)
	if err != nil {
		l.t.Fatal(err)
	}
	l.OnLoop(func() {
		if err := p.Commit(); err != nil {
			l.t.Error(err)
		}
	})
	select {
	case e := <-went:
		l.OnLoop(p.Settle)
		return e
	case <-time.After(patience):
	}
	l.OnLoop(func() {
		for i, s := range l.c.splits {
			l.t.Logf("split %d: writing %v, asked %v, row %d, next %+v, versions %+v, free %v, arena %+v", i, s.rows.writing, s.asked, s.t,
				s.next, s.versions, s.free, l.c.arena.Stats())
		}
	})
	l.t.Fatalf("%+v does not come", c)
	return component.EnvsWent{}
}

// held counts a process's mappings, descriptors and goroutines.
func held(t *testing.T, c *Rollout) [3]int {
	t.Helper()
	c.closing.group.Wait()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return [3]int{strings.Count(string(maps), "\n"), len(files), runtime.NumGoroutine()}
}

// A thousand changes in a run between two languages leave no mapping, no descriptor, no goroutine.
func TestChange_AThousandInARunLeaveNothing(t *testing.T) {
	p := guests(t, "c", "rust")
	l := newLive(t, p["c"])
	changes := 1000
	if testing.Short() {
		changes = 100
	}
	var before [3]int
	for k := range changes {
		if k == changes/10 {
			runtime.GC()
			before = held(t, l.c)
		}
		c := component.EnvChange{Plugin: p[[]string{"rust", "c"}[k%2]], At: component.Boundary(k % 3), KeepState: k%5 == 0, Probation: k%7 == 0}
		if k%50 == 49 {
			c.At = component.AtEpisode
		}
		if e := l.swap(c); e.Envs != 12 {
			t.Fatalf("change %d: %+v", k, e)
		}
	}
	runtime.GC()
	after := held(t, l.c)
	for i, what := range []string{"mappings", "descriptors", "goroutines"} {
		if after[i] > before[i]+before[i]/10+8 {
			t.Errorf("%d %s after %d changes, %d after a tenth of them", after[i], what, changes, before[i])
		}
	}
	t.Logf("mappings, descriptors, goroutines: %v, then %v", before, after)
	if got := l.Host.Stats.Counter("rollout/restarts").Value(); got != 0 {
		t.Errorf("%d restarts", got)
	}
}

// Preparing, closing and counting happen outside the loop.
func TestChange_PreparedWhileTheLoopRuns(t *testing.T) {
	var plugins [2]env.Plugin
	for i := range plugins {
		plugins[i] = plugintest.New(plugintest.Script{Name: fmt.Sprint("v", i, "@1"), Metric: func(at plugintest.At) (string, float64) {
			return "height", float64(at.Env)
		}})
	}
	l := newLive(t, plugins[0])
	for k := range 60 {
		c := component.EnvChange{Plugin: plugins[(k+1)%2], At: component.Boundary(k % 4), Envs: k / 20 % 2 * 5, KeepState: k%2 == 0}
		if k%4 == 0 {
			p, err := l.c.PrepareEnvs(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if c.Envs > 0 { // a trial, and its end
			p, err := l.c.PrepareEnvs(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			l.OnLoop(func() { err = p.Commit() })
			if err != nil {
				t.Fatal(err)
			}
			l.OnLoop(p.Cancel)
			l.Until("the way back", func() bool {
				l.c.changes.mu.Lock()
				defer l.c.changes.mu.Unlock()
				return l.c.changes.reserved == nil && l.c.changes.trial == nil
			})
			continue
		}
		l.swap(c)
	}
}
