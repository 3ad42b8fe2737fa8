package ppo

import (
	"math"
	"testing"

	"github.com/rlhost/rlhost/gpu/policy"
)

// Whose a parameter is, its name says. One of another name belongs to both, and then there is one norm.
func TestClipGradTakesTheNormsOfUnsharedParameters(t *testing.T) {
	c := Config{MaxGradNorm: 1, SeparateGradNorms: true}
	for name, want := range map[string]GradNorms{
		"actor.gate.weight":  {13, 5, 12},
		"critic.gate.weight": {13, 3, math.Hypot(4, 12)},
		"gate.weight":        {13, 13, 13},
	} {
		params := []policy.Param{{Name: "actor.head.bias", Rows: 1, Cols: 1}, {Name: name, Rows: 1, Cols: 1, Offset: 1},
			{Name: "critic.head.bias", Rows: 1, Cols: 1, Offset: 2}}
		grad := []float64{3, 4, 12}
		if got := ClipGrad(&c, params, grad); got != want {
			t.Errorf("with %s: norms %v, want %v", name, got, want)
		}
		if Apart(params) != (name != "gate.weight") {
			t.Errorf("with %s: Apart is %v", name, Apart(params))
		}
		for i, norm := range []float64{want.Actor, 0, want.Critic} {
			if free := []float64{3, 4, 12}[i]; i != 1 && math.Abs(grad[i]-free/norm) > 1e-6 {
				t.Errorf("with %s: element %d is %v, want %v clipped to a norm of 1 from %v", name, i, grad[i], free, norm)
			}
		}
	}
}
