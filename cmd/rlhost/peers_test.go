package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
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

// The learner in PyTorch reaches 475 in both modes.
func TestPeers_PyTorchLearnerReaches475(t *testing.T) {
	t.Parallel()
	w := torch(t, "learner.py", "")
	for _, mode := range []string{"sync", "async"} {
		w.reaches(475, 500_000, "torch.toml", "--set", "train.mode="+mode)
	}
}

// The learner in PyTorch draws a Box as the policy's table says: actors take its parameters, and the run is
// evaluated. One that says nothing of Boxes is given none.
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

// The learner in PyTorch learns a core: actors take its parameters, and the run is evaluated. One that says nothing of
// cores is given none.
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

// Whatever is observed and acted, and however it is masked, the learner in PyTorch makes the same parameters of a state and a dataset as
// the host's own, and the run that it goes on with is evaluated. One that says nothing of such actions is given none.
func TestPeers_PyTorchLearnsAsTheHostDoes(t *testing.T) {
	t.Parallel()
	w := torch(t, "learner.py", "")
	w.env = []string{"RLHOST_PYTHON=" + os.Getenv("RLHOST_TORCH"), "PYTHONPATH=" + w.dir}
	w.write("spaces.py", spacesEnv)
	w.write("own.toml", strings.Replace(w.read("torch.toml"), "plugin = \"torch\"\n", "", 1))
	acts := func(args string) string {
		return `env.cartpole={ use = "gymnasium:spaces:Spaces-v0", args = { ` + args + ` } }`
	}
	for i, sets := range [][]string{
		{acts(`kind = "box"`)},
		{acts(`kind = "start", masked = true`)},
		{acts(`kind = "multidiscrete", masked = true`), "component.learner.vtrace=true", "policy.main.share_trunk=true"},
		{acts(`kind = "multibinary"`), "policy.main.normalize_obs=true"},
		{acts(`kind = "tuple", masked = true`), "policy.main.action.squash=tanh"},
		{acts(`kind = "tuple"`), "policy.main.net.core.kind=lstm", "policy.main.action.log_std=state"},
		{"env.cartpole.use=spaces@1", "policy.main.normalize_obs=true"},
	} {
		name := fmt.Sprintf("case%d", i)
		t.Run(name, func(t *testing.T) {
			w := w.of(t)
			args := []string{"own.toml", "--set", "run.name=" + name, "--set", "run.stop.env_steps=2048"}
			for _, set := range sets {
				args = append(args, "--set", set)
			}
			w.train(args...)
			other := "runs/" + name + "/0002"
			if err := os.CopyFS(w.path(other), os.DirFS(w.path("runs/"+name+"/0001"))); err != nil {
				t.Fatal(err)
			}
			goOn := func(args ...string) component.State {
				if end := w.train(append(args, "--set", "run.stop.env_steps=4096")...); end.EnvSteps != 4096 {
					t.Errorf("%v: ended after %d env steps", args, end.EnvSteps)
				}
				return w.learner(args[1])
			}
			same(t, goOn("--resume", other, "--set", "component.learner.plugin=torch"), goOn("--resume", "runs/"+name+"/0001"))
		})
	}
	short := torch(t, "short_ppo.py", "")
	short.env = w.env
	short.write("spaces.py", spacesEnv)
	for set, says := range map[string]string{acts(`kind = "start"`): "the action has 1 elements with values from -1 on",
		acts(`kind = "multibinary"`): "the action has 4 elements", acts(`kind = "tuple"`): "the action is a Box",
		"env.cartpole.use=spaces@1": "the environment has 3 observations"} {
		short.fails(exitFailed, []string{"train", "torch.toml", "--set", set}, says, "which this learner does not learn")
	}
}

// learner returns the newest state of the learner of a run.
func (w *workshop) learner(run string) component.State {
	w.t.Helper()
	r, err := runs.Open(w.path("runs"), w.path(run))
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	c, err := r.Load(runs.Latest)
	if err != nil {
		w.t.Fatal(err)
	}
	return c.Components["learner"]
}

// same fails where two learners' parameters, or the optimisers' moments, differ by more than rounding.
func same(t *testing.T, got, want component.State) {
	t.Helper()
	if len(got.Tensors) != len(want.Tensors) || len(want.Tensors) == 0 {
		t.Errorf("%d tensors, want %d", len(got.Tensors), len(want.Tensors))
	}
	for name, tensor := range want.Tensors {
		if !slices.Equal(got.Tensors[name].Shape, tensor.Shape) {
			t.Fatalf("%s has shape %v, want %v", name, got.Tensors[name].Shape, tensor.Shape)
		}
		for i, x := range tensor.Data {
			if got := got.Tensors[name].Data[i]; !(math.Abs(float64(got-x)) <= 2e-5) {
				t.Fatalf("%s[%d] = %v, want %v", name, i, got, x)
			}
		}
	}
}
