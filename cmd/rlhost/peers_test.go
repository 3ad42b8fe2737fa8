package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// torch is a workshop with a pipeline whose learner is one of the examples in PyTorch, by the Python that RLHOST_TORCH names.
func torch(t *testing.T, script, keys string) *workshop {
	t.Helper()
	python := os.Getenv("RLHOST_TORCH")
	if python == "" {
		t.Skip("make test-peers runs it, with PyTorch")
	}
	path, err := filepath.Abs("../../examples/plugins/pytorch-learner/" + script)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorkshop(t)
	w.write("torch.toml", fmt.Sprintf("%s[plugin.torch]\npath = %q\ninterpreter = [%q]\nstart = \"2m\"\n[component.learner]\nplugin = \"torch\"\n%s",
		plain, path, python, keys))
	return w
}

// PPO in sixty lines learns, on the device that its table names.
func TestPeers_ShortPPOLearns(t *testing.T) {
	t.Parallel()
	w := torch(t, "short_ppo.py", "device = \"cpu\"\n")
	text, err := os.ReadFile("../../examples/plugins/pytorch-learner/short_ppo.py")
	if n := bytes.Count(text, []byte("\n")); err != nil || n > 60 {
		t.Errorf("%d lines, want 60 at most: %v", n, err)
	}
	w.reaches(300, 300_000, "torch.toml")
}

// It draws no action that a mask forbids: its datasets have the entropy of the legal ones alone, in either learner's report.
func TestPeers_ShortPPOLearnsUnderMasks(t *testing.T) {
	t.Parallel()
	w := torch(t, "short_ppo.py", "learning_rate = 1e-6\n")
	train := func(name string) {
		w.train("torch.toml", "--set", "env.cartpole.use=taxi@1", "--set", "run.stop.env_steps=2048", "--set", "run.name="+name)
	}
	train("short")
	w.write("torch.toml", strings.Replace(w.read("torch.toml"), "plugin = \"torch\"\n", "", 1))
	train("own")
	short, own := w.entropy("short"), w.entropy("own")
	if most := math.Log(6); !(math.Abs(short-own) < 0.05) || own > most-0.2 {
		t.Errorf("an entropy of %g, the host's learner has %g; %g without masks", short, own, most)
	}
}

// entropy returns the entropy of a run's last update.
func (w *workshop) entropy(run string) float64 {
	w.t.Helper()
	lines := strings.Split(strings.TrimSpace(w.read("runs/"+run+"/0001/metrics.jsonl")), "\n")
	var last map[string]float64
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		w.t.Fatal(err)
	}
	return last["losses/entropy"]
}

// The learner in PyTorch reaches 475 in both modes.
func TestPeers_PyTorchLearnerReaches475(t *testing.T) {
	t.Parallel()
	w := torch(t, "learner.py", "")
	for _, mode := range []string{"sync", "async"} {
		w.reaches(475, 500_000, "torch.toml", "--set", "train.mode="+mode)
	}
}

// The learner in PyTorch draws a Box as the policy's table says: actors take its parameters, and the run is
// evaluated. A learner that does not declare Boxes gets none.
func TestPeers_PyTorchLearnsABox(t *testing.T) {
	t.Parallel()
	w := torch(t, "learner.py", "")
	box := []string{"torch.toml", "--set", "env.cartpole.use=pendulum@1", "--set", "train.preset=continuous"}
	if end := w.train(append(box, "--set", "run.stop.env_steps=4096")...); end.Reason != "env_steps" {
		t.Errorf("ended by %s", end.Reason)
	}
	short := torch(t, "short_ppo.py", "")
	short.fails(exitFailed, append([]string{"train"}, box...), "the action is a Box, which this learner does not learn")
}

// The learner in PyTorch learns a core: actors take its parameters, and the run is evaluated. A learner that does not declare cores gets none.
func TestPeers_PyTorchLearnsACore(t *testing.T) {
	t.Parallel()
	for _, core := range []string{"gru", "lstm"} {
		w := torch(t, "learner.py", "")
		args := []string{"torch.toml", "--set", "policy.main.net.core.kind=" + core}
		if end := w.train(append(args, "--set", "run.stop.env_steps=4096")...); end.Reason != "env_steps" {
			t.Errorf("%s: ended by %s", core, end.Reason)
		}
		short := torch(t, "short_ppo.py", "")
		short.fails(exitFailed, append([]string{"train"}, args...), "it has a core '"+core+"', which this learner does not learn")
	}
}

// spacesEnv has actions of every kind, with masks where it is asked for them, and fails where an action is not in its space or is not
// legal.
const spacesEnv = `import gymnasium, numpy
from gymnasium import spaces
BOX = spaces.Box(-2, 0.5, (2,))
KINDS = {"box": (BOX,), "start": (spaces.Discrete(4, start=-1),), "multidiscrete": (spaces.MultiDiscrete([3, 2, 5], start=[2, 2, 2]),),
         "multibinary": (spaces.MultiBinary(4),),
         "tuple": (BOX, spaces.Discrete(3, start=1), spaces.MultiBinary(2), spaces.MultiDiscrete([2, 3]))}
def counts(part):
    if isinstance(part, spaces.MultiDiscrete):
        return part.nvec
    return [part.n] if isinstance(part, spaces.Discrete) else [2] * part.n if isinstance(part, spaces.MultiBinary) else []
class Spaces(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (3,), numpy.float32)
    def __init__(self, kind="tuple", masked=False):
        self.parts, self.masked = KINDS[kind], masked
        self.action_space = spaces.Tuple(self.parts) if len(self.parts) > 1 else self.parts[0]
    def shown(self):
        self.legal = [[self.np_random.integers(0, 2, n) for n in counts(part)] for part in self.parts]
        for element in sum(self.legal, []):
            element[self.np_random.integers(len(element))] = 1
        masks = tuple(numpy.concatenate(part) for part in self.legal if part)
        return self.np_random.uniform(-1, 1, 3).astype(numpy.float32), {"action_mask": masks} if self.masked else {}
    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.age = 0
        return self.shown()
    def step(self, action):
        assert self.action_space.contains(action), action
        taken = action if len(self.parts) > 1 else [action]
        for part, legal, chosen in zip(self.parts, self.legal, taken):
            for element, value, start in zip(legal, numpy.ravel(chosen), numpy.broadcast_to(getattr(part, "start", 0), len(legal))):
                assert not self.masked or element[value - start], (legal, chosen)
        self.age += 1
        obs, info = self.shown()
        return obs, -float(sum(numpy.square(numpy.ravel(x) - 0.5).sum() for x in taken)), False, self.age == 20, info
gymnasium.register("Spaces-v0", Spaces, disable_env_checker=True)
`

// spaced is the key of an environment with spaces of a kind.
func spaced(args string) string {
	return `env.cartpole={ use = "gymnasium:spaces:Spaces-v0", args = { ` + args + ` } }`
}

// other declares a second policy, with a learner that continues at the same rate.
const other = "[component.learner_other]\nlr_anneal_env_steps = 0\n[policy.other]\n"

// For all observations, actions, agents and masks, the learner in PyTorch makes the same parameters of a state and a dataset as the
// host's own, and the run that it continues is evaluated.
func TestPeers_PyTorchLearnsAsTheHostDoes(t *testing.T) {
	t.Parallel()
	w := torch(t, "learner.py", "lr_anneal_env_steps = 0\n")
	w.env = []string{"RLHOST_PYTHON=" + os.Getenv("RLHOST_TORCH"), "PYTHONPATH=" + w.dir}
	w.write("spaces.py", spacesEnv)
	for name, c := range map[string]struct {
		sets []string
		more string // of the file
	}{
		"box":           {sets: []string{spaced(`kind = "box"`)}},
		"start":         {sets: []string{spaced(`kind = "start", masked = true`)}},
		"multidiscrete": {sets: []string{spaced(`kind = "multidiscrete", masked = true`), "component.learner.vtrace=true", "policy.main.share_trunk=true"}},
		"multibinary":   {sets: []string{spaced(`kind = "multibinary"`), "policy.main.normalize_obs=true"}},
		"tuple":         {sets: []string{spaced(`kind = "tuple", masked = true`), "policy.main.action.squash=tanh"}},
		"lstm":          {sets: []string{spaced(`kind = "tuple"`), "policy.main.net.core.kind=lstm", "policy.main.action.log_std=network"}},
		"inputs":        {sets: []string{"env.cartpole.use=spaces@1", "policy.main.normalize_obs=true"}},
		"agents":        {sets: []string{"env.cartpole.use=chase@1"}},
		"turns":         {sets: []string{"env.cartpole.use=connectfour@1", "component.learner.vtrace=true"}},
		"gru":           {sets: []string{"env.cartpole.use=snake@1", "policy.main.net.core.kind=gru"}},
		"policies": {sets: []string{"env.cartpole.use=connectfour@1", "policy.main.net.core={ kind = \"gru\", size = 8 }"},
			more: other + "net = { core = { kind = \"gru\", size = 12 } }\n[component.rollout]\npolicies = { \"*/0\" = \"main\", \"*/1\" = \"other\" }\n"},
		"groups": {sets: []string{"env.cartpole.use=tag@1"},
			more: other + "net = { hidden = [24] }\n[component.rollout]\npolicies = { hunters = \"main\", prey = \"other\" }\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.of(t)
			w.write(name+".toml", strings.Replace(w.read("torch.toml"), "plugin = \"torch\"\n", "", 1)+c.more)
			args := []string{name + ".toml", "--set", "run.name=" + name, "--set", "run.stop.env_steps=2048"}
			for _, set := range c.sets {
				args = append(args, "--set", set)
			}
			learners := []string{"learner"}
			if c.more != "" {
				learners = append(learners, "learner_other")
			}
			w.goesOnAlike(name, w.train(args...).EnvSteps+1, learners)
		})
	}
}

// goesOnAlike fails unless a run that continues for a dataset ends with the same learners in PyTorch.
func (w *workshop) goesOnAlike(name string, envSteps uint64, learners []string) {
	w.t.Helper()
	own, inTorch := "runs/"+name+"/0001", "runs/"+name+"/0002"
	if err := os.CopyFS(w.path(inTorch), os.DirFS(w.path(own))); err != nil {
		w.t.Fatal(err)
	}
	stop := fmt.Sprintf("run.stop.env_steps=%d", envSteps)
	args := []string{"--resume", inTorch, "--set", stop}
	for _, learner := range learners {
		args = append(args, "--set", "component."+learner+".plugin=torch")
	}
	got := w.train(args...)
	for _, learner := range learners {
		if d := distance(weights(w.state(own, learner)), weights(w.state(inTorch, learner))); !(d > 1e-3) {
			w.t.Errorf("%s has learned nothing", learner)
		}
	}
	if want := w.train("--resume", own, "--set", stop); got.EnvSteps != want.EnvSteps {
		w.t.Errorf("%d env steps, with the host's learner %d", got.EnvSteps, want.EnvSteps)
	}
	for _, learner := range learners {
		if d := distance(w.state(inTorch, learner), w.state(own, learner)); !(d <= 2e-5) {
			w.t.Errorf("%s: parameters or moments differ by %g", learner, d)
		}
	}
}

// A learner that does not say that it learns something is not given it.
func TestPeers_ShortPPOGetsItsRewards(t *testing.T) {
	t.Parallel()
	w := torch(t, "short_ppo.py", "")
	w.env = []string{"RLHOST_PYTHON=" + os.Getenv("RLHOST_TORCH"), "PYTHONPATH=" + w.dir}
	w.write("spaces.py", spacesEnv)
	for set, says := range map[string]string{
		spaced(`kind = "start"`):         "the action has 1 elements with values from -1 on",
		spaced(`kind = "multibinary"`):   "the action has 4 elements",
		spaced(`kind = "tuple"`):         "the action is a Box",
		"env.cartpole.use=spaces@1":      "the environment has 3 observations",
		"env.cartpole.use=connectfour@1": "its agents do not always act",
	} {
		w.fails(exitFailed, []string{"train", "torch.toml", "--set", set}, says, "which this learner does not learn")
	}
}

// state returns the newest state of a component of a run.
func (w *workshop) state(run, of string) component.State {
	w.t.Helper()
	return w.saved(w.path(run)).Components[of]
}

// saved returns the newest checkpoint of a run, by its name or folder.
func (w *workshop) saved(run string) runs.Checkpoint {
	w.t.Helper()
	r, err := runs.Open(w.path("runs"), run)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	c, err := r.Load(runs.Latest)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// weights is a learner's state without the optimiser's moments, which change at any rate.
func weights(s component.State) component.State {
	s.Tensors = maps.Clone(s.Tensors)
	maps.DeleteFunc(s.Tensors, func(name string, _ component.Tensor) bool { return strings.HasPrefix(name, "adam_") })
	return s
}

// distance is the largest difference of an element of two states' tensors, infinite where their names or shapes differ.
func distance(a, b component.State) (d float64) {
	if len(a.Tensors) != len(b.Tensors) {
		return math.Inf(1)
	}
	for name, tensor := range a.Tensors {
		of := b.Tensors[name]
		if !slices.Equal(of.Shape, tensor.Shape) {
			return math.Inf(1)
		}
		for i, x := range tensor.Data {
			d = max(d, math.Abs(float64(of.Data[i]-x)))
		}
	}
	return d
}

// ownTorch is a workshop with a pipeline of the networks and losses of examples/plugins/pytorch-policy.
func ownTorch(t *testing.T, script, env, keys string) *workshop {
	t.Helper()
	w := torch(t, "short_ppo.py", "")
	path, err := filepath.Abs("../../examples/plugins/pytorch-policy/" + script)
	if err != nil {
		t.Fatal(err)
	}
	w.env = []string{"PYTHONPATH=" + filepath.Dir(path)}
	text := strings.NewReplacer("cartpole@1", env, `"fast"`, `"general"`).Replace(plain)
	w.write("own.toml", fmt.Sprintf("%s[plugin.own]\npath = %q\ninterpreter = [%q]\nstart = \"2m\"\n[policy.main]\nplugin = \"own\"\n%s",
		text, path, os.Getenv("RLHOST_TORCH"), keys))
	return w
}

// A network and a loss of one's own in PyTorch learn, in the file of the example.
func TestPeers_APolicyOfOnesOwnLearns(t *testing.T) {
	t.Parallel()
	w := ownTorch(t, "ppo.py", "cartpole@1", "")
	w.reaches(300, 200_000, "own.toml", "--set", "train.preset=fast", "--set", "train.mode=async")
}

// A GRU of one's own remembers.
func TestPeers_APolicyOfOnesOwnRemembers(t *testing.T) {
	t.Parallel()
	w := ownTorch(t, "recurrent.py", "memory@1", "")
	if end := w.train("own.toml", "--set", "run.stop.env_steps=51200"); !(end.EvalReturn > 0.9) {
		t.Errorf("a GRU of one's own remembers %v of 1", end.EvalReturn)
	}
}

// Two convolutions, a GRU and a head for each of an environment's answers understand pictures, by the host's hands: its greedy actions are the
// module's, in files of every format.
func TestPeers_APolicyOfOnesOwnSeesAndActsInTheHost(t *testing.T) {
	t.Parallel()
	w := ownTorch(t, "recurrent.py", "spaces@1", "acts = \"host\"\n")
	if end := w.train("own.toml", "--set", "run.stop.env_steps=60000", "--set", "run.evaluation.episodes=100"); !(end.EvalReturn > 0.95) {
		t.Errorf("convolutions of one's own understand %v of 1", end.EvalReturn)
	}
	for _, format := range []string{"numpy", "safetensors", "onnx"} {
		w.says([]string{"export", "latest", "--format", format, "-o", "policy." + format}, "largest difference from rlhost on")
	}
	w.says([]string{"export", "latest", "-o", "policy.npz"}, "largest difference from rlhost on")
	w.write("same.py", sameSeen)
	command := exec.Command(os.Getenv("RLHOST_TORCH"), w.path("same.py"), w.path("policy.npz"))
	command.Env = append(os.Environ(), w.env...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("load: %v\n%s", err, out)
	}
}

// A bonus for what is new opens a lock that PPO alone does not, whose bar is that it gets no reward in as many env steps.
func TestPeers_ABonusOfOnesOwnFindsWhatChanceDoesNot(t *testing.T) {
	t.Parallel()
	w := ownTorch(t, "rnd.py", "gymnasium:lock:Lock-v0", "acts = \"host\"\n[component.learner]\nentropy_coef = 0.01\nlr_anneal_env_steps = 0\n")
	w.env = append(w.env, "RLHOST_PYTHON="+os.Getenv("RLHOST_TORCH"))
	preset := []string{"--set", "train.preset=fast", "--set", "env.cartpole.wrap=[{ time_limit = 60 }]"}
	w.reaches(0.9, 200_000, "own.toml", preset...)
	w.write("own.toml", strings.Replace(w.read("own.toml"), "rnd.py", "ppo.py", 1))
	if end := w.train(append([]string{"own.toml", "--set", "run.stop.env_steps=100000"}, preset...)...); end.MeanReturn > 0.05 {
		t.Errorf("PPO alone gets %v: the lock does not tell them apart", end.MeanReturn)
	}
}

// sameSeen compares the greedy actions of an exported policy for spaces@1 with the module's, on 1,000 observations.
const sameSeen = `import sys
import numpy
import rlhost
import torch
from recurrent import Net
from rlhost.answers import ask
from rlhost.policy import PolicySpec, described
from rlhost.spec import ACTION, OBSERVATION, EnvSpec, Tensor
of = PolicySpec(EnvSpec("spaces@1", [Tensor(OBSERVATION, "u8", (5, 5, 1), high=255, path="picture"), Tensor(OBSERVATION, "i8", (5,), path="notes/numbers", index=1),
                                     Tensor(OBSERVATION, "i32", n=3, path="notes/clue", index=2), Tensor(ACTION, "i32", (3,), counts=(2, 2, 3))]))
loaded, net, random = rlhost.load(sys.argv[1]), Net(of), numpy.random.default_rng(1)
described(net, of).load({name: array for name, array in loaded._policy.arrays.items()})
obs = {"picture": (255 * random.integers(0, 2, (1000, 5, 5, 1))).astype("u1"), "notes/numbers": random.integers(-10, 11, (1000, 5)).astype("i1"),
       "notes/clue": random.integers(0, 3, 1000).astype("i4")}
state = random.normal(size=(1000, net.state_size)).astype("f4")
own = ask(net, of, obs, state, [None], True).actions[0]
theirs, _ = loaded.predict({"picture": obs["picture"], "notes": {"numbers": obs["notes/numbers"], "clue": obs["notes/clue"]}}, state)
assert (own == theirs).all() and len(numpy.unique(own, axis=0)) > 6, (own != theirs).sum()
`
