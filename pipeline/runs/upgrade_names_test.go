package runs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A stored pipeline of an earlier version has old names in the tables of ours alone; a component of one's own keeps its words.
func TestUpgraded_OldNamesBecomeNewOnes(t *testing.T) {
	const before = `rlhost = 1

[run]
name = "old"
stop = { window = 100, env_steps = 0, wall = "1h" }
checkpoint = { every = "1h", keep = 1, best = true, keep_every = 8192 }
evaluation = { episodes = 100, seed = 1, deterministic = true, max_steps = 0, every = 4096, share = 0.1, wall = "3s" }

[swap]
at = "trajectory"
canary = 4
verify = 2000

[plugin.zoo]
path = "./zoo"
env = ["HOME"]
restarts = 3

[env.task]
use = "cartpole@1"
isolation = "process"

[policy.main]
env = "task"
action = { log_std = "free", log_std_init = 0.0 }

[policy.other]
env = "task"
action = { squash = "tanh", log_std = "state" }

[component.learner]
kind = "learner"
anneal_env_steps = 5
entropy = 0.01
clip_grad_apart = false
recompute = "dataset"

[component.past]
kind = "opponents"
keep = 10
every = 20
draw_every = 1

[component.runner]
kind = "runner"
every = "1s"

[component.own]
kind = "filter"
entropy = 3
every = 2
`
	want := strings.NewReplacer(`wall = "1h"`, `wall_time = "1h"`, "keep_every =", "keep_every_env_steps =", "deterministic = true", "greedy = true",
		"every = 4096", "every_env_steps = 4096", `wall = "3s"`, `wall_time = "3s"`, "canary =", "trial_envs =", "verify =", "trial_steps =",
		`env = ["HOME"]`, `pass_env = ["HOME"]`, "\nrestarts =", "\nmax_restarts =", "isolation =", "runtime =", `log_std = "free"`, `log_std = "parameter"`,
		`log_std = "state"`, `log_std = "network"`, "anneal_env_steps =", "lr_anneal_env_steps =", "entropy = 0.01", "entropy_coef = 0.01",
		"clip_grad_apart =", "separate_grad_norms =", "recompute =", "vtrace_recompute =", "every = 20", "every_versions = 20",
		"draw_every =", "draw_every_versions =").Replace(before)
	got := upgraded(before)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if again := upgraded(got); again != got {
		t.Errorf("a pipeline of this version becomes\n%s", again)
	}
}

func TestReadSet_KnowsWhatEarlierVersionsJudged(t *testing.T) {
	dir := t.TempDir()
	const text = `{"format": 1, "seeds": [{"seed": 1, "return": 5, "deterministic": true}, {"seed": 2, "return": 5, "deterministic": false},
		{"seed": 3, "return": null, "deterministic": false}, {"seed": 4, "return": 5, "judged": "greedy"}]}`
	if err := os.WriteFile(filepath.Join(dir, setFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := readSet(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{JudgedGreedy, JudgedSampled, "", JudgedGreedy} {
		if got := info.Seeds[i].Judged; got != want {
			t.Errorf("seed %d judged %q, want %q", info.Seeds[i].Seed, got, want)
		}
	}
}
