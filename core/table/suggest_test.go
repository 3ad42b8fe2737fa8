package table

import (
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
