package rollout

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/rollout"
	"github.com/rlhost/rlhost/hostabi"
)

// Whatever the boundary, the mode, the number of splits: every row is of one version, episodes end as they must, and
// everything is counted once.
func TestS2ChangesEndEpisodesAsTruncated(t *testing.T) {
	for _, at := range []component.Boundary{component.AtNow, component.AtStep, component.AtTrajectory, component.AtEpisode} {
		for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled} {
			for splits := 1; splits <= 3; splits++ {
				for variant := range 4 { // each pair of choices comes up with some boundary
					turn := variant + splits + int(mode) + int(at)
					keep, async, limit, halves := variant&1 != 0, variant&2 != 0, turn&1*4, turn%3 == 0
					name := fmt.Sprintf("%v/%v/splits %d/keep %v/async %v/limit %d/halves %v", at, mode, splits, keep, async, limit, halves)
					t.Run(name, func(t *testing.T) {
						o := worldOptions{mode: mode, splits: splits, async: async, limit: limit, masked: turn&2 != 0}
						if halves {
							o.wrap = func(p rollout.Plugin) rollout.Plugin { return elsewhere{p} }
						}
						testChanges(t, o, component.EnvChange{At: at, KeepState: keep})
					})
				}
			}
		}
	}
}

func testChanges(t *testing.T, o worldOptions, c component.EnvChange) {
	w := newWorld(t, o)
	w.more(2)
	for k, row := range []int{0, 1, 3, 4, 2, 0} {
		w.inRow(k%w.c.config.Splits, row)
		version := 2 + k%3
		if o.wrap != nil {
			c.Plugin = o.wrap(w.plugins[version])
		}
		w.change(version, c)
		went := w.went[len(w.went)-1]
		if went.Envs != 6 || len(went.PauseNS) != w.c.config.Splits || went.Dropped != 0 && c.At != component.AtNow {
			t.Errorf("change %d went %+v", k, went)
		}
		carries := c.KeepState && o.wrap == nil && c.At != component.AtEpisode
		if carries && went.Kept == 0 && row > 0 || !carries && went.Kept != 0 || carries && went.Truncated > 0 ||
			c.At == component.AtEpisode && went.Truncated != 0 {
			t.Errorf("change %d went %+v, keeping %v", k, went, carries)
		}
		if want := map[int]int{version: w.c.config.Splits}; !maps.Equal(w.open(), want) {
			t.Errorf("after change %d the open batches of each version are %v, want %v", k, w.open(), want)
		}
		w.more(3)
	}
	w.balance()
	if w.c.restarted != 0 {
		t.Errorf("%d restarts", w.c.restarted)
	}
	if w.told == 0 {
		t.Error("no episode ended: the test looks at too little")
	}
	dropped := 0
	for _, went := range w.went {
		dropped += int(went.Dropped)
	}
	if got := w.counter("swap/dropped_env_steps"); int(got) != dropped || (dropped > 0) != (c.At == component.AtNow) {
		t.Errorf("%d env steps counted as dropped, %d told", got, dropped)
	}
}

var errNone = errors.New("none")
