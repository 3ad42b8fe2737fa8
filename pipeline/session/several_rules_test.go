package session_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
)

// A rule for a policy that does not lead ends the run: by the env steps that it has learned from, in a resumed run too, or by its mean
// return, even if no learner trains it.
func TestSeveral_ARuleForOnePolicyEndsTheRun(t *testing.T) {
	s := newTrainer(t)
	r := s.train(duet, "run.stop.policies.rival.env_steps=1152")
	if r.Reason != component.StopEnvSteps || r.ReachedBy != "rival" || r.EnvSteps >= 8192 || !math.IsNaN(r.ReachedReturn) {
		t.Errorf("by env steps of rival: %+v", r)
	}
	before := r.EnvSteps
	r = s.resume(s.options(), "run.stop.policies.rival.env_steps=2304")
	if r.Reason != component.StopEnvSteps || r.ReachedBy != "rival" || r.EnvSteps <= before || r.EnvSteps >= 8192 {
		t.Errorf("from %d env steps on: %+v", before, r)
	}
	r = s.train(duet, "run.stop.policies.rival.return=5")
	if r.Reason != component.StopReturn || r.ReachedBy != "rival" || r.ReachedReturn < 5 {
		t.Errorf("by the return of rival: %+v", r)
	}
	r = s.train(shared+past, "component.rollout.opponents={ past = 0.5 }", "component.opponents_past.every_versions=2", "run.stop.policies.past.return=-10")
	if r.Reason != component.StopReturn || r.ReachedBy != "past" || r.ReachedReturn < -1 {
		t.Errorf("by the return of a pool: %+v", r)
	}
	r = s.train(duet, "run.stop.env_steps=512", "run.stop.policies.rival.env_steps=100_000")
	if r.Reason != component.StopEnvSteps || r.ReachedBy != "" || r.EnvSteps != 512 {
		t.Errorf("by env steps of main: %+v", r)
	}
}

// Each policy that is learned is evaluated at the end, and has its own best checkpoint by its own window.
func TestSeveral_EachPolicyIsJudged(t *testing.T) {
	s := newTrainer(t)
	r := s.train(duet, "run.stop.env_steps=4096", `run.checkpoint.every="1us"`, "run.checkpoint.keep=1")
	run := s.newest()
	e := r.Evaluations["rival"]
	if len(r.Evaluations) != 1 || e == nil || len(e.Judged().Returns) != 4 || slices.Equal(e.Judged().Returns, r.Evaluation.Judged().Returns) {
		t.Errorf("main %+v, others %+v", r.Evaluation, r.Evaluations)
	}
	if got := run.Info().Outcome.Returns["rival"]; e != nil && got != e.Judged().Return {
		t.Errorf("the run's folder says that rival has %g, the evaluation %g", got, e.Judged().Return)
	}
	for _, name := range []string{"main", "rival"} {
		if _, err := run.Load(run.BestOf(name)); err != nil {
			t.Errorf("the best checkpoint of %s: %v", name, err)
		}
	}
	if run.BestOf("main") != runs.Best || run.BestOf("rival") == runs.Best {
		t.Errorf("the best of main is %s, of rival %s", run.BestOf("main"), run.BestOf("rival"))
	}
}

// During the run each evaluation plays every learned policy, the leading one first, and says whose it is.
func TestSeveral_EachPolicyIsEvaluatedMeanwhile(t *testing.T) {
	s := newTrainer(t)
	var mu sync.Mutex
	var told []session.Evaluated
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(told)
	}
	s.observe = func(e session.Event) {
		if x, ok := e.(session.Evaluated); ok {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, x)
		}
	}
	o := s.options()
	o.Graph = s.graph(duet, "run.stop.env_steps=500_000_000", "run.evaluation.every_env_steps=256", "run.evaluation.share=1.0")
	x, err := session.Begin(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ended := running(t.Context(), x)
	testkit.Until(t, "two evaluations of both", func() bool { return count() >= 4 })
	x.Stop(false)
	err = <-ended
	gauges := map[string]float64{}
	for _, v := range x.Pipeline().Stats().Snapshot() {
		gauges[v.Name] = v.Value
	}
	best := x.Folder().BestOf("rival")
	_, missing := x.Folder().Load(best)
	if err := errors.Join(err, x.Close(), missing); err != nil {
		t.Fatal(err)
	}
	for i, e := range told[:4] {
		want, leads := "main", true
		if i%2 == 1 {
			want, leads = "rival", false
		}
		if e.Policy != want || e.Leads != leads || len(e.Returns) != 4 || e.EnvSteps == 0 {
			t.Errorf("evaluation %d: %+v, want %s", i, e, want)
		}
	}
	if a, b := told[0].String(), told[1].String(); !strings.HasPrefix(a, "evaluation at ") || !strings.HasPrefix(b, "evaluation of rival at ") {
		t.Errorf("told as %q and %q", a, b)
	}
	for _, name := range []string{"eval/episodic_return", "rival/eval/episodic_return", "rival/eval/global_step", "rival/eval/policy_version"} {
		if v, ok := gauges[name]; !ok || v <= 0 {
			t.Errorf("%s is %v", name, v)
		}
	}
}
