package learner

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
)

// Ten datasets in a row with gradients of more than a hundred times max_grad_norm are reported once, with the remedy.
func TestLearner_TellsThatTheClipLeavesNothing(t *testing.T) {
	large := func(tr trajectory.Trajectory) {
		for i := range tr.Float32(trajectory.Reward) {
			tr.Float32(trajectory.Reward)[i] *= 1e5
		}
	}
	const said = "more than 100 times max_grad_norm in 10 datasets in a row"
	for name, c := range map[string]struct {
		config func(*config)
		want   string
	}{
		"together": {func(c *config) {}, "separate_grad_norms = true"},
		"apart":    {func(c *config) { c.SeparateGradNorms = true }, "scale the environment's rewards down"},
	} {
		r := newRig(t, rigOptions{config: c.config})
		for n := range 10 {
			change := large
			if n == 0 { // a normal one restarts the count
				change = nil
			}
			r.teach(t, n, uint64(n), change)
		}
		if got := r.Log.String(); got != "" {
			t.Errorf("%s: after nine datasets in a row the log says %q", name, got)
		}
		for n := range 20 {
			r.teach(t, 10+n, uint64(10+n), large)
		}
		if got := r.Log.String(); strings.Count(got, said) != 1 || !strings.Contains(got, c.want) || !strings.Contains(got, "max_grad_norm=0.5") {
			t.Errorf("%s: the log is %q, want once %q with %q", name, got, said, c.want)
		}
	}
	r := newRig(t, rigOptions{config: func(c *config) { c.MaxGradNorm = 0 }})
	for n := range 12 {
		r.teach(t, n, uint64(n), large)
	}
	if got := r.Log.String(); got != "" {
		t.Errorf("without a clip the log says %q", got)
	}
}

// A dataset that takes the policy far from the one that acted is reported once, with the remedy.
func TestLearner_ReportsALargeDivergence(t *testing.T) {
	const said = "far from the one that acted"
	for name, c := range map[string]struct {
		config func(*config)
		want   string
	}{
		"without a target": {func(c *config) { c.LearningRate, c.Epochs = 1, 10 }, "target_kl = 0.02"},
		"with one":         {func(c *config) { c.LearningRate, c.Epochs, c.TargetKL = 1, 10, 0.02 }, "a smaller learning_rate"},
		"a usual one":      {func(c *config) {}, ""},
	} {
		r := newRig(t, rigOptions{config: c.config})
		for n := range 3 {
			r.teach(t, n, uint64(n), nil)
		}
		got := r.Log.String()
		switch {
		case c.want == "" && strings.Contains(got, said):
			t.Errorf("%s: the log says %q", name, got)
		case c.want != "" && (strings.Count(got, said) != 1 || !strings.Contains(got, c.want)):
			t.Errorf("%s: the log is %q, want once %q with %q", name, got, said, c.want)
		}
	}
}

// Ten datasets in a row whose first minibatch is mostly beyond clip are reported once, with the remedy.
func TestLearner_TellsThatItLearnsFarFromTheActingPolicy(t *testing.T) {
	far := func(tr trajectory.Trajectory) {
		for i := range tr.Float32(trajectory.LogProb) {
			tr.Float32(trajectory.LogProb)[i] += float32(i%2) + 0.5 // ratios of 0.61 and 0.22
		}
	}
	const said = "first minibatch was beyond clip in 10 datasets in a row"
	for vtrace, want := range map[bool]bool{false: true, true: false} {
		r := newRig(t, rigOptions{config: func(c *config) { c.VTrace = vtrace }})
		for n := range 10 {
			change := far
			if n == 0 { // a normal one restarts the count
				change = nil
			}
			r.teach(t, n, uint64(n), change)
		}
		if got := r.Log.String(); strings.Contains(got, said) {
			t.Errorf("after nine datasets in a row the log says %q", got)
		}
		for n := range 12 {
			r.teach(t, 10+n, uint64(10+n), far)
		}
		got := r.Log.String()
		if strings.Count(got, said) != 1 || !strings.Contains(got, "fewer epochs") || strings.Contains(got, "vtrace = true") != want {
			t.Errorf("the log is %q, want once %q", got, said)
		}
	}
}
