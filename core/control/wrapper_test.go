package control_test

import (
	"testing"

	"github.com/rlhost/rlhost/core/control"
)

func TestSplitWrapper(t *testing.T) {
	for name, want := range map[string]struct {
		component string
		place     int
		ok        bool
	}{
		"rollout.wrap[1]": {"rollout", 1, true}, "a.b.wrap[12]": {"a.b", 12, true}, "rollout": {"rollout", 0, false}, "rollout.wrap": {"rollout.wrap", 0, false},
		"rollout.wrap[]": {"rollout.wrap[]", 0, false}, "rollout.wrap[-1]": {"rollout.wrap[-1]", 0, false}, ".wrap[1]": {".wrap[1]", 0, false},
		"rollout.wrap[99999]": {"rollout.wrap[99999]", 0, false},
	} {
		if component, place, ok := control.SplitWrapper(name); component != want.component || place != want.place || ok != want.ok {
			t.Errorf("%s: %q, %d, %v", name, component, place, ok)
		}
	}
}
