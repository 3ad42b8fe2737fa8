package runner

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rlhost/rlhost/core/component"
)

// The learner continues to its next boundary, and the window with it: the state that ended the run is reported
// separately.
func TestReachedReturnIsTheOneThatEndedTheRun(t *testing.T) {
	watch(t, setup{run: component.Run{Stop: component.StopRule{Return: new(1.9), Window: 4}}, envs: 2}, func(t *testing.T, g *rig) {
		for i := range 4 {
			g.episode(i%2, 2, 5)
		}
		if n := len(g.stops()); n != 1 {
			t.Fatalf("stopped %d times, want once", n)
		}
		for i := range 4 {
			g.episode(i%2, 1, 5)
		}
		synctest.Wait()
		if mean := g.r.window.Mean(); mean != 1 {
			t.Fatalf("the window has gone on to %v, want 1", mean)
		}
		if reached := g.h.Stats.Gauge(component.GaugeReachedReturn).Value(); reached != 2 {
			t.Errorf("reached %v, want 2", reached)
		}
	})
}

func TestTheEndOfTheScheduleIsSaidOnce(t *testing.T) {
	const message = "the learning rate has reached 0"
	watch(t, setup{run: component.Run{Stop: component.StopRule{EnvSteps: 9000}}, envs: 2}, func(t *testing.T, g *rig) {
		g.update(2048, 0, 0, 0, 0, 0, 1e-9)
		if said := g.warnings.String(); strings.Contains(said, message) {
			t.Errorf("said of a rate of 1e-9: %s", said)
		}
		g.update(4096, 0, 0, 0, 0, 0, 0)
		g.update(6144, 0, 0, 0, 0, 0, 0)
		said := g.warnings.String()
		if strings.Count(said, message) != 1 {
			t.Errorf("said not once, but: %q", said)
		}
		for _, key := range []string{"component.learner.lr_anneal_env_steps", "run.stop.env_steps", "env_steps=4096"} {
			if !strings.Contains(said, key) {
				t.Errorf("%q lacks %s", said, key)
			}
		}
	})
}

// A schedule over the env steps of the run ends with it. The datasets in flight then are learned from at a rate of 0.
func TestTheEndOfTheScheduleIsNotSaidOfARunThatIsOver(t *testing.T) {
	watch(t, setup{run: component.Run{Stop: component.StopRule{EnvSteps: 4096}}, envs: 2}, func(t *testing.T, g *rig) {
		g.update(4096, 0, 0, 0, 0, 0, 1e-9)
		g.update(6144, 0, 0, 0, 0, 0, 0)
		if said := g.warnings.String(); said != "" {
			t.Errorf("said: %s", said)
		}
	})
}
