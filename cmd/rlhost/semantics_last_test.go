package main

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// A last observation that is no number costs its environments a restart, like any other, and names the environment,
// however the episode ended and also beside another version of the environments.
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
				if r.Action == nil && r.Obs.Rows == 1 && left.Add(-1) == 0 { // the value of a last observation alone
					r.Value[0] = float32(math.Inf(1))
				}
			}
		}}
	}}.run(t)
	if !errors.Is(o.err, policy.ErrNotFinite) || !strings.Contains(o.err.Error(), "bootstrap_value of environment ") {
		t.Errorf("the run ends with %v, want a bootstrap_value and its environment", o.err)
	}
}

const spoiltEnv = `import gymnasium, numpy
class Spoilt(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)
    made = 0  # the first one is made to be described
    def __init__(self, how="truncated"):
        self.how, self.number, self.steps = how, Spoilt.made, 0
        Spoilt.made += 1
    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.age = 0
        return numpy.zeros(2, numpy.float32), {}
    def step(self, action):
        self.age += 1
        self.steps += 1
        end = self.age == 10
        last = numpy.array([0, numpy.nan if self.steps == 20 and self.number == 8 else 1], numpy.float32)
        return last, 1.0, end and self.how == "terminated", end and self.how == "truncated", {}
gymnasium.register("Spoilt-v0", Spoilt, disable_env_checker=True)
`

// What Gymnasium's environments end with is looked at too.
func TestS17LastObservationsOfGymnasiumAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.python()
	w.write("spoilt.py", spoiltEnv)
	w.write("gym.toml", strings.Replace(plain, "cartpole@1", "gymnasium:spoilt:Spoilt-v0", 1)+
		"[component.rollout]\nmax_restarts = 0\n")
	for _, how := range []string{"terminated", "truncated"} {
		c := exec.Command(w.program, "train", "gym.toml", "--set", "env.cartpole.args={how=\""+how+"\"}")
		c.Dir, c.Env = w.dir, append(os.Environ(), w.env...)
		out, err := c.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitFailed ||
			!strings.Contains(string(out), "error[R014]: rollout env 7: output in rl_step at step 20: environment wrote a value that is not allowed: final_obs element 1") {
			t.Errorf("%s: %v\n%s", how, err, out)
		}
	}
}
