package session_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/ppo"
	"github.com/rlhost/rlhost/plugins/builtin"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/learner"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// On-policy and unclipped, V-trace's value targets are GAE's, on datasets as rollouts make them.
func TestS7VTraceOnPolicyIsGAE(t *testing.T) {
	for name, x := range variants() {
		o := x.must(t)
		c := ppo.Defaults()
		for n := range len(o.reports) {
			d := o.dataset(2, n)
			logProb := make([]float32, d.Rows())
			for i, b := range d.Blocks {
				envs := b.Schema.Shape.Envs
				for k, v := range b.Float32(trajectory.LogProb) {
					logProb[k/envs*d.Envs()+i*envs+k%envs] = v
				}
			}
			var gae, vtrace ppo.Targets
			if err := errors.Join(gae.GAE(d, &c), vtrace.VTrace(d, &c, logProb)); err != nil {
				t.Fatal(err)
			}
			for row := range gae.Return {
				if !near(float64(vtrace.Return[row]), float64(gae.Return[row]), 1e-6) {
					t.Fatalf("%s: dataset %d row %d: V-trace's target is %v, GAE's %v", name, n, row, vtrace.Return[row], gae.Return[row])
				}
			}
		}
	}
}

func TestS7VTraceIsComputedWhenTheFileSays(t *testing.T) {
	hashes := func(sets ...string) []string {
		return experiment{script: uneven(), sets: append(sets, "component.learner.vtrace=true")}.must(t).hashes
	}
	once, each := hashes("component.learner.epochs=1"), hashes("component.learner.epochs=1", `component.learner.vtrace_recompute="epoch"`)
	if !slices.Equal(once, each) {
		t.Error("in one epoch, vtrace_recompute = dataset and epoch learn differently")
	}
	once, each = hashes("component.learner.epochs=3"), hashes("component.learner.epochs=3", `component.learner.vtrace_recompute="epoch"`)
	if slices.Equal(once, each) {
		t.Error("in three epochs, vtrace_recompute = dataset and epoch learn the same")
	}
}

func TestS7TargetKLStopsTheEpochs(t *testing.T) {
	epochs := func(sets ...string) []float64 {
		return experiment{script: uneven(), sets: append(sets, "component.learner.epochs=8")}.must(t).reported("losses/epochs")
	}
	if err := only(epochs(), 8); err != nil {
		t.Errorf("without target_kl: %v", err)
	}
	if got := epochs("component.learner.target_kl=1e-7"); slices.Max(got) > 2 {
		t.Errorf("with a tiny target_kl: epochs %v, want 1 or 2 each", got)
	}
	if err := only(epochs("component.learner.target_kl=50"), 8); err != nil {
		t.Errorf("with a huge target_kl: %v", err)
	}
}

// The loss of the value is half the mean squared error, before the coefficient; kl is k3, its old estimator k1.
func TestS7LossesAreWhatTheirNamesSay(t *testing.T) {
	o := experiment{script: uneven(), sets: []string{"component.learner.epochs=1", "component.learner.minibatch=128"}}.must(t)
	c := ppo.Defaults()
	for n, got := range o.reported("losses/value_loss") {
		d := o.dataset(2, n)
		var targets ppo.Targets
		if err := targets.GAE(d, &c); err != nil {
			t.Fatal(err)
		}
		want := 0.0
		for i, b := range d.Blocks {
			envs := b.Schema.Shape.Envs
			for k := range b.Schema.Shape.Steps * envs {
				err := float64(b.Float32(trajectory.Value)[k]) - float64(targets.Return[k/envs*d.Envs()+i*envs+k%envs])
				want += err * err / 2 / float64(d.Rows())
			}
		}
		if !near(got, want, 1e-5) {
			t.Errorf("dataset %d: value loss %v, half the mean squared error is %v", n, got, want)
		}
	}
	for _, name := range []string{"losses/approx_kl", "losses/old_approx_kl", "losses/clipfrac"} {
		if err := only(o.reported(name), 0); err != nil {
			t.Errorf("%s of a single optimiser step on its own policy: %v, want 0", name, o.reported(name))
		}
	}
}

// The schedule is a function of env steps alone: neither the end of the run nor a resume changes it.
func TestS9SchedulesFollowEnvSteps(t *testing.T) {
	rates := func(x experiment) map[float64][2]float64 {
		o := x.must(t)
		at := map[float64][2]float64{}
		for _, r := range o.reports {
			at[r["global_step"]] = [2]float64{r["charts/learning_rate"], r["charts/clip"]}
		}
		return at
	}
	base := []string{"component.learner.learning_rate=1e-3", "component.learner.anneal_clip=true"}
	long := rates(experiment{script: uneven(), sets: append(slices.Clone(base), "run.stop.env_steps=1024")})
	for step := 128.0; step <= 1024; step += 128 {
		left := 1 - (step-128)/4096
		if got := long[step]; !near(got[0], float64(float32(1e-3*left)), 1e-9) || !near(got[1], float64(float32(0.2*left)), 1e-9) {
			t.Errorf("env step %v: learning rate and clip %v, want %v and %v", step, got, 1e-3*left, 0.2*left)
		}
	}
	short := rates(experiment{script: uneven(), sets: append(slices.Clone(base), "run.stop.env_steps=512")})
	if len(short) != 4 || len(long) != 8 {
		t.Fatalf("%d and %d datasets, want 4 and 8", len(short), len(long))
	}
	for step, rate := range short {
		if rate != long[step] {
			t.Errorf("env step %v: %v in the short run, %v in the long one", step, rate, long[step])
		}
	}
	stopped := experiment{script: uneven(), sets: append(slices.Clone(base), "run.stop.env_steps=512")}.must(t)
	resumed := rates(experiment{script: uneven(), sets: append(slices.Clone(base), "run.stop.env_steps=1024"), resume: stopped.states})
	if len(resumed) != 4 {
		t.Fatalf("the resumed run learned from %d datasets, want 4", len(resumed))
	}
	for step, rate := range resumed {
		if rate != long[step] {
			t.Errorf("env step %v: %v in the resumed run, %v in the unbroken one", step, rate, long[step])
		}
	}
}

func TestS9AScheduleEndsAtZero(t *testing.T) {
	o := experiment{script: uneven(), sets: []string{"component.learner.lr_anneal_env_steps=256"}}.must(t)
	got := o.reported("charts/learning_rate")
	if len(got) != 4 || got[1] == 0 || got[2] != 0 || got[3] != 0 {
		t.Errorf("learning rates %v, want the last two of four to be 0", got)
	}
	if o.hashes[1] != o.hashes[2] || o.hashes[0] == o.hashes[1] {
		t.Errorf("parameters %.8s: want them to change up to the second dataset", o.hashes)
	}
}

func TestS10VersionsCountPublications(t *testing.T) {
	o := experiment{script: uneven()}.must(t)
	for i, v := range o.reported("policy_version") {
		if v != float64(i+1) {
			t.Errorf("report %d is of version %v", i, v)
		}
	}
	_, w, err := learnerOf(o)
	if err != nil || w.Version != uint64(len(o.reports)) || w.Index != uint64(len(o.reports)) {
		t.Errorf("saved after %d datasets: version %d, %d datasets (%v)", len(o.reports), w.Version, w.Index, err)
	}
	for _, b := range o.blocks {
		if b.meta.MinVersion != b.meta.Sequence || b.meta.MaxVersion != b.meta.Sequence {
			t.Errorf("block %d of a split acted with versions %d to %d, want its own number", b.meta.Sequence, b.meta.MinVersion, b.meta.MaxVersion)
		}
	}
	for _, name := range []string{"lag/mean", "lag/max", "lag/optimizer_steps_mean", "lag/dropped_rows"} {
		if err := only(o.reported(name), 0); err != nil {
			t.Errorf("%s in synchronous mode: %v, want 0", name, o.reported(name))
		}
	}
	want := 0.0
	for i, n := range o.reported("losses/optimizer_steps") {
		want += n
		if got := o.reported("learner/optimizer_steps")[i]; got != want || n != 8 {
			t.Errorf("dataset %d: %v optimiser steps, %v in all, want 8 and %v", i, n, got, want)
		}
	}
}

// lagging is an asynchronous run whose learner does not begin before the rollouts have used up their blocks, so that most of its data is old.
func lagging(script plugintest.Script, sets ...string) experiment {
	x := experiment{script: script, sets: append([]string{
		`train.mode="async"`, "component.rollout.blocks=6", "component.batcher.dataset_rows=64", "run.stop.env_steps=2048"}, sets...)}
	full, seen := make(chan struct{}), 0
	x.tapped = func() {
		if seen++; seen == 12 {
			close(full)
		}
	}
	x.backend = func(b policy.Backend) policy.Backend {
		return &spy{Backend: b, updates: func(*policy.Dataset) { <-full }}
	}
	return x
}

func TestS10LagIsMeasured(t *testing.T) {
	o := lagging(uneven(), "component.batcher.max_policy_lag=0").must(t)
	if err := only(o.reported("lag/dropped_rows"), 0); err != nil {
		t.Errorf("without a bound, dropped rows %v", o.reported("lag/dropped_rows"))
	}
	most := slices.Max(o.reported("lag/max"))
	if most < 10 {
		t.Errorf("lag %v: of 12 blocks of version 0, learned from one by one, the last has a lag of 11", o.reported("lag/max"))
	}
	for i, r := range o.reports[:12] {
		if r["lag/mean"] != float64(i) || r["lag/max"] != float64(i) || r["lag/optimizer_steps_mean"] != float64(4*i) {
			t.Errorf("dataset %d: lag %v mean, %v at most, %v optimiser steps; want %d, %d, %d", i, r["lag/mean"], r["lag/max"],
				r["lag/optimizer_steps_mean"], i, i, 4*i)
		}
		if i == 11 && r["losses/first_ratio_error"] == 0 {
			t.Errorf("dataset %d has a lag and a first ratio of exactly 1", i)
		}
	}
}

func TestS10MaxPolicyLagDropsWholeBlocksAndCountsThem(t *testing.T) {
	for _, bound := range []int{1, 2, 5} {
		o := lagging(uneven(), fmt.Sprintf("component.batcher.max_policy_lag=%d", bound)).must(t)
		if got := slices.Max(o.reported("lag/max")); got > float64(bound) {
			t.Errorf("max_policy_lag = %d: a dataset has a lag of %v", bound, got)
		}
		dropped := o.stats["lag/dropped_rows"]
		if dropped == 0 || math.Mod(dropped, 64) != 0 {
			t.Errorf("max_policy_lag = %d: %v rows dropped, want whole blocks of 64", bound, dropped)
		}
		if made, learned := o.stats["rollout/env_steps"], o.reported("global_step")[len(o.reports)-1]; learned+dropped > made {
			t.Errorf("max_policy_lag = %d: %v rows learned from and %v dropped of %v", bound, learned, dropped, made)
		}
	}
}

func TestS11MasksActInActing(t *testing.T) {
	o := experiment{script: masked()}.must(t)
	rows, alone := 0, 0
	for _, of := range o.rows(t) {
		for _, r := range of {
			rows++
			if r.mask[r.action] != '1' {
				t.Fatalf("%+v: the action is not legal", r)
			}
			if strings.Count(r.mask, "1") > 1 {
				continue
			}
			if alone++; r.logProb != 0 {
				t.Errorf("%+v: the only legal action has log-probability %v, want 0", r, r.logProb)
			}
		}
	}
	if rows < 500 || alone < 50 {
		t.Errorf("%d rows, %d with one legal action: the test looks at too little", rows, alone)
	}
}

func TestS11MasksActInEntropyAndLoss(t *testing.T) {
	o := experiment{script: fixed(0), sets: []string{"component.learner.entropy_coef=0.1", "component.learner.normalize_advantage=false"}}.must(t)
	for _, name := range []string{"losses/entropy", "losses/approx_kl", "losses/old_approx_kl", "losses/clipfrac", "losses/first_ratio_error"} {
		if err := only(o.reported(name), 0); err != nil {
			t.Errorf("%s with one legal action each: %v, want 0", name, o.reported(name))
		}
	}
	_, before, err := learnerWeights(t, experiment{script: fixed(0), sets: []string{"component.learner.learning_rate=0"}})
	if err != nil {
		t.Fatal(err)
	}
	n, after, err := learnerWeights(t, experiment{script: fixed(0)})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range n.Params() {
		same := slices.Equal(before[p.Offset:p.Offset+p.Rows*p.Cols], after[p.Offset:p.Offset+p.Rows*p.Cols])
		if actor := strings.HasPrefix(p.Name, "actor."); same != actor {
			t.Errorf("%s unchanged: %v; where there is no choice, the critic alone learns", p.Name, same)
		}
	}
}

// learnerWeights returns the network and the parameters at the end of an experiment.
func learnerWeights(t *testing.T, x experiment) (policy.Network, []float32, error) {
	t.Helper()
	n, w, err := learner.Weights(x.must(t).states["learner"])
	return n, w.Params, err
}

// Rows that are not valid are as if they were not there: a padded dataset teaches the same, to the last bit, as the compact one.
func TestS11APaddedBatchIsACompactOne(t *testing.T) {
	o := experiment{script: masked()}.must(t)
	d := o.dataset(2, 1)
	made, err := builtin.DecodePolicy(func(any) error { return nil }, &d.Blocks[0].Schema.Spec)
	if err != nil {
		t.Fatal(err)
	}
	p := made.(*policy.Definition)
	for _, vtrace := range []bool{false, true} {
		c := ppo.Defaults()
		c.Minibatch, c.VTrace = 24, vtrace
		learn := func(d *policy.Dataset) (ppo.Stats, string) {
			l, err := ppo.NewLearner(p.Backend, &p.Network, policy.Init(&p.Network, 1), c)
			if err != nil {
				t.Fatal(err)
			}
			stats, err := l.Update(d, ppo.Rates{LearningRate: 1e-3, Clip: 0.2, Entropy: 0.01})
			if err != nil {
				t.Fatal(err)
			}
			state, err := l.State()
			if err != nil {
				t.Fatal(err)
			}
			stats.Gathered = 0 // V-trace's ratios are computed for padding, too
			return stats, runs.ParamsHash(state.Params, state.AdamM, state.AdamV)
		}
		compact, hash := learn(&policy.Dataset{Blocks: d.Blocks[:1], Seed: 3})
		padding := d.Blocks[1]
		poison(env.Block{Trajectory: trajectory.Trajectory{Mem: padding.Mem[:padding.Schema.Bytes]}})
		clear(padding.Bytes(trajectory.Valid))
		padded, same := learn(&policy.Dataset{Blocks: d.Blocks, Seed: 3})
		if compact != padded || hash != same {
			t.Errorf("vtrace %v: padded, it learns %+v with %.8s; compact %+v with %.8s", vtrace, padded, same, compact, hash)
		}
	}
}

func TestS11NoLegalActionNamesTheEnvironment(t *testing.T) {
	script := masked()
	script.Cue = func(at plugintest.At) plugintest.Cue {
		if at.Env == 6 && at.Calls == 3 {
			return plugintest.NoLegalAction
		}
		return plugintest.Nothing
	}
	o := experiment{script: script, sets: []string{"component.rollout.max_restarts=0"}}.run(t)
	if o.err == nil || !strings.Contains(o.err.Error(), "rollout env 6: output in rl_step at step 3") ||
		!strings.Contains(o.err.Error(), "no legal action") {
		t.Errorf("Run: %v, want it to name environment 6 at step 3", o.err)
	}

	p := &meddler{Plugin: plugintest.New(masked())} // a mask that is taken away after the host has looked at it
	x := experiment{plugin: p}
	x.backend = func(b policy.Backend) policy.Backend {
		return &spy{Backend: b, acted: func(requests []policy.Request) {
			for _, r := range requests {
				if r.FirstEnv == 4 && r.Step == 8 && r.Action != nil {
					takeMask(r.Mask[0], 2)
				}
			}
		}}
	}
	if o := x.run(t); !errors.Is(o.err, policy.ErrNoLegalAction) && !errors.Is(o.err, policy.ErrActionRange) ||
		!strings.Contains(o.err.Error(), "environment 6") {
		t.Errorf("Run: %v, want it to name environment 6", o.err)
	}
}

func takeMask(m trajectory.Matrix, env int) {
	for a := range m.Elems {
		m.Data[env*m.StrideRow+a*m.StrideElem] = 0
	}
}
