package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const successEnv = `import gymnasium, numpy
class Success(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (1,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)
    made = 0  # the first one is made to be described
    def __init__(self):
        self.number = Success.made
        Success.made += 1
    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.age = 0
        return numpy.zeros(1, numpy.float32), {"begun": 1.0}
    def step(self, action):
        self.age += 1
        end = self.age == 10
        info = {"number": self.number, "won": numpy.bool_(self.number > 12), "text": "no number", "vector": numpy.ones(3), "x" * 65: 1}
        return numpy.zeros(1, numpy.float32), 1.0, end, False, info
gymnasium.register("Success-v0", Success, disable_env_checker=True)
`

// The environments' figures at the ends of episodes become means over the episodes, whichever environment reports
// last; with Gymnasium they are the numbers of the last info.
func TestS14MetricsOfEnvironmentsAreMeansOverEpisodes(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.python()
	w.write("success.py", successEnv)
	w.write("gym.toml", strings.Replace(plain, "cartpole@1", "gymnasium:success:Success-v0", 1))
	w.train("gym.toml", "--set", "run.stop.env_steps=8192")
	n, episodes := 0, 0.0
	for text := range strings.Lines(strings.ReplaceAll(w.read("runs/cartpole/0001/metrics.jsonl"), ":null", ":-1")) {
		n++
		var line map[string]float64
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		episodes += line["env/number/count"]
		if line["env/number"] != 8.5 || line["env/won"] != 0.25 || line["env/won/count"] != line["env/number/count"] {
			t.Errorf("line %d: number %v, won %v; want the means over environments 1 to 16 of both splits, 8.5 and 0.25", n, line["env/number"], line["env/won"])
		}
		if line["env/reset/begun"] != 1 {
			t.Errorf("line %d: begun %v at reset, want 1", n, line["env/reset/begun"])
		}
		for name := range line {
			if strings.HasPrefix(name, "env/") && !strings.HasPrefix(name, "env/reset/begun") && !strings.HasPrefix(name, "env/number") && !strings.HasPrefix(name, "env/won") {
				t.Errorf("line %d has %s", n, name)
			}
		}
	}
	if want := 32. * (8192 / 32 / 10); episodes != want {
		t.Errorf("%v episodes are counted, want %v", episodes, want)
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

// The last observations of Gymnasium's environments are checked too.
func TestS17LastObservationsOfGymnasiumAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.python()
	w.write("spoilt.py", spoiltEnv)
	w.write("gym.toml", strings.Replace(plain, "cartpole@1", "gymnasium:spoilt:Spoilt-v0", 1)+
		"[component.rollout]\nmax_restarts = 0\n")
	for _, how := range []string{"terminated", "truncated"} {
		w.fails(exitFailed, []string{"train", "gym.toml", "--set", "env.cartpole.args={how=\"" + how + "\"}"},
			"error[R014]: rollout env 7: output in rl_step at step 20: environment wrote a value that is not allowed: final_obs element 1")
	}
}

// The program tells its environments which life of the run they are in. This module's environments do the same again with
// the same seeds, whatever the policy does.
func TestS16ResumedTrainingsBeginOtherEpisodes(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.copy("entropy.wasm", faultyGuests+"/entropy.wasm")
	w.write("noise.toml", strings.Replace(plain, `"cartpole@1"`, `"./entropy.wasm"`, 1))
	begins, lines := map[string]int{}, 0 // the first three episodes of an environment
	for life, args := range [][]string{
		{"noise.toml", "--set", "train.mode=async", "--set", "run.stop.env_steps=4096"},
		{"--resume", "cartpole", "--set", "run.stop.env_steps=8192"},
		{"--resume", "cartpole", "--set", "run.stop.env_steps=12288"},
	} {
		w.train(args...)
		all, played := strings.Split(strings.TrimSpace(w.read("runs/cartpole/0001/episodes.csv")), "\n"), map[string][]string{}
		for _, line := range all[max(lines, 1):] { // after the header
			fields := strings.Split(line, ",") // env step, environment, how it did, and who played
			played[fields[1]] = append(played[fields[1]], strings.Join(fields[2:5], ","))
		}
		for env, episodes := range played {
			begin := fmt.Sprint(env, episodes[:min(len(episodes), 3)])
			if before, again := begins[begin]; again {
				t.Errorf("life %d begins as life %d, with environment and episodes %s", life, before, begin)
			}
			begins[begin] = life
		}
		lines = len(all)
	}
	if len(begins) < 3*16 {
		t.Errorf("%d environments have begun: the test looks at too little", len(begins))
	}
}
