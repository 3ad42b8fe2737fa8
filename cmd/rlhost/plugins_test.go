package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/internal/testkit"
)

// build runs a compiler at the module's root; its output goes to name in the folder, given last.
func (w *workshop) build(name string, command ...string) {
	w.t.Helper()
	c := exec.Command(command[0], append(command[1:], "-o", filepath.Join(w.dir, name))...)
	if command[0] == "go" {
		c.Args = append([]string{"go", "build", "-o", filepath.Join(w.dir, name)}, command[1:]...)
	}
	c.Dir = "../.."
	if out, err := c.CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %v\n%s", c.Args, err, out)
	}
}

// between is a component of a plugin that trajectories pass through.
const between = plain + `
[plugin.between]
path = "./between"
[component.between]
plugin = "between"
[[wire]]
signal = "rollout.trajectories"
slot = "between.on_trajectories"
mode = "queue"
depth = 64
on_full = "block"
replace = true
write = ["reward"]
[[wire]]
signal = "between.trajectories"
slot = "batcher.on_trajectories"
mode = "queue"
depth = 64
on_full = "block"
`

// A component that passes blocks on unchanged does not change the learning by a bit, whatever language it is
// written in; a component that rewrites rewards does.
func TestPlugins_BlocksPassThroughOtherPrograms(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("plain.toml", plain)
	w.write("between.toml", between)
	want := w.train("plain.toml").ParamsHash
	w.example("Go", "between")
	if got := w.train("between.toml").ParamsHash; got != want {
		t.Errorf("with a shaper that shapes nothing: parameters %.12s, want %.12s", got, want)
	}
	if got := w.train("between.toml", "--set", "component.between.scale=0.5").ParamsHash; got == want {
		t.Error("half the reward, same parameters")
	}
	w.example("C", "between")
	if got := w.train("between.toml").ParamsHash; got != want {
		t.Errorf("with a tap in C: parameters %.12s, want %.12s", got, want)
	}
}

// The example learner with its own loss learns, as a plugin that was built apart from the host.
func TestPlugins_LearnerOfAGraphReaches475(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("8 seconds on a quiet machine")
	}
	w := newWorkshop(t)
	w.write("own.toml", plain+"[plugin.own]\npath = \"./own\"\n[component.learner]\nplugin = \"own\"\n")
	w.build("own", "go", "./examples/plugins/gorgonia-learner")
	w.reaches(475, 500_000, "own.toml")
}

// Gymnasium's own environments train through the Python plugin, and how many processes and threads share them changes nothing.
func TestPlugins_GymnasiumTrains(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.python()
	w.write("gym.toml", strings.Replace(plain, "cartpole@1", "gymnasium:CartPole-v1", 1))
	one := w.train("gym.toml", "--set", "run.stop.env_steps=4096")
	if one.EnvSteps != 4096 {
		t.Errorf("one process %+v", one)
	}
	for _, shared := range [][]string{{"workers=4"}, {"workers=2", "threads=3"}} {
		args := []string{"gym.toml", "--set", "run.stop.env_steps=4096"}
		for _, key := range shared {
			args = append(args, "--set", "env.cartpole."+key)
		}
		if end := w.train(args...); end.EnvSteps != 4096 || end.ParamsHash != one.ParamsHash {
			t.Errorf("%v: %+v, want the parameters of one process, %s", shared, end, one.ParamsHash)
		}
	}
	w.env = nil
	if out, err := w.command("eval", "--episodes", "2").CombinedOutput(); err != nil { // with the training's Python, though it is not named
		t.Errorf("eval: %v\n%s", err, out)
	}
	w.python()
	acrobot := w.train("gym.toml", "--set", "env.cartpole.use=gymnasium:Acrobot-v1", "--set", "run.stop.env_steps=2048")
	if acrobot.EnvSteps != 2048 || acrobot.Reason != "env_steps" {
		t.Errorf("Acrobot: %+v", acrobot)
	}
	lake := w.train("gym.toml", "--set", "env.cartpole.use=gymnasium:FrozenLake-v1", "--set", "run.stop.env_steps=2048") // a Discrete observation, one-hot
	if lake.EnvSteps != 2048 || lake.EvalReturn < 0 || lake.EvalReturn > 1 || !strings.Contains(w.read("runs/cartpole/0005/run.json"), "onehot") {
		t.Errorf("FrozenLake: %+v", lake)
	}
}

// jointEnv is an environment with three actions. It fails where one is not in its space.
const jointEnv = `import gymnasium, numpy
from gymnasium import spaces
class Joint(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (2,), numpy.float32)
    action_space = spaces.Dict({"gear": spaces.Discrete(3, start=-1), "arm": spaces.Box(-2, 0.5, (2,)), "lights": spaces.MultiBinary(2)})
    def observe(self):
        return self.np_random.uniform(-1, 1, 2).astype(numpy.float32)
    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.age = 0
        return self.observe(), {}
    def step(self, action):
        assert self.action_space.contains(action), action
        self.age += 1
        return self.observe(), float(action["gear"] - numpy.square(action["arm"]).sum() + action["lights"].sum()), False, self.age == 20, {}
gymnasium.register("Joint-v0", Joint, disable_env_checker=True)
`

// Box actions, and several actions of every kind, reach environments in Python; how many processes share these changes nothing.
// The policy is evaluated and exported.
func TestPlugins_GymnasiumTrainsWithEveryAction(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.python()
	w.write("joint.py", jointEnv)
	text := strings.Replace(plain, "20480", "2048", 1) + "[component.learner]\nadaptive_kl = 0.01\nlr_anneal_env_steps = 0\n"
	for name, use := range map[string]string{"box": "gymnasium:Pendulum-v1", "joint": "gymnasium:joint:Joint-v0"} {
		w.write(name+".toml", strings.Replace(text, "\"cartpole@1\"", fmt.Sprintf("%q\nwrap = [{ reward_scale = 0.1 }]", use), 1))
		one := w.train(name+".toml", "--set", "run.name="+name)
		two := w.train(name+".toml", "--set", "run.name="+name, "--set", "env.cartpole.workers=2", "--set", "component.inference.runtime=process",
			"--set", "component.learner.runtime=process")
		if one.EnvSteps != 2048 || one.ParamsHash != two.ParamsHash {
			t.Errorf("%s: in one process %+v, in several %+v", name, one, two)
		}
	}
	for _, args := range [][]string{{"eval", "joint", "--episodes", "2"}, {"export", "joint", "--format", "onnx"}} {
		if out, err := w.command(args...).CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

// A stack of frames, the last action and a core's state, with agents in turns too, have the same bits whichever components are processes.
func TestS19WhatPoliciesRememberIsTheSameInProcesses(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	for name, c := range map[string]struct{ use, policy string }{
		"stack": {"cartpole@1", "inputs = [\"last_action\"]\n[policy.main.encoder.obs]\nstack = 4\n"},
		"gru":   {"cartpole@1", "normalize_obs = true\nnet = { nodes = [{ name = \"core\", in = [\"obs\"], gru = { size = 16 } }], chunk = 32 }\n"},
		"lstm":  {"cartpole@1", "net = { hidden = [16], core = { kind = \"lstm\", size = 16 }, chunk = 32 }\n"},
		"turns": {"connectfour@1", "net = { hidden = [16], core = { kind = \"gru\", size = 16 }, chunk = 32 }\n"}, // agents that do not always act
	} {
		w.write(name+".toml", strings.NewReplacer("20480", "4096", "cartpole@1", c.use).Replace(plain)+"[policy.main]\n"+c.policy)
		one := w.train(name + ".toml")
		for _, component := range []string{"rollout", "inference", "learner"} {
			other := w.train(name+".toml", "--set", "component."+component+".runtime=process")
			if one.EnvSteps < 4096 || other.ParamsHash != one.ParamsHash || other.EvalReturn != one.EvalReturn {
				t.Errorf("%s: with the %s in a process %+v, in none %+v", name, component, other, one)
			}
		}
	}
}

// Policies that act side by side, one of them drawn from another's past versions, learn the same bits whichever components are processes.
func TestS21PoliciesLearnTheSameInProcesses(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("duel.toml", strings.NewReplacer("20480", "4096", "cartpole@1", "connectfour@1").Replace(plain)+`
[policy.rival]
net = { hidden = [24, 8], activation = "relu" }
[policy.past]
of = "main"
[component.rollout]
policies = { "*/0" = "main", "*/1" = "rival" }
opponents = { past = 0.3 }
[component.opponents_past]
every_versions = 2
`)
	one := w.train("duel.toml")
	for _, components := range [][]string{{"rollout"}, {"inference", "learner_rival"}, {"inference_rival", "inference_past"},
		{"rollout", "inference", "inference_rival", "inference_past", "learner", "learner_rival"}} {
		args := []string{"duel.toml"}
		for _, component := range components {
			args = append(args, "--set", "component."+component+".runtime=process")
		}
		if other := w.train(args...); one.EnvSteps < 4096 || other.ParamsHash != one.ParamsHash {
			t.Errorf("with %v in processes %+v, in none %+v", components, other, one)
		}
	}
}

// The same of two groups of agents, which observe and do different things.
func TestS21GroupsLearnTheSameInProcesses(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("tag.toml", strings.NewReplacer("20480", "4096", "cartpole@1", "tag@1").Replace(plain)+`
[policy.prey]
net = { hidden = [24, 8], activation = "relu" }
[component.rollout]
policies = { hunters = "main", prey = "prey" }
`)
	one := w.train("tag.toml")
	for _, components := range [][]string{{"rollout"}, {"inference", "learner_prey"}, {"rollout", "inference", "inference_prey", "learner", "learner_prey"}} {
		args := []string{"tag.toml"}
		for _, component := range components {
			args = append(args, "--set", "component."+component+".runtime=process")
		}
		if other := w.train(args...); one.EnvSteps < 4096 || other.ParamsHash != one.ParamsHash {
			t.Errorf("with %v in processes %+v, in none %+v", components, other, one)
		}
	}
}

// reaches trains until a mean return, which has to be reached within so many env steps.
func (w *workshop) reaches(want float64, within int, file string, args ...string) {
	w.t.Helper()
	stop := fmt.Sprintf("run.stop={ return = %g, env_steps = %d }", want, within)
	end := w.train(append([]string{file, "--set", stop}, args...)...)
	if end.Reason != "return" || end.MeanReturn < want {
		w.t.Errorf("ended by %s after %d env steps with a mean return of %g, want %g", end.Reason, end.EnvSteps, end.MeanReturn, want)
	}
}

// A program that is told twice to end does not wait for its plugins, and still removes their folder of sockets.
func TestPlugins_StoppedAtOnceLeaveNoFolder(t *testing.T) {
	t.Parallel()
	sockets, err := os.MkdirTemp("", "rlhost-test-") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	w := newSwapShop(t)
	out := &testkit.Buffer{}
	w.env = []string{"XDG_RUNTIME_DIR=" + sockets}
	command := w.command("train", "cartpole.toml", "--set", "component.learner.runtime=process",
		"--set", "component.learner.epochs=1000", "--set", "policy.main.net.hidden=[512,512]")
	command.Stdout, command.Stderr = out, out
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() { _ = command.Process.Kill() })
	folders := func() int {
		found, err := filepath.Glob(filepath.Join(sockets, "rlhost-plugins-*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(longestWait); ; {
		select {
		case <-tick.C:
			if strings.Contains(out.String(), "env steps") && (folders() == 1 || strings.Contains(out.String(), "interrupted")) {
				_ = command.Process.Signal(os.Interrupt) // it may have ended
			}
			continue
		case <-deadline:
			t.Fatalf("the run goes on and on:\n%s", out)
		case <-ended:
		}
		break
	}
	if code := command.ProcessState.ExitCode(); code != exitInterrupted || !strings.Contains(out.String(), "stopped at once") {
		t.Errorf("it ended with %d:\n%s", code, out)
	}
	if folders() != 0 {
		t.Errorf("%d folders are left", folders())
	}
}
