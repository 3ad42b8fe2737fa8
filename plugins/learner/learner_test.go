package learner

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

func TestConfigure_NamesEveryKeyThatIsWrong(t *testing.T) {
	for want, change := range map[string]func(*config){
		"`policy` is missing":                                        func(c *config) { c.Policy = "" },
		"`learning_rate` is 2, want 0 to 1":                          func(c *config) { c.LearningRate = 2 },
		"`gamma` is NaN, want 0 to 1":                                func(c *config) { c.Gamma = math.NaN() },
		"`kl_coef` is -1, want 0 to 1000000":                         func(c *config) { c.KLCoef = -1 },
		"`learning_rate_min` is 0.1, above learning_rate_max = 0.01": func(c *config) { c.AdaptiveKL, c.LearningRateMin = 0.01, 0.1 },
		"`adaptive_kl` has the learning rate follow the divergence and lr_anneal_env_steps = 5 the env steps": func(c *config) { c.AdaptiveKL, c.LRAnnealEnvSteps = 0.01, 5 },
		"`gae_lambda` is -1, want 0 to 1":                        func(c *config) { c.GAELambda = -1 },
		"`clip` is 0, want 1e-06 to 10":                          func(c *config) { c.Clip = 0 },
		"`epochs` is 0, want 1 to 1000":                          func(c *config) { c.Epochs = 0 },
		"`minibatch` is 0, want 1 to":                            func(c *config) { c.Minibatch = 0 },
		"`learners` is 0, want 1 to 64":                          func(c *config) { c.Learners = 0 },
		"`learners` is 65, want 1 to 64":                         func(c *config) { c.Learners = 65 },
		"`learners` is 9, and a minibatch has 8 rows":            func(c *config) { c.Learners, c.Minibatch = 9, 8 },
		"`entropy_coef` is -1, want 0 to 10":                     func(c *config) { c.EntropyCoef = -1 },
		"`value_coef` is +Inf, want 0 to 100":                    func(c *config) { c.ValueCoef = math.Inf(1) },
		"`value_clip` is -1, want":                               func(c *config) { c.ValueClip = -1 },
		"`max_grad_norm` is -1, want":                            func(c *config) { c.MaxGradNorm = -1 },
		"`target_kl` is 101, want 0 to 100":                      func(c *config) { c.TargetKL = 101 },
		"`rho_bar` is 0, want 1e-06 to":                          func(c *config) { c.RhoBar = 0 },
		"`c_bar` is 0, want 1e-06 to":                            func(c *config) { c.CBar = 0 },
		"`adam_eps` is 0, want 1e-12 to 1":                       func(c *config) { c.AdamEps = 0 },
		"`bounds_loss_coef` is -1, want 0 to 1000000":            func(c *config) { c.BoundsLossCoef = -1 },
		"`adam_beta1` is 1, want 0 to 0.999999":                  func(c *config) { c.AdamBeta1 = 1 },
		"`adam_beta2` is -1, want 0 to 0.999999":                 func(c *config) { c.AdamBeta2 = -1 },
		"`vtrace_recompute` is \"never\", want dataset or epoch": func(c *config) { c.VTraceRecompute = "never" },
		"`discount` is \"add\", want replace or multiply":        func(c *config) { c.Discount = "add" },
	} {
		err := New().Configure(func(into any) error {
			into.(*config).Policy = "main"
			change(into.(*config))
			return nil
		})
		var bad *component.ConfigError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	err := New().Configure(func(into any) error { *into.(*config) = config{}; return nil })
	if n := strings.Count(err.Error(), "\n") + 1; n != 11 {
		t.Errorf("an empty table gives %d lines, want all 11 that are wrong with it:\n%v", n, err)
	}
}

func TestStart_SaysWhatIsMissing(t *testing.T) {
	for want, policies := range map[string]map[string]component.Policy{
		"not declared":            nil,
		"want *policy.Definition": {"main": nil},
	} {
		err := plugintest.StartError(t, New(), plugintest.RigOptions{Policies: policies}, func(into any) error {
			into.(*config).Policy = "main"
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestLearner_PublishesWhatActingBeginsWith(t *testing.T) {
	n := plain()
	for seed := range uint64(2) {
		r := newRig(t, rigOptions{seed: seed})
		r.MustSettle()
		if len(r.weights) != 1 || r.weights[0].Version != 0 || !slices.Equal(r.weights[0].Params, policy.Init(&n, seed)) {
			t.Errorf("seed %d: published %v, want the initial parameters as version 0", seed, r.weights)
		}
		if r.Boundaries != 0 || len(r.reports) != 0 {
			t.Errorf("%d boundaries and %d reports before there is a dataset", r.Boundaries, len(r.reports))
		}
	}
}

func TestLearner_LearnsPublishesReportsAndLetsGo(t *testing.T) {
	r := newRig(t, rigOptions{})
	for n := range 3 {
		r.teach(t, n, uint64(n), nil)
	}
	if len(r.weights) != 4 || r.Boundaries != 3 || len(r.reports) != 3 {
		t.Fatalf("%d versions, %d boundaries, %d reports; want 4, 3, 3", len(r.weights), r.Boundaries, len(r.reports))
	}
	for i, w := range r.weights[1:] {
		if w.Version != uint64(i+1) || slices.Equal(w.Params, r.weights[i].Params) {
			t.Errorf("version %d: published as %d, or as it was", i+1, w.Version)
		}
	}
	for i, p := range r.reports {
		if p["global_step"] != float64(32*(i+1)) || p["policy_version"] != float64(i+1) || p["losses/optimizer_steps"] != 8 ||
			p["learner/optimizer_steps"] != float64(8*(i+1)) || p["lag/max"] != 0 || !(p["perf/update_seconds"] > 0) {
			t.Errorf("report %d is %v", i, p)
		}
	}
	if s := r.blocks.Stats(); s.Free != 2 {
		t.Errorf("trajectories %+v, want all free", s)
	}
	if s := r.c.weightsAt.Stats(); s.Live != 1 {
		t.Errorf("weights %+v, want the newest alone", s)
	}
	const epochs, floats = 2, 4
	if got := r.Host.Stats.Counter("learner/gathered_bytes").Value(); got != 3*32*epochs*floats*plugintest.ObsElems {
		t.Errorf("%d bytes gathered", got)
	}
}

// The report names the lag of a dataset in versions and in optimiser steps.
func TestLearner_MeasuresLag(t *testing.T) {
	r := newRig(t, rigOptions{})
	for n := range 5 {
		r.teach(t, n, uint64(n), nil)
	}
	r.teach(t, 5, 2, func(tr trajectory.Trajectory) { tr.Uint64(trajectory.PolicyVersion)[0] = 1 })
	p := r.reports[5]
	if p["lag/max"] != 4 || p["lag/mean"] != (7*3+4)/8. || p["lag/optimizer_steps_mean"] != 8*(7*3+4)/8. {
		t.Errorf("lag %v mean, %v at most, %v optimiser steps; want 3.125, 4, 25", p["lag/mean"], p["lag/max"], p["lag/optimizer_steps_mean"])
	}
}

// A runner that is far too late loses reports, and learning continues.
func TestLearner_SkipsReportsThatNobodyReads(t *testing.T) {
	r := newRig(t, rigOptions{config: func(c *config) { c.Epochs, c.Minibatch = 1, 32 }})
	r.keep = true
	for n := range statsBlocks + 2 {
		r.teach(t, n, uint64(n), nil)
	}
	if len(r.reports) != statsBlocks || r.Host.Stats.Counter("learner/stats_skipped").Value() != 2 || r.Boundaries != statsBlocks+2 {
		t.Errorf("%d reports, %d skipped, %d datasets; want 128, 2, 130", len(r.reports),
			r.Host.Stats.Counter("learner/stats_skipped").Value(), r.Boundaries)
	}
}

func TestLearner_RefusesDatasetsItCannotRead(t *testing.T) {
	list := func(h hostabi.Handle) func([]byte) {
		return func(b []byte) { _ = trajectory.WriteDataset(b, 0, []trajectory.Member{{Handle: h}}) }
	}
	for name, c := range map[string]struct {
		write func(r *rig) func([]byte)
		want  error
	}{
		"a count that is too large": {func(*rig) func([]byte) { return func(b []byte) { b[8] = 200 } }, trajectory.ErrDataset},
		"no blocks":                 {func(*rig) func([]byte) { return func(b []byte) { clear(b) } }, policy.ErrDataset},
		"a stale block":             {func(r *rig) func([]byte) { return list(hostabi.MakeHandle(r.blocks.ID(), 0, 1000)) }, nil}, // the batcher has died: the next one is learned from
		"a block of nobody":         {func(*rig) func([]byte) { return list(hostabi.MakeHandle(200, 0, 1)) }, arena.ErrForeign},
	} {
		r := newRig(t, rigOptions{})
		plugintest.Give(t, r.datasets, hostabi.Message{}, r.lists, c.write(r))
		if err := r.Settle(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if r.Boundaries != 0 || r.c.version != 0 {
			t.Errorf("%s: %d boundaries, version %d", name, r.Boundaries, r.c.version)
		}
	}
}

// rates returns the backend's rates for each of n datasets.
func rates(t *testing.T, n int, o rigOptions) (all []ppo.Rates) {
	t.Helper()
	r := newRig(t, o)
	for k := range n {
		all = append(all, r.c.config.rates(r.c.envSteps))
		r.teach(t, k, uint64(k), nil)
	}
	return all
}

func TestRates_FollowEnvSteps(t *testing.T) {
	got := rates(t, 4, rigOptions{config: func(c *config) { c.LearningRate, c.LRAnnealEnvSteps, c.Clip = 1, 64, 0.5 }})
	want := []ppo.Rates{{LearningRate: 1, Clip: 0.5, Entropy: 0.01}, {LearningRate: 0.5, Clip: 0.5, Entropy: 0.01},
		{Clip: 0.5, Entropy: 0.01}, {Clip: 0.5, Entropy: 0.01}}
	if !slices.Equal(got, want) {
		t.Errorf("rates %v, want %v", got, want)
	}
	got = rates(t, 2, rigOptions{config: func(c *config) { c.LearningRate, c.LRAnnealEnvSteps, c.Clip, c.AnnealClip = 1, 64, 0.5, true }})
	if got[1].Clip != 0.25 {
		t.Errorf("clip %v half way, want 0.25", got[1].Clip)
	}
	got = rates(t, 2, rigOptions{config: func(c *config) { c.LearningRate = 0.25 }})
	if got[1].LearningRate != 0.25 {
		t.Errorf("rate %v without a schedule, want 0.25", got[1].LearningRate)
	}
}

// A dataset whose blocks had to wait can be older than many versions, and its lag in optimiser steps counts them all.
func TestLearner_MeasuresLagOverManyVersions(t *testing.T) {
	r := newRig(t, rigOptions{config: func(c *config) { c.Epochs, c.Minibatch = 1, 32 }})
	for n := range 300 {
		r.teach(t, n, uint64(n), nil)
	}
	r.teach(t, 300, 7, nil)
	if p := r.reports[300]; p["lag/max"] != 293 || p["lag/optimizer_steps_mean"] != 293 {
		t.Errorf("lag %v versions and %v optimiser steps, want 293 of each", p["lag/max"], p["lag/optimizer_steps_mean"])
	}
	// A learner that continues from there knows the optimiser steps of its first version, but not of older ones.
	next := newRig(t, rigOptions{restore: r.saved(t), config: func(c *config) { c.Epochs, c.Minibatch = 1, 32 }})
	next.teach(t, 301, 301, nil)
	next.teach(t, 302, 7, nil)
	if p := next.reports[1]; p["lag/max"] != 295 || p["lag/optimizer_steps_mean"] != 1 {
		t.Errorf("after a restore lag %v versions and %v optimiser steps, want 295 and the one that is known", p["lag/max"], p["lag/optimizer_steps_mean"])
	}
}

func TestStepsAtVersion_IsBounded(t *testing.T) {
	var s stepsAtVersion
	for v := range uint64(3*maxMarks + 5) {
		s.set(2*v, 10*v)
	}
	const newest = 3*maxMarks + 4
	oldest := s.marks[0].steps
	if len(s.marks) > 2*maxMarks || s.get(2*newest) != 10*newest || s.get(2*(newest-maxMarks)) != 10*(newest-maxMarks) ||
		s.get(2*newest-1) != 10*(newest-1) || oldest == 0 || s.get(0) != oldest {
		t.Errorf("%d marks, the oldest of %d steps; versions 0 and %d have %d and %d", len(s.marks), oldest, 2*newest, s.get(0), s.get(2*newest))
	}
}
