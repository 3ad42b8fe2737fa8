package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rlhost/rlhost/core/control"
)

// linear is a policy in Python with NumPy alone, and a learner that improves it by the gradient of its actions' log-probabilities. It counts the
// rows of an episode in its state. Its argument bug names its mistake.
const linear = `import os
import time
import numpy
import rlhost


class Linear(rlhost.Policy):
    state_size = 1

    def __init__(self, spec, scale=1.0, bug=""):
        assert spec.shape == (4,) and spec.choices == 2 and spec.masks == (), spec
        self.scale, self.bug, self.rng = scale, bug, numpy.random.default_rng(spec.seed)
        self.weight, self.bias = numpy.zeros((4, 2), "f4"), numpy.zeros(2, "f4")

    def parameters(self):
        return {"weight": self.weight, "bias": self.bias, **({"more": self.bias[:1]} if self.bug == "more" and "rollout" in os.environ else {})}

    def probabilities(self, obs):
        logits = self.scale * obs @ self.weight + self.bias
        return numpy.exp(logits) / numpy.exp(logits).sum(1, keepdims=True)

    def act(self, obs, state, mask, greedy):
        assert mask is None and obs.shape == (len(obs), 4) and state.shape == (len(obs), self.state_size)
        p, rows = self.probabilities(obs), numpy.arange(len(obs))
        action = p.argmax(1) if greedy else (self.rng.random(len(obs)) < p[:, 1]).astype(int)
        log_prob, value, after = numpy.log(p[rows, action]), state.sum(1), state + 1
        if self.bug == "raise" and state.max() > 2:
            raise RuntimeError("no idea")
        if self.bug == "shape":
            value = value[:, None]
        if self.bug == "dtype":
            action = action.astype(float)
        if self.bug == "not a number":
            value[1] = numpy.nan
        if self.bug == "range":
            action[2] = 2
        if self.bug == "state":
            after = None
        if self.bug == "three":
            return action, value, after
        if self.bug == "hang" and state.max() > 2:
            time.sleep(1000)
        if self.bug == "die" and state.max() > 2:
            os._exit(3)
        if self.bug == "once" and state.max() > 2 and not os.path.exists("died"):
            open("died", "w").close()
            os._exit(3)
        return action, log_prob, value, after


class Reinforce(rlhost.PolicyLearner):
    network = Linear

    def learn(self, dataset):
        obs, action, reward = dataset["obs"][:-1].reshape(-1, 4), dataset["action"].astype(int).ravel(), dataset["reward"]
        ends = (dataset["terminated"] | dataset["truncated"]).astype(bool)
        value = dataset["value"][:-1]
        assert not self.net.state_size or (value[1:][~ends[:-1]] == value[:-1][~ends[:-1]] + 1).all() and (value[1:][ends[:-1]] == 0).all(), "the state is not kept"
        follows = numpy.zeros_like(reward)
        last = numpy.zeros_like(reward[0])
        for t in reversed(range(len(reward))):
            follows[t] = last = reward[t] + 0.95 * last * ~ends[t]
        gain = ((follows - follows.mean()) / follows.std()).ravel()
        slope = (numpy.eye(2)[action] - self.net.probabilities(obs)) * gain[:, None] * dataset["valid"].ravel()[:, None]
        self.net.weight += (2 * obs.T @ slope / len(obs)).astype("f4")
        self.net.bias += (slope.mean(0)).astype("f4")
        self.optimizer_steps += 1
        return {"losses/gain": float(follows.mean())}

    def learner_state(self):
        return rlhost.State({"own": self.optimizer_steps})

    def set_learner_state(self, state):
        assert state.meta["own"] == self.datasets or state.meta["own"] > 0


if __name__ == "__main__":
    rlhost.serve(Reinforce)
`

// ownPolicy is a workshop with a pipeline whose policy is linear's.
func ownPolicy(t *testing.T, keys string) *workshop {
	w := newWorkshop(t)
	w.write("linear.py", linear)
	w.write("own.toml", fmt.Sprintf("%s[plugin.own]\npath = \"./linear.py\"\ninterpreter = [%q]\n%s[policy.main]\nplugin = \"own\"\n", plain, w.python(), keys))
	return w
}

// A policy in Python acts in a process of its own, learns, is saved, resumed, evaluated and exported, and its state goes from row to row.
func TestPolicies_OfOnesOwnActLearnAndAreSaved(t *testing.T) {
	t.Parallel()
	w := ownPolicy(t, "")
	end := w.train("own.toml", "--set", "policy.main.args={ scale = 2.0 }")
	if end.EnvSteps != 20480 || end.Reason != "env_steps" {
		t.Fatalf("ended by %s after %d env steps", end.Reason, end.EnvSteps)
	}
	if !(end.EvalReturn > 50) { // an untrained one reaches 10
		t.Errorf("it has learned nothing: %+v", end)
	}
	again := w.train("--resume", "latest", "--set", "run.stop.env_steps=40960")
	if again.EnvSteps != 40960 || !(again.EvalReturn > 50) {
		t.Errorf("resumed, ended after %d env steps: %+v", again.EnvSteps, again)
	}
	w.says([]string{"eval", "latest", "--episodes", "4", "--seed", "3", "--json"}, fmt.Sprintf("%q", "greedy_returns"))
	w.says([]string{"export", "latest", "-o", "policy.npz"}, "its program alone computes it")
	w.fails(exitConfig, []string{"export", "latest", "--format", "onnx", "-o", "policy.onnx"}, "error[E049]", `plugin "own": it alone computes its network`, `acts = "host"`)
	w.write("load.py", loadLinear)
	out, err := exec.Command(w.python(), w.path("load.py"), w.path("policy.npz")).CombinedOutput()
	if err != nil {
		t.Errorf("load: %v\n%s", err, out)
	}
}

// loadLinear loads an exported linear policy and compares what it predicts with what its class computes.
const loadLinear = `import sys
import numpy
import rlhost
from linear import Linear
try:
    rlhost.load(sys.argv[1])
    sys.exit("a policy of one's own is loaded without its class")
except ValueError as e:
    assert "rlhost.load(..., network=MyPolicy)" in str(e), e
loaded = rlhost.load(sys.argv[1], network=Linear)
obs, net = numpy.random.default_rng(1).normal(size=(50, 4)).astype("f4"), loaded._policy._made
assert net.scale == 2.0 and numpy.abs(net.weight).max() > 0.1, (net.scale, net.weight)
actions, state = loaded.predict(obs)
assert (actions == (2 * obs @ net.weight + net.bias).argmax(1)).all() and (state == 1).all() and {0, 1} == set(actions.tolist())
action, state = loaded.predict(obs[0], state[0])
assert action == actions[0] and state.tolist() == [2], (action, state)
`

// What a policy of one's own does wrong is an error that names the policy, the plugin, the reason and, where there is one, the line or the
// environment.
func TestPolicies_OfOnesOwnThatAnswerNonsense(t *testing.T) {
	t.Parallel()
	w := ownPolicy(t, "stall = \"2s\"\nmax_restarts = 1\n")
	for bug, want := range map[string][]string{
		"raise":        {"error[R016]", `policy "main": plugin "own" could not act: RuntimeError: no idea (linear.py:`},
		"shape":        {"error[R016]", "value has the shape [32, 1], want [32]"},
		"dtype":        {"error[R016]", "action is of float64, want whole numbers"},
		"not a number": {"error[R016]", "environment 1 at env step 0", "value is nan"},
		"range":        {"error[R016]", "environment 2 at env step 0", "action is [2], want 0 to 1"},
		"state":        {"error[R016]", "state is None"},
		"three":        {"error[R016]", "act of Linear returned a tuple of 3, want (action, log_prob, value, state)"},
		"hang":         {"error[R016]", "did not act within 2s", "linear.py"},
		"die":          {"error[E066]", "ended with status 3", "may not be started again"},
	} {
		w.fails(exitFailed, []string{"train", "own.toml", "--set", fmt.Sprintf("policy.main.args={ bug = %q }", bug)}, want...)
	}
	w.fails(exitConfig, []string{"train", "own.toml", "--set", "policy.main.plugin=owl"}, "error[E011]", `plugin "owl" is not declared`, `did you mean "own"`)
	w.fails(exitPlugin, []string{"train", "own.toml", "--set", "policy.main.args.scales=1"}, "unexpected keyword argument 'scales'", "the keys of args: scales")
	w.write("linear.py", strings.Replace(linear, "    network = Linear\n", "", 1))
	w.fails(exitPlugin, []string{"train", "own.toml"}, "Reinforce does not say what it learns: network = MyPolicy")
}

// The learner and what acts are swapped to another version of a policy's program while it trains, and killed: the run learns on, in whichever
// process acts, and its counts add up.
func TestPolicies_OfOnesOwnAreSwappedAndKilled(t *testing.T) {
	t.Parallel()
	for _, acts := range []string{"plugin", "host"} {
		t.Run(acts, func(t *testing.T) {
			t.Parallel()
			w := ownPolicy(t, "")
			w.write("told.py", told)
			text := strings.NewReplacer("20480", "500_000_000", "./linear.py", "./told.py", `"sync"`, `"async"`).Replace(w.read("own.toml"))
			w.write("own.toml", text+fmt.Sprintf("acts = %q\n[swap]\ntrial_envs = 0\nprobation = \"0s\"\n", acts))
			j := w.host("own.toml")
			w.write("next.py", strings.Replace(told, "import numpy\n", "import numpy  # of another version\n", 1))
			j.swap(control.SwapRequest{Component: "learner", File: w.path("next.py")})
			j.goesOn()
			j.addsUp()
			j.reload("own.toml", "plugin.own.path=./next.py")
			j.goesOn()
			j.addsUp()
			swapped := make(chan error, 1)
			go func() {
				swapped <- j.client.Do(t.Context(), control.VerbSwap, control.SwapRequest{Component: "learner", File: w.path("told.py")}, &control.SwapReply{}, nil)
			}()
			killed := 0
			for _, pid := range j.children() {
				if syscall.Kill(pid, syscall.SIGKILL) == nil {
					killed++
				}
			}
			if err := <-swapped; killed == 0 {
				t.Errorf("no process was there to kill; swap = %v", err)
			}
			j.goesOn()
			j.addsUp("component.learner", "component.inference", "fault")
			j.stop()
		})
	}
}

// children returns the processes that the job has started, whatever they run.
func (j *subject) children() (pids []int) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", j.cmd.Process.Pid))
	if err != nil {
		j.t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// A process that dies while it acts is replaced, and nothing is lost: what an answer depends on is the host's.
func TestPolicies_OfOnesOwnAreStartedAgain(t *testing.T) {
	t.Parallel()
	w := ownPolicy(t, "")
	if end := w.train("own.toml", "--set", "policy.main.args.bug=once"); end.EnvSteps != 20480 {
		t.Errorf("ended by %s after %d env steps", end.Reason, end.EnvSteps)
	}
}

// told is linear without a state, which the host computes by the description of it. Its argument bug names what is wrong with that.
const told = `import numpy
import rlhost
from linear import Linear, Reinforce


class Told(Linear):
    state_size = 0

    def describe(self, spec):
        return None if self.bug == "none" else Words(self)


class Words:
    def __init__(self, of):
        self.of = of

    def document(self):
        bug, of = self.of.bug, {"name": "logits", "in": ["obs"], "dense": {"out": 3 if self.of.bug == "wide" else 2, "gain": 1}}
        value = {"name": "zero", "in": ["obz" if bug == "unknown" else "obs"], "dense": {"out": 1, "gain": 1}}
        if bug == "external":
            value = {"name": "zero", "in": ["obs"], "external": {"program": "x", "out": 1}}
        inputs = [{"path": "obz" if bug == "path" else "obs", "shape": [5] if bug == "shape" else [4], "norm": "running" if bug == "running" else ""}]
        return {"format": 1, "inputs": inputs, "nodes": [of, value], "policy": [] if bug == "actions" else [{"action": "action", "from": "logits"}],
                "values": [{"name": "value", "from": "zero"}]}

    def check(self):
        if self.of.bug == "check":
            raise ValueError("act differs")

    def tensors(self):
        return {"logits.weight": self.of.weight * self.of.scale, "logits.bias": self.of.bias, "zero.weight": numpy.zeros((4, 1), "f4"), "zero.bias": numpy.zeros(1, "f4")}

    def load(self, values):
        self.of.weight[...], self.of.bias[...] = values["logits.weight"] / self.of.scale, values["logits.bias"]

    def missing(self):
        return {}


class Learner(Reinforce):
    network = Told


if __name__ == "__main__":
    rlhost.serve(Learner)
`

// sameActions compares the greedy actions of an exported policy with its class's, on 1,000 observations.
const sameActions = `import sys
import numpy
import rlhost
from rlhost.policy import PolicySpec
from rlhost.spec import ACTION, OBSERVATION, EnvSpec, Tensor
from told import Told
loaded = rlhost.load(sys.argv[1])
net = Told(PolicySpec(EnvSpec("cartpole@1", [Tensor(OBSERVATION, "f32", (4,)), Tensor(ACTION, "i32", n=2)])), scale=2.0)
net.describe(None).load(loaded._policy.arrays)
obs = numpy.random.default_rng(1).normal(size=(1000, 4)).astype("f4")
want, have = net.act(obs, numpy.zeros((1000, 0), "f4"), None, True)[0], loaded.predict(obs)[0]
assert (want == have).all() and {0, 1} == set(have.tolist()), (want, have)
`

// A policy in Python that says what it computes acts in the host, learns, is saved, resumed and evaluated, and its files need neither its class
// nor its program.
func TestPolicies_OfOnesOwnActInTheHost(t *testing.T) {
	t.Parallel()
	w := ownPolicy(t, "")
	w.write("told.py", told)
	w.write("own.toml", strings.Replace(w.read("own.toml"), "linear.py", "told.py", 1)+"acts = \"host\"\n")
	end := w.train("own.toml", "--set", "policy.main.args={ scale = 2.0 }")
	if end.EnvSteps != 20480 || !(end.EvalReturn > 50) {
		t.Fatalf("ended by %s after %d env steps: %+v", end.Reason, end.EnvSteps, end)
	}
	again := w.train("--resume", "latest", "--set", "run.stop.env_steps=40960")
	if again.EnvSteps != 40960 || !(again.EvalReturn > 50) {
		t.Errorf("resumed, ended after %d env steps: %+v", again.EnvSteps, again)
	}
	w.says([]string{"eval", "latest", "--episodes", "4", "--seed", "3", "--json"}, fmt.Sprintf("%q", "greedy_returns"))
	for _, format := range []string{"numpy", "safetensors", "onnx"} {
		w.says([]string{"export", "latest", "--format", format, "-o", "policy." + format}, "largest difference from rlhost on")
	}
	w.write("same.py", sameActions)
	w.says([]string{"export", "latest", "-o", "policy.npz"}, "largest difference from rlhost on")
	if out, err := exec.Command(w.python(), w.path("same.py"), w.path("policy.npz")).CombinedOutput(); err != nil {
		t.Errorf("load: %v\n%s", err, out)
	}
	w.fails(exitFailed, []string{"train", "--resume", "latest", "--set", "policy.main.acts=plugin", "--set", "run.stop.env_steps=61440"}, "the saved policy has")
}

// A key for the host's network that the user has written beside plugin is told with its line; what a preset sets is not.
func TestPolicies_OfOnesOwnReadNoKeysOfTheHostsNetwork(t *testing.T) {
	t.Parallel()
	w := ownPolicy(t, "")
	w.write("preset.toml", strings.Replace(w.read("own.toml"), `"fast"`, `"general"`, 1))
	validate := func(file string) string {
		out, _ := w.command("validate", file).CombinedOutput() // what it says is looked at
		return string(out)
	}
	if out := validate("preset.toml"); !strings.Contains(out, "ok (") || strings.Contains(out, "W115") {
		t.Errorf("keys of a preset are told:\n%s", out)
	}
	w.write("keys.toml", w.read("own.toml")+"normalize_obs = true\nnet = { hidden = [32], chunk = 8 }\naction = { log_std_init = -1.0 }\n")
	out := validate("keys.toml")
	for _, want := range []string{"keys.toml:16:1: warning[W115]: `normalize_obs` has no effect: plugin \"own\" has a network of its own for policy \"main\"",
		"keys.toml:17:9: warning[W115]: `net.hidden` has no effect"} {
		if !strings.Contains(out, want) {
			t.Errorf("validate does not say %q:\n%s", want, out)
		}
	}
	if n := strings.Count(out, "W115"); n != 2 {
		t.Errorf("%d keys are told, want 2:\n%s", n, out)
	}
}

// A description that the host cannot act by is an error that names the key, the plugin and the reason.
func TestPolicies_OfOnesOwnThatTheHostCannotCompute(t *testing.T) {
	t.Parallel()
	w := ownPolicy(t, "")
	w.write("told.py", told)
	w.write("own.toml", strings.Replace(w.read("own.toml"), "linear.py", "told.py", 1)+"acts = \"host\"\n")
	for bug, want := range map[string]string{
		"none":     `plugin "own" does not say what its policy computes`,
		"wide":     `whose shape is [3]`,
		"unknown":  `node "zero" reads "obz", which is none before it`,
		"external": `node "zero" is computed by a program`,
		"path":     `the environment has no observation "obz"`,
		"shape":    `input "obs" has the shape [5], and the environment's is [4]`,
		"running":  "no statistics",
		"actions":  "it has 0 actions, and the environment has 1",
	} {
		w.fails(exitConfig, []string{"train", "own.toml", "--set", fmt.Sprintf("policy.main.args={ bug = %q }", bug)}, "error[E0", `policy "main"`, want)
	}
	w.fails(exitPlugin, []string{"train", "own.toml", "--set", "policy.main.args.bug=check"}, "error[E067]", "act differs (told.py:")
	w.fails(exitConfig, []string{"train", "own.toml", "--set", "policy.main.acts=hots"}, "`acts` is \"hots\"", "use plugin or host")
	w.write("own.toml", plain+"[policy.main]\nacts = \"host\"\n")
	w.fails(exitConfig, []string{"train", "own.toml"}, "`acts` has no effect without plugin")
}

// columnsProbe is a learner that notes the columns of its datasets.
const columnsProbe = `import json
import numpy
import rlhost


class Probe(rlhost.Learner):
    inputs = joint = boxes = agents = cores = networks = True

    def begin_learning(self, policy):
        self.net = {name: numpy.zeros(shape, "f4") for name, shape in policy.tensors().items()}

    def parameters(self):
        return self.net

    def learn(self, dataset):
        sizes = {"T": dataset.blocks[0].steps, "B": len(dataset), "E": dataset["reward"].shape[1]}
        columns = {name: (str(dataset[name].dtype), dataset[name].shape) for name in dataset.blocks[0].arrays}
        with open("columns.json", "w") as f:
            json.dump({"sizes": sizes, "columns": columns}, f)
        return {}


rlhost.serve(Probe)
`

// The columns of a dataset in Python have the types and shapes of docs/reference/dataset.md.
func TestPolicies_DatasetsAreAsThePageSays(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/dataset.md")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string][]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) == 7 {
			said[strings.Trim(cells[1], " `")] = []string{strings.TrimSpace(cells[2]), strings.Trim(cells[3], " []")}
		}
	}
	w := newWorkshop(t)
	w.write("probe.py", columnsProbe)
	w.write("probe.toml", fmt.Sprintf("%s[plugin.probe]\npath = \"./probe.py\"\ninterpreter = [%q]\n[component.learner]\nplugin = \"probe\"\n", plain, w.python()))
	seen := map[string]bool{}
	for _, env := range []string{"snake@1", "tuple@1"} {
		w.train("probe.toml", "--set", "run.stop.env_steps=1", "--set", "run.evaluation.episodes=1", "--set", "env.cartpole.use="+env,
			"--set", `policy.main.net.core={ kind = "gru", size = 8 }`, "--set", "component.rollout.horizon=32")
		var got struct {
			Sizes   map[string]int
			Columns map[string][2]any
		}
		if err := json.Unmarshal([]byte(w.read("columns.json")), &got); err != nil {
			t.Fatal(err)
		}
		for name, column := range got.Columns {
			kind, _, _ := strings.Cut(name, "/")
			if seen[kind] = true; said[kind] == nil {
				t.Errorf("%s: the page has no column %s", env, name)
				continue
			}
			dtype, shape := column[0].(string), column[1].([]any)
			if want := said[kind][0]; want != "the environment's" && !strings.Contains(want, dtype) {
				t.Errorf("%s: %s is of %s, the page has %s", env, name, dtype, want)
			}
			axes := strings.Split(said[kind][1], ", ")
			if axes[len(axes)-1] == "…" {
				axes = axes[:len(axes)-1]
			} else if len(shape) != len(axes) {
				t.Errorf("%s: %s has the shape %v, the page %s", env, name, shape, said[kind][1])
			}
			for i, axis := range axes {
				size := map[string]int{"T+1": got.Sizes["T"] + 1, "1": 1, "T": got.Sizes["T"], "E": got.Sizes["E"], "B": got.Sizes["B"]}[axis]
				if axis != "P" && int(shape[i].(float64)) != size {
					t.Errorf("%s: %s has the shape %v, the page %s with %v", env, name, shape, said[kind][1], got.Sizes)
				}
			}
		}
	}
	for _, kind := range []string{"obs", "action", "raw_action", "action_mask", "active", "core_state", "policy_version", "meta", "age", "final_obs"} {
		if !seen[kind] {
			t.Errorf("no dataset had the column %s", kind)
		}
	}
}
