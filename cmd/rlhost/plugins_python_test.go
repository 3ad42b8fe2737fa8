package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/control/text"
)

// A shaper in Python rewrites rewards in place: without shaping the learning is the same to the last bit, and half the reward
// gives the same parameters as the shaper in Go.
func TestPlugins_RewardsAreShapedInPython(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	python := w.python()
	script, err := filepath.Abs("../../examples/plugins/process-python/shaper.py")
	if err != nil {
		t.Fatal(err)
	}
	w.write("plain.toml", plain)
	w.write("go.toml", between)
	w.write("python.toml", strings.Replace(between, `path = "./between"`, fmt.Sprintf("path = %q\ninterpreter = [%q]", script, python), 1))
	w.example("Go", "between")
	half := "component.between.scale=0.5"
	if got, want := w.train("python.toml").ParamsHash, w.train("plain.toml").ParamsHash; got != want {
		t.Errorf("with a shaper that shapes nothing: parameters %.12s, want %.12s", got, want)
	}
	if got, want := w.train("python.toml", "--set", half).ParamsHash, w.train("go.toml", "--set", half).ParamsHash; got != want {
		t.Errorf("half the reward: parameters %.12s, want those with the shaper in Go, %.12s", got, want)
	}
}

// A component that writes a column that no wire grants ends the run, in either language with the same words.
func TestPlugins_RewardsAreWrittenOnlyWhereAWireGrantsIt(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	script, err := filepath.Abs("../../examples/plugins/process-python/shaper.py")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(between, "write = [\"reward\"]\n", "", 1)
	w.write("python.toml", strings.Replace(text, `path = "./between"`, fmt.Sprintf("path = %q\ninterpreter = [%q]", script, w.python()), 1))
	w.write("go.toml", text)
	w.example("Go", "between")
	for _, file := range []string{"python.toml", "go.toml"} {
		w.fails(exitFailed, []string{"train", file}, "error[E068]", `E038 slot between.on_trajectories: may not write reward: no wire grants it; `+
			`add write = ["reward"] to each [[wire]] with slot = "between.on_trajectories"`)
	}
}

// bandit is a complete learner in Python that learns nothing: its inputs and its metrics go by name.
const bandit = `import numpy
import rlhost

class Bandit(rlhost.Learner):
    def begin_learning(self, policy):
        assert (policy.obs, policy.actions[0].counts, policy.hidden, policy.activation) == (4, (2,), (64, 64), "tanh"), policy
        assert list(policy.tensors())[:3] == ["actor.0.weight", "actor.0.bias", "actor.1.weight"], policy.tensors()
        self.net = {name: numpy.zeros(shape, "f4") for name, shape in policy.tensors().items()}

    def parameters(self):
        return self.net

    def learn(self, dataset):
        reward, obs = dataset["reward"], dataset["obs"]
        for block in dataset:
            assert block.obs.strides[0] > 0 and not block.reward.flags.writeable
        assert obs.shape == (reward.shape[0] + 1, reward.shape[1], 4), (obs.shape, reward.shape)
        self.optimizer_steps += 1
        return {"losses/reward": reward.mean(), "losses/shaped": dataset["shaped_reward"].mean()}

    def learner_state(self):
        return rlhost.State({"own": self.optimizer_steps})

    def set_learner_state(self, state):
        assert state.meta["own"] == 10, state.meta

rlhost.serve(Bandit)
`

func TestPlugins_ALearnerOfOnesOwnHasNamesForEverything(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("learner.py", bandit)
	w.write("own.toml", fmt.Sprintf("%s[plugin.own]\npath = \"./learner.py\"\ninterpreter = [%q]\n[component.learner]\nplugin = \"own\"\n",
		plain, w.python()))
	if end := w.train("own.toml", "--set", "env.cartpole.wrap=[{ reward_scale = 0.5 }, { reward_clip = 0.25 }]"); end.EnvSteps != 20480 || end.Reason != "env_steps" {
		t.Errorf("ended by %s after %d env steps", end.Reason, end.EnvSteps)
	}
	lines := strings.Split(strings.TrimSpace(w.read("runs/cartpole/0001/metrics.jsonl")), "\n")
	var last map[string]float64
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if last["losses/reward"] != 1 || last["losses/shaped"] != 0.25 || last["global_step"] != 20480 || last["lag/max"] != 0 || last["learner/optimizer_steps"] != float64(len(lines)) {
		t.Errorf("metrics %v", last)
	}
	if end := w.train("--resume", "latest", "--set", "run.stop.env_steps=40960"); end.EnvSteps != 40960 {
		t.Errorf("resumed, ended after %d env steps", end.EnvSteps)
	}
}

// An exception of a component in Python ends the run with a code, the method and the line.
func TestPlugins_ExceptionsOfComponentsHaveACode(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	python := w.python()
	w.write("between.toml", strings.Replace(between, `path = "./between"`, fmt.Sprintf("path = \"./between\"\ninterpreter = [%q]", python), 1))
	w.write("between", `import rlhost

class Between(rlhost.Component):
    signals = [rlhost.Signal("trajectories", "trajectory")]
    slots = [rlhost.Slot("on_trajectories", "trajectory")]

    def on_trajectories(self, m):
        raise ValueError("not today")

rlhost.serve(Between)
`)
	w.fails(exitFailed, []string{"train", "between.toml"}, "error[E068]", "on_trajectories: ValueError: not today (between:8)")
}

// countless is a learner in Python that publishes the same weights again and again, and reports no env step. keep is how
// many leases it keeps before it continues without a message.
const countless = `import struct
import rlhost

class Learner(rlhost.Component):
    kind = "learner"
    signals = [rlhost.Signal("weights", "weights"), rlhost.Signal("stats", "learner_stats")]
    slots = [rlhost.Slot("on_dataset", "dataset")]

    def configure(self, config):
        self.keep = config.get("epochs") == 9

    def start(self, host):
        self.floats = 2 * (4 * 64 + 64 + 64 * 64 + 64) + 64 * 2 + 2 + 64 + 1
        self.weights = host.add_arena("weights", 2 + host.readers.get("weights", 1), 64 + 4 * self.floats)
        self.version, self.published = 0, 0

    def restore(self, state):
        self.state, self.version = state, state.meta["policy_version"]

    def snapshot(self):
        self.state.meta["policy_version"] = self.version
        return self.state

    def begin(self):
        with self.weights.loan() as loan:
            struct.pack_into("<QII", loan.array, 0, self.version, self.floats, 0)
            loan.array[16:] = 0
            handle = loan.commit()
        if self.published:
            self.weights.release(self.published)
        self.published = handle
        self.host.emit("weights", handle, policy_version=self.version)

    def on_dataset(self, m):
        with self.host.lease(m.handle) as block:
            _, count, _ = struct.unpack_from("<QII", block.array)
            handles = struct.unpack_from(f"<{count}Q", block.array, 16)
        leases = [self.host.lease(h) for h in handles]
        if not self.keep:
            for lease in leases:
                lease.release()
        self.version += 1
        self.begin()
        self.host.boundary()

rlhost.serve(Learner)
`

// own writes a pipeline with a learner in Python, which is that of the beginning or only declared.
func (w *workshop) own(script string, begins bool) {
	w.t.Helper()
	python := w.python()
	w.write("learner.py", script)
	text := fmt.Sprintf("%s[plugin.own]\npath = \"./learner.py\"\ninterpreter = [%q]\n", strings.Replace(plain, "20480", "500_000_000", 1), python)
	if begins {
		text += "[component.learner]\nplugin = \"own\"\n"
	}
	w.write("own.toml", text)
}

// Env steps add up with any learner, also after it was replaced.
func TestPlugins_AnAuthorsLearnerIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.own(countless, false)
	j := w.host("own.toml")
	for _, next := range []string{"own", "builtin"} {
		j.swap(control.SwapRequest{Component: "learner", File: next, Probation: new(0.0)})
		before := j.status().Steps
		s := j.until("more is trained", func(s *control.StatusReply) bool { return s.Steps.Trained > before.Trained+10_000 })
		if n := j.addsUp(); n.Trained < s.Steps.Made/2 {
			t.Errorf("learner %s: %+v", next, n)
		}
	}
}

// A component that keeps its leases stops the run: status names it, its blocks and their age.
func TestPlugins_WhoKeepsItsLeasesIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.own(countless, true)
	j := w.begin(false, "own.toml", "--set", "component.learner.epochs=9")
	cause := regexp.MustCompile(`^learner holds [0-9]+ blocks? of rollout.trajectories, the oldest for [0-9]+ s, and`)
	s := j.until("the cause is named", func(s *control.StatusReply) bool { return cause.MatchString(s.Cause) })
	for _, want := range []string{`(?m)^learner +pid [0-9]+ +STALLED .* holds [0-9]+ block`, `^cartpole/0001  stalled `} {
		if shown := text.Status(&s); !regexp.MustCompile(want).MatchString(shown) {
			t.Errorf("status does not say %s but\n%s", want, shown)
		}
	}
}
