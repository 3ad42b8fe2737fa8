package session_test

import (
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// Env steps made, trained on, dropped and under way are counted in different places. In a synchronous run they add up at
// every boundary, whatever the environments do: phantom transitions are no steps, and steps of a fault are dropped.
func TestSteps_AddUpAtEveryBoundary(t *testing.T) {
	trapping := uneven()
	trapping.Cue = func(at plugintest.At) plugintest.Cue {
		if !at.Reset && at.Renewals == 0 && at.Env == 5 && at.Episode == 3 {
			return plugintest.Trap
		}
		return plugintest.Nothing
	}
	next := uneven()
	next.Autoreset = hostabi.NextStep
	cases := []struct {
		name    string
		script  plugintest.Script
		dropped bool
	}{
		{"plain", uneven(), false},
		{"next-step autoreset", next, false},
		{"a fault", trapping, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			boundaries := 0
			x := experiment{script: c.script, sets: []string{"run.stop.env_steps=2048"},
				boundary: func(p *pipeline.Pipeline, n int, _ func() (map[string]component.State, error)) error {
					boundaries = n
					s := p.Steps()
					if s.Made != s.Trained+s.Dropped+s.UnderWay || s.Trained == 0 || c.dropped != (s.Reasons["fault"] > 0) && n > 8 {
						t.Errorf("boundary %d: %+v", n, s)
					}
					return nil
				}}
			x.must(t)
			if boundaries < 8 {
				t.Errorf("%d boundaries", boundaries)
			}
		})
	}
}
