package runner

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
)

// A policy whose episodes all end at their limit, with a return of -1 a step, while its entropy stays, is reported once and not
// before 100,000 env steps. A policy that ends an episode, gets other rewards, or becomes surer of its actions, is not.
func TestRunner_ReportsAPolicyThatDoesNotMove(t *testing.T) {
	const said = "every episode ended at its limit of 500, with the return of standing still"
	for name, c := range map[string]struct {
		ret     float32
		entropy float64
		ends    int // the episode that ends by itself; 0 = none
		want    int
	}{
		"stands still":         {-510, 1.1, 0, 1},
		"comes to an end":      {-500, 1.1, 150, 0},
		"costs less":           {-100, 1.1, 0, 0},
		"earns":                {500, 1.1, 0, 0},
		"is sure of its steps": {-500, 0.5, 0, 0},
	} {
		watch(t, setup{envs: 4, run: component.Run{}}, func(t *testing.T, g *rig) {
			g.update(1, 0, 0, 0, 0, 1.386, 1)
			for n := 1; n <= 240; n++ {
				e := trajectory.Episode{Return: c.ret, Length: 500, Env: uint32(n % 4), Terminated: n == c.ends}
				g.played(0, e)
				if n == 190 && strings.Contains(g.warnings.String(), said) {
					t.Errorf("%s: told after %d env steps", name, 500*n)
				}
				g.update(float64(500*n), 0, 0, 0, 0, c.entropy, 1)
			}
			if got := g.warnings.String(); strings.Count(got, said) != c.want || c.want > 0 && !strings.Contains(got, "entropy") {
				t.Errorf("%s: %q, want it told %d times", name, got, c.want)
			}
		})
	}
}
