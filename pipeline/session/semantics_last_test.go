package session_test

import (
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// A last observation that is no number costs its environments a restart, like any other, and names the environment,
// however the episode ended, also next to another version of the environments.
func TestS17LastObservationsAreCheckedLikeOthers(t *testing.T) {
	for name, end := range map[string]plugintest.End{"terminated": plugintest.Terminates, "truncated": plugintest.Truncates} {
		t.Run(name, func(t *testing.T) {
			script := uneven()
			script.Autoreset = hostabi.SameStep
			script.Ends = func(int, int) plugintest.End { return end }
			script.Cue = func(at plugintest.At) plugintest.Cue {
				if !at.Reset && at.Env == 5 && at.Episode == 2 && at.Renewals == 0 && at.Step == script.Length(5, 2)-1 {
					return plugintest.NaNFinalObs
				}
				return plugintest.Nothing
			}
			const want = "rollout env 5: output in rl_step at step 19: environment wrote a value that is not allowed: " +
				"final_obs element 3, of the last observation of an episode, is NaN"
			o := experiment{script: script}.must(t)
			if strings.Count(o.log, "environments restarted") != 1 || !strings.Contains(o.log, want) {
				t.Errorf("the log says\n%s\nwant one restart because of\n%s", o.log, want)
			}
			if o.stats["rollout/restarts"] != 1 || len(o.hashes) != 4 {
				t.Errorf("%v restarts, %d datasets", o.stats["rollout/restarts"], len(o.hashes))
			}
			o = experiment{script: script, sets: []string{"component.rollout.max_restarts=0"}}.run(t)
			if !errors.Is(o.err, trajectory.ErrOutput) || !strings.Contains(o.err.Error(), want) {
				t.Errorf("without restarts the run ends with %v, want\n%s", o.err, want)
			}
		})
	}
}

// The value of a last observation that is no number names its environment, and nothing is learned from it.
func TestS17ABootstrapThatIsNotFiniteIsNotLearnedFrom(t *testing.T) {
	script := uneven()
	script.Autoreset = hostabi.SameStep
	script.Ends = func(int, int) plugintest.End { return plugintest.Truncates }
	var left atomic.Int32
	left.Store(10)
	o := experiment{script: script, backend: func(b policy.Backend) policy.Backend {
		return &spy{Backend: b, acted: func(requests []policy.Request) {
			for _, r := range requests {
				if r.Action == nil && r.Len() == 1 && left.Add(-1) == 0 { // the value of a last observation alone
					r.Value[0] = float32(math.Inf(1))
				}
			}
		}}
	}}.run(t)
	if !errors.Is(o.err, policy.ErrNotFinite) || !strings.Contains(o.err.Error(), "bootstrap_value of environment ") {
		t.Errorf("the run ends with %v, want a bootstrap_value and its environment", o.err)
	}
}
