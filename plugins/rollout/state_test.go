package rollout

import (
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
)

// A change that keeps the episodes keeps what the policy has of them, and with others it begins from nothing: the world holds
// each state against what is observed. Here an episode has 5 steps, blocks have 4, and the change is asked for in row 2.
func TestS19ChangesKeepTheStateOrBeginWithoutOne(t *testing.T) {
	for at, want := range map[component.Boundary]struct{ kept, begun []byte }{
		component.AtNow:        {[]byte{0, 1, 2, 2, 3, 4, 0, 1}, []byte{0, 1, 2, 0, 1, 2, 3, 4}},
		component.AtStep:       {[]byte{0, 1, 2, 3, 4, 0, 1, 2}, []byte{0, 1, 2, 0, 1, 2, 3, 4}},
		component.AtTrajectory: {[]byte{0, 1, 2, 3, 4, 0, 1, 2}, []byte{0, 1, 2, 3, 0, 1, 2, 3}},
		component.AtEpisode:    {[]byte{0, 1, 2, 3, 4, 0, 1, 2}, []byte{0, 1, 2, 3, 4, 0, 1, 2}},
	} {
		for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.Disabled} {
			for _, keep := range []bool{false, true} {
				w := newWorld(t, worldOptions{mode: mode})
				w.inRow(0, 2)
				w.change(2, component.EnvChange{At: at, KeepState: keep})
				w.run(func() bool { return len(w.ages) >= 8 })
				ages := want.begun
				if keep {
					ages = want.kept
				}
				if !slices.Equal(w.ages[:8], ages) {
					t.Errorf("%v, %v, keeping %v: ages %v, want %v", at, mode, keep, w.ages[:8], ages)
				}
				w.balance()
			}
		}
	}
}
