package main

import (
	"strings"
	"testing"
)

const selfPlayFile = `
rlhost = 1
[run]
name = "four"
stop = { env_steps = 16_384 }
evaluation = { episodes = 4 }
[env.four]
use = "connectfour@1"
[train]
preset = "general"
env = "four"
mode = "sync"
[policy.main]
net = { hidden = [16] }
[policy.past]
of = "main"
[component.rollout]
opponents = { past = 0.5 }
[component.opponents_past]
every = 1
`

// Self-play against earlier versions trains the same policy in whichever processes these act and the learner runs, and rates it at the
// end and later.
func TestSelfPlay_TrainsTheSameInProcesses(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("four.toml", selfPlayFile)
	want := w.train("four.toml")
	if want.EvalElo == 0 {
		t.Fatalf("no rating at the end: %+v", want)
	}
	for _, components := range []string{"inference", "inference_past", "learner", "inference_past learner"} {
		var flags []string
		for _, name := range strings.Fields(components) {
			flags = append(flags, "--set", "component."+name+".runtime=process")
		}
		if got := w.train(append([]string{"four.toml"}, flags...)...); got.ParamsHash != want.ParamsHash || got.EvalElo != want.EvalElo {
			t.Errorf("with %s in a process of its own: parameters %s, want %s", components, got.ParamsHash, want.ParamsHash)
		}
	}
	told, err := w.command("eval", "four/1", "--elo", "--episodes", "4").Output()
	if err != nil || !strings.Contains(string(told), "main@0 ") || !strings.Contains(string(told), "newest") {
		t.Errorf("eval --elo says %q (%v)", told, err)
	}
}
