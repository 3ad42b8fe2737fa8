package session

import (
	"errors"
	"testing"

	"github.com/rlhost/rlhost/plugins/evaluation"
)

func TestTrial_KnowsWhatIsTooSlow(t *testing.T) {
	for _, c := range []struct {
		name          string
		allowed       float64
		before, after evaluation.Trial
		slow          bool
	}{
		{"five times slower", 4, evaluation.Trial{PerSecond: 1e6}, evaluation.Trial{Steps: 8000, PerSecond: 2e5}, true},
		{"three times slower", 4, evaluation.Trial{PerSecond: 1e6}, evaluation.Trial{Steps: 8000, PerSecond: 3.4e5}, false},
		{"over in no time", 4, evaluation.Trial{PerSecond: 1e6}, evaluation.Trial{Steps: 200, PerSecond: 1e5}, false},
		{"allowed", 0, evaluation.Trial{PerSecond: 1e6}, evaluation.Trial{Steps: 8000, PerSecond: 1}, false},
		{"failed", 4, evaluation.Trial{PerSecond: 1e6}, evaluation.Trial{Steps: 8000, PerSecond: 1, Fault: errors.New("a trap")}, false},
		{"never stepped", 4, evaluation.Trial{PerSecond: 1e6}, evaluation.Trial{}, false},
	} {
		if slow := (&trial{rules: rules{slower: c.allowed}}).tooSlow(&c.before, &c.after); slow != c.slow {
			t.Errorf("%s: %v", c.name, slow)
		}
	}
}
