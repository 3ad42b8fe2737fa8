package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
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

// What environments say at the ends of their episodes becomes the mean over the episodes, whichever environment speaks
// last; the numbers of a Gymnasium environment's last info are that.
func TestS14MetricsOfEnvironmentsAreMeansOverEpisodes(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.python()
	w.write("success.py", successEnv)
	w.write("gym.toml", strings.Replace(plain, "cartpole@1", "gymnasium:success:Success-v0", 1))
	w.train("gym.toml", "--set", "run.stop.env_steps=8192")
	text, err := os.ReadFile(filepath.Join(w.dir, "runs/cartpole/0001/metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines, episodes := bufio.NewScanner(bytes.NewReader(text)), 0.0
	for n := 1; lines.Scan(); n++ {
		var line map[string]float64
		if err := json.Unmarshal(bytes.ReplaceAll(lines.Bytes(), []byte(":null"), []byte(":-1")), &line); err != nil {
			t.Fatal(err)
		}
		episodes += line["env/number/count"]
		if line["env/number"] != 8.5 || line["env/won"] != 0.25 || line["env/won/count"] != line["env/number/count"] {
			t.Errorf("line %d: number %v, won %v; want the means over environments 1 to 16 of both splits, 8.5 and 0.25", n, line["env/number"], line["env/won"])
		}
		for name := range line {
			if strings.HasPrefix(name, "env/") && !strings.HasPrefix(name, "env/number") && !strings.HasPrefix(name, "env/won") {
				t.Errorf("line %d has %s", n, name)
			}
		}
	}
	if want := 32. * (8192 / 32 / 10); episodes != want {
		t.Errorf("%v episodes are counted, want %v", episodes, want)
	}
}
