package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/control"
)

const selfPlayFile = `
rlhost = 1
[run]
name = "four"
seed = 2
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
every_versions = 1
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

// Learners of one rollout come to a checkpoint together, whichever components are processes: each has learned from as many datasets, and
// a run resumed there equals the unbroken one.
func TestSelfPlay_LearnersGoInStepInProcesses(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("duel.toml", strings.Replace(selfPlayFile, "mode = \"sync\"", "mode = \"sync\"\n[policy.rival]\nnet = { hidden = [8] }\n[component.learner]\nlr_anneal_env_steps = 0", 1))
	train := func(components string, args ...string) string {
		t.Helper()
		args = append(args, "--set", `component.rollout.policies={ "*/0" = "main", "*/1" = "rival" }`)
		for _, name := range strings.Fields(components) {
			args = append(args, "--set", "component."+name+".runtime=process")
		}
		end := w.train(args...)
		return fmt.Sprintf("%.8s %.8s", end.ParamsHash, end.ParamsHashes["rival"])
	}
	part, whole := train("", "duel.toml", "--set", "run.stop.env_steps=3000"), train("", "duel.toml")
	for _, components := range []string{"batcher_rival", "batcher batcher_rival", "rollout batcher_rival learner", "rollout inference inference_past batcher batcher_rival learner learner_rival"} {
		if got := train(components, "duel.toml", "--set", "run.stop.env_steps=3000"); got != part {
			t.Errorf("with %s in processes the first checkpoint has %s, want %s", components, got, part)
		}
		if got := train(components, "--resume", "four", "--set", "run.stop.env_steps=16384"); got != whole {
			t.Errorf("with %s in processes it goes on to %s, want %s", components, got, whole)
		}
	}
}

// A change of the batcher, of inference or of the learner during a run of self-play does not change the learning: a learner that replaces
// another one publishes the same version, so that no pool draws once more.
func TestSelfPlay_SwapsTrainTheSame(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("four.toml", strings.NewReplacer("16_384", "500_000_000", "episodes = 4", "episodes = 1", "[policy.main]", "[swap]\ntrial_envs = 0\nprobation = \"0s\"\n[policy.main]",
		"[component.rollout]", "[component.learner]\nlr_anneal_env_steps = 500_000\n[component.rollout]").Replace(selfPlayFile))
	j := w.host("four.toml", "--json")
	for _, component := range []string{"batcher", "inference", "inference_past", "learner"} {
		for _, to := range []string{"process", "builtin"} {
			j.swap(control.SwapRequest{Component: component, File: to})
			j.goesOn()
			j.addsUp("not_learned")
		}
	}
	j.stop()
	j.learnedWhat("four.toml")
}
