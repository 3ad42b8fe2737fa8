package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// slowEnv takes half a second to be made, and from the seventh one on waits for a file.
const slowEnv = `import os, time
import gymnasium, numpy
HERE = os.path.dirname(os.path.abspath(__file__))

class Slow(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        time.sleep(0.5)
        with open(os.path.join(HERE, "made"), "ab") as f:
            f.write(b"x")
            count = f.tell()
        while count > 6 and not os.path.exists(os.path.join(HERE, "go")):
            time.sleep(0.01)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        return numpy.zeros(2, numpy.float32), {}

    def step(self, action):
        return numpy.zeros(2, numpy.float32), 0.0, False, False, {}
`

// A start that takes long says how far it is: on its own terminal, and to commands before it takes any.
func TestStarting_EnvironmentsThatTakeLongAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.python()
	w.write("slow.py", slowEnv)
	w.write("slow.toml", strings.Replace(plain, "cartpole@1", "gymnasium:slow:Slow", 1))
	output, ended := &testkit.Buffer{}, make(chan error, 1)
	train := w.command("train", "slow.toml", "--set", "component.rollout.envs=16", "--set", "component.rollout.splits=1", "--set", "run.evaluation.episodes=1", "--set", "env.cartpole.wrap=[{time_limit=20}]", "--set", "run.stop.env_steps=1024")
	train.Stdout, train.Stderr = output, output
	if err := train.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- train.Wait() }()
	t.Cleanup(func() { _ = train.Process.Kill() })
	says := regexp.MustCompile(`^cartpole/0001  starting 16 environments, [1-6] made\n$`)
	testkit.Until(t, "status says how far it is", func() bool {
		select {
		case err := <-ended:
			t.Fatalf("it has ended: %v\n%s", err, output)
		default:
		}
		out, _ := w.command("status", "--run", "cartpole").Output()
		return says.Match(out)
	})
	json, err := w.command("status", "--json").Output()
	if want := regexp.MustCompile(`"run": ?"cartpole/0001",.*"state": ?"starting", ?"envs": ?16, ?"envs_made": ?[1-6]\}`); err != nil || !want.Match(json) {
		t.Errorf("%v: %s", err, json)
	}
	w.fails(exitUsage, []string{"checkpoint"}, "error[E070]", "cartpole/0001 is starting 16 environments, ", "rlhost status --wait --run cartpole/0001")
	testkit.Until(t, "the training says it, too", func() bool { return strings.Contains(output.String(), "starting 16 environments, ") })
	w.write("go", "")
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	run, err := runs.Open(w.path("runs"), "cartpole")
	if err != nil || run.Info().Starting != nil {
		t.Errorf("%v: it still starts: %v", err, run.Info().Starting)
	}
}
