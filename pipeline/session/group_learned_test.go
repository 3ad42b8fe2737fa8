package session_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/place"
)

// pairs is a synchronous training with two rollouts and two inferences, as far as sets say.
var pairs = strings.Replace(cartpole, `name = "cartpole"`, `name = "duet"`, 1)

// In a synchronous run groups and places change no bit: not what is learned, and not what a resumed run continues with.
func TestGroup_ChangesNoBitOfASynchronousRun(t *testing.T) {
	all, err := place.Available()
	if err != nil {
		t.Fatal(err)
	}
	group := `group.actors={ components = ["rollout", "inference"], count = 2, cores = "` + all.String() + `" }`
	steps := func(n int) string { return "run.stop.env_steps=" + strconv.Itoa(n) }
	anneal := "component.learner.lr_anneal_env_steps=8192"
	want := newTrainer(t).train(pairs, steps(8192), anneal, "component.rollout.count=2", "component.inference.count=2")
	if one := newTrainer(t).train(pairs, steps(8192), anneal); one.ParamsHash == want.ParamsHash {
		t.Error("with half of the environments the same is learned")
	}
	if got := newTrainer(t).train(pairs, steps(8192), anneal, group); got.ParamsHash != want.ParamsHash || got.EnvSteps != want.EnvSteps {
		t.Errorf("with a group %.12s is learned after %d env steps, without one %.12s after %d", got.ParamsHash, got.EnvSteps, want.ParamsHash, want.EnvSteps)
	}
	s := newTrainer(t)
	s.train(pairs, steps(4096), anneal, group)
	if got := s.resume(s.options(), steps(8192)); got.ParamsHash != want.ParamsHash {
		t.Errorf("resumed, %.12s is learned, want %.12s", got.ParamsHash, want.ParamsHash)
	}
}
