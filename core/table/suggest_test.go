package table

import (
	"slices"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	keys := []string{"seed", "stop", "name", "dir", "drop_oldest", "checkpoint", "on_dataset"}
	for name, want := range map[string]string{
		"sed": "seed", "stpo": "stop", "nmae": "name", "check": "checkpoint", "drop": "drop_oldest", "ondataset": "on_dataset",
		"xyz": "", "x": "", "": "", "reward": "", "SEED": "seed", strings.Repeat("seed", 40): "",
	} {
		if got, _ := Nearest(name, keys); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestClosest_PrefersPartsThatHaveTheName(t *testing.T) {
	candidates := []string{"charts/episodic_return", "losses/approx_kl", "losses/entropy", "losses/policy_loss", "losses/value_loss", "perf/wall_seconds"}
	for name, want := range map[string][]string{
		"loss":            {"losses/policy_loss", "losses/value_loss", "losses/approx_kl"},
		"losses/entropie": {"losses/entropy", "losses/approx_kl", "losses/value_loss"},
		"episodic_retrun": {"charts/episodic_return"},
	} {
		if got := Closest(name, candidates, len(want)); !slices.Equal(got, want) {
			t.Errorf("Closest(%q) = %q, want %q", name, got, want)
		}
	}
	if got := Closest("loss", nil, 3); len(got) != 0 {
		t.Errorf("of no candidates %q", got)
	}
}
