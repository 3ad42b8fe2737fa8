package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/control"
)

// dyingRace is a race that ends its process once there is a file called die.
const dyingRace = `import os, pathlib, signal
import odd_agents

class Race(odd_agents.Race):
    def step(self, actions):
        try:
            pathlib.Path(__file__).with_name("die").unlink()
        except FileNotFoundError:
            return super().step(actions)
        os.kill(os.getpid(), signal.SIGKILL)

def race():
    return Race()
`

// Environments of PettingZoo are checked, trained, evaluated and replaced: agents that act side by side and drop out one by one, and
// agents that take turns. How many processes share them changes nothing, and a process that dies costs its episodes.
func TestPlugins_PettingZooTrains(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.python()
	w.copy("odd_agents.py", "../../sdk/python/tests/odd_agents.py")
	w.write("dying.py", dyingRace)
	for name, agents := range map[string]string{"race": "3 agents", "nim": "2 agents"} {
		use := "pettingzoo:odd_agents:" + name
		w.says([]string{"check", use, "--steps", "60"}, agents, "which agents act changes", " 0 failed")
		w.write(name+".toml", strings.NewReplacer("cartpole@1", use, "20480", "1024", "cartpole", name).Replace(plain))
		small := []string{name + ".toml", "--set", "component.rollout.envs=8", "--set", "component.batcher.dataset_rows=512"}
		one := w.train(small...)
		two := w.train(append(small, "--set", "env."+name+".workers=2")...)
		if one.EnvSteps < 1024 || one.ParamsHash != two.ParamsHash || one.EvalReturn != two.EvalReturn {
			t.Errorf("%s: in one process %+v, in two %+v", name, one, two)
		}
		w.says([]string{"eval", name, "--episodes", "4"}, "over 4 episodes")
	}
	w.write("live.toml", strings.NewReplacer("cartpole@1", "pettingzoo:odd_agents:race", "cartpole", "race").Replace(endless("async"))+
		"[component.rollout]\nenvs = 8\n[component.batcher]\ndataset_rows = 512\n")
	j := w.host("live.toml")
	j.swap(w.swapTo("pettingzoo:dying:race"))
	j.goesOn()
	j.addsUp()
	w.write("die", "")
	j.until("the loss is told", func(*control.StatusReply) bool { return strings.Contains(j.output.String(), "environments lost") })
	j.goesOn()
	j.until("env steps add up", func(s *control.StatusReply) bool {
		return s.Steps.Made == s.Steps.Trained+s.Steps.Dropped+s.Steps.UnderWay
	})
	j.stop()
}

// says runs a command that has to succeed and to say several things.
func (w *workshop) says(args []string, texts ...string) {
	w.t.Helper()
	w.fails(exitOK, args, texts...)
}

// Agents in a process are stepped as in the program: the same bits, in one worker and in two, none of which shares an environment's rows.
func TestS21AgentsAreTheSameInProcesses(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	for _, env := range []string{"connectfour", "tag", "chase"} {
		text := strings.NewReplacer("cartpole@1", env+"@1", "20480", "4096", "cartpole", env).Replace(plain)
		if env == "tag" {
			text += "[policy.prey]\n[component.rollout]\npolicies = { hunters = \"main\", prey = \"prey\" }\n"
		} else {
			text += "[policy.main]\nnet = { hidden = [16], core = { kind = \"lstm\", size = 8 } }\n"
		}
		w.write(env+".toml", text)
		one := w.train(env + ".toml")
		for _, sets := range []string{"runtime=process", "runtime=process workers=2"} {
			args := []string{env + ".toml"}
			for _, set := range strings.Fields(sets) {
				args = append(args, "--set", fmt.Sprintf("env.%s.%s", env, set))
			}
			if other := w.train(args...); one.EnvSteps < 4096 || other.ParamsHash != one.ParamsHash || other.EvalReturn != one.EvalReturn {
				t.Errorf("%s with %s: %+v, without %+v", env, sets, other, one)
			}
		}
	}
}

// Each kind of agent of PettingZoo is learned by a policy of its own, and the file need not say so.
func TestPlugins_PettingZooGroupsHaveAPolicyEach(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.python()
	w.copy("odd_agents.py", "../../sdk/python/tests/odd_agents.py")
	w.write("tag.toml", strings.NewReplacer("cartpole@1", "pettingzoo:odd_agents:tag", "20480", "1024", "cartpole", "tag").Replace(plain))
	small := []string{"train", "tag.toml", "--set", "component.rollout.envs=8", "--set", "component.batcher.dataset_rows=512"}
	w.says(small, "learns main, agent (main leads)", "evaluation: return", "evaluation of agent: return")
	w.fails(exitConfig, append(small, "--set", `component.rollout.policies={ "*/*" = "main" }`), "E055", "adversary and agent, which observe and act differently")
}
