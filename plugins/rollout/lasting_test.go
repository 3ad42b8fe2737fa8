package rollout

import (
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wrap"
)

// normalizedPlugin has rewards normalised by statistics. Empty statistics make the first reward of an environment a 10.
func normalizedPlugin(t *testing.T, p env.Plugin) env.Plugin {
	t.Helper()
	p, err := wrap.New(p, []env.Wrapper{{"reward_clip": 1e3}, {"reward_normalize": map[string]any{}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// learnedWorld is a world whose rewards are normalised. largest returns the largest that was learned from since it was last called.
func learnedWorld(t *testing.T, o worldOptions) (w *world, largest func() float32) {
	t.Helper()
	o.wrap = func(p env.Plugin) env.Plugin { return normalizedPlugin(t, p) }
	w = newWorld(t, o)
	var most float32
	w.eachBlock(t, func(m *hostabi.Message, tr trajectory.Trajectory) {
		w.onTrajectory(m, tr)
		valid := tr.Bytes(trajectory.Valid)
		for i, r := range tr.Float32(trajectory.ShapedReward) {
			if valid[i] != 0 {
				most = max(most, r)
			}
		}
	})
	w.more(6)
	largest = func() float32 {
		was := most
		most = 0
		return was
	}
	if got := largest(); got != 10 {
		t.Fatalf("the largest of the first rewards is %v: what follows shows nothing", got)
	}
	return w, largest
}

// Statistics of rewards survive all that ends episodes: a fault of the instance, and a change of environments without their state, at
// any boundary, even if it is taken back.
func TestS29_StatisticsSurviveFaultsAndChanges(t *testing.T) {
	check := func(t *testing.T, w *world, largest func() float32) {
		t.Helper()
		w.more(6)
		if got := largest(); got > 5 {
			t.Errorf("a reward of %v is learned from: the statistics have begun anew", got)
		}
	}
	t.Run("fault", func(t *testing.T) {
		w, largest := learnedWorld(t, worldOptions{splits: 2, flaws: map[int]func(*plugintest.Script){1: at(1, 24, plugintest.Trap)}})
		w.loose = true
		w.run(func() bool { return w.c.restarted.All() > 0 })
		check(t, w, largest)
	})
	for _, boundary := range []component.Boundary{component.AtNow, component.AtStep, component.AtTrajectory, component.AtEpisode} {
		t.Run(boundary.String(), func(t *testing.T) {
			w, largest := learnedWorld(t, worldOptions{splits: 2, async: true})
			w.change(2, component.EnvChange{At: boundary, Plugin: normalizedPlugin(t, w.plugins[2])})
			check(t, w, largest)
		})
		t.Run(boundary.String()+", back", func(t *testing.T) {
			w, largest := learnedWorld(t, worldOptions{splits: 2, async: true, flaws: map[int]func(*plugintest.Script){2: at(1, 13, plugintest.Trap)}})
			w.commit(w.prepare(2, component.EnvChange{At: boundary, Probation: true, Plugin: normalizedPlugin(t, w.plugins[2])}))
			w.run(func() bool { return len(w.rolledBack) > 0 })
			check(t, w, largest)
		})
	}
}

// A component with any number of environments takes over lasting state, and no other. Damaged state is refused, or left out.
func TestS29_StatisticsGoToOtherEnvironments(t *testing.T) {
	w, _ := learnedWorld(t, worldOptions{splits: 2})
	part, ok := w.c.Lasting()
	if !ok || !part.OnlyLasting() {
		t.Fatalf("what outlives episodes: %v, of %d blobs", ok, len(part.Blobs))
	}
	first := func(part component.State, refused bool) float32 {
		r := newRig(t, rigOptions{plugin: normalizedPlugin(t, w.plugins[1]), config: func(c *config) { c.Envs, c.Splits = 8, 1 }})
		if err := r.c.Restore(part); (err != nil) != refused {
			t.Fatalf("restored with %v", err)
		}
		var most float32
		r.eachBlock(t, func(_ *hostabi.Message, tr trajectory.Trajectory) {
			for _, reward := range tr.Float32(trajectory.ShapedReward) {
				most = max(most, reward)
			}
		})
		seen := func() bool { return most > 0 }
		r.MustRun(seen)
		return most
	}
	if got := first(part, false); got > 5 {
		t.Errorf("the first rewards are up to %v: the statistics have begun anew", got)
	}
	kept := part.Blobs[component.LastingBlob]
	if got := first(component.State{Blobs: map[string][]byte{component.LastingBlob: kept[:len(kept)-1]}}, true); got != 10 {
		t.Errorf("half of a state: the first rewards are up to %v", got)
	}
	none := make([]byte, len(kept)) // lengths of 0
	if got := first(component.State{Blobs: map[string][]byte{component.LastingBlob: none}}, false); got != 10 {
		t.Errorf("a state of nothing: the first rewards are up to %v", got)
	}
}
