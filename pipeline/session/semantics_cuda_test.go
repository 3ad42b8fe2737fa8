package session_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/gpu/cuda"
	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/fake"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
)

// onCUDA returns the backend of GPUs, over a driver in Go that executes its kernels.
func onCUDA(t *testing.T) func(policy.Backend) policy.Backend {
	t.Helper()
	if testing.Short() {
		t.Skip("the race detector makes minutes of the interpreter's seconds")
	}
	d := fake.New(fake.Options{Seed: 1})
	b := cuda.New(cuda.Options{Driver: func() (*driver.Table, error) { return driver.Bind(d.Lookup) }})
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(policy.Backend) policy.Backend { return b }
}

// slowly skips a test that takes seconds over the interpreter; make test-kernels runs it.
func slowly(t *testing.T) {
	t.Helper()
	if os.Getenv("RLHOST_LONG") == "" {
		t.Skip("RLHOST_LONG is not set")
	}
}

// Rows and parameters do not depend on how environments are spread over rollouts, splits and batches of the GPU.
func TestS1OnCUDATrajectoriesDoNotDependOnHowEnvironmentsAreSpread(t *testing.T) {
	slowly(t)
	x := experiment{script: masked(), sets: []string{limitOf(2)}, backend: onCUDA(t)}
	want := x.must(t)
	for _, sets := range [][]string{{"component.rollout.splits=8"}, {"component.rollout.count=2", "component.rollout.envs=4", "component.inference.max_rows=3"}} {
		y := x
		y.sets = append(slices.Clone(x.sets), sets...)
		got := y.must(t)
		sameRows(t, fmt.Sprint(sets), got.rows(t), want.rows(t))
		if !slices.Equal(got.hashes, want.hashes) {
			t.Errorf("%v: parameters after each dataset are %.8s, want %.8s", sets, got.hashes, want.hashes)
		}
	}
}

// The first ratio is 1 to the last bit: with masks and normalised observations, with a core, and with actions of every kind, of a Box
// and of choices alone and together, whatever batches they were drawn in.
func TestS6OnCUDATheFirstRatioIsExactlyOne(t *testing.T) {
	choices := bandit{[]policy.Dist{{MultiCategorical: &head.MultiCategorical{Counts: []int{2, 4, 3}}}}}
	fiveRows := "component.inference.max_rows=5"
	for name, x := range map[string]experiment{
		"normalised":    {script: masked(), sets: []string{limitOf(3), "policy.main.normalize_obs=true", fiveRows}},
		"with a GRU":    {script: masked(), sets: []string{limitOf(3), core("gru", 4)}},
		"Box":           {plugin: within(-2, 2), sets: []string{fiveRows}},
		"squashed Box":  {plugin: within(-2, 2), sets: []string{"policy.main.action.squash=tanh", fiveRows}},
		"MultiDiscrete": {plugin: choices, sets: []string{fiveRows}},
		"every kind":    {plugin: several()},
	} {
		t.Run(name, func(t *testing.T) {
			x.backend = onCUDA(t)
			o := x.must(t)
			for _, column := range []string{"losses/first_ratio_error", "losses/first_clipfrac"} {
				if err := only(o.reported(column), 0); err != nil {
					t.Errorf("%s %v: %v", column, o.reported(column), err)
				}
			}
		})
	}
}

// A run that is interrupted and resumed learns the same as an unbroken one, in every bit.
func TestS13OnCUDAResumeIsExact(t *testing.T) {
	x := experiment{script: masked(), sets: []string{"policy.main.normalize_obs=true"}, backend: onCUDA(t)}
	brokenRun(t, x, x, x)
}

func TestS16OnCUDAAnExactResumeKeepsItsStreams(t *testing.T) {
	slowly(t)
	keepsItsStreams(t, onCUDA(t))
}

func TestS16OnCUDAAResumeDrawsFromStreamsOfItsOwn(t *testing.T) {
	drawsAnew(t, "async", 2, onCUDA(t))
}
