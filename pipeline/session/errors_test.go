package session

import (
	"errors"
	"testing"
)

func TestFaultOf_NamesTheComponentOnce(t *testing.T) {
	for fault, want := range map[string]string{
		"trap":                             "rollout: trap",
		"rollout: lost in rl_bind":         "rollout: lost in rl_bind",
		"rollout env 15: trap in rl_step":  "rollout env 15: trap in rl_step",
		"rollout: rollout: change is late": "rollout: change is late",
		"rollout[1]: trap":                 "rollout: rollout[1]: trap",
		"rollouts: trap":                   "rollout: rollouts: trap",
		"a: b: a: c":                       "rollout: a: b: a: c",
		"":                                 "rollout: ",
	} {
		if got := faultOf("rollout", errors.New(fault)); got != want {
			t.Errorf("fault %q: %q, want %q", fault, got, want)
		}
	}
}
