package session_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/learner"
)

const swappedFile = `rlhost = 1
[run]
name = "swapped"
[env.cartpole]
use = "cartpole@1"
[train]
preset = "fast"
mode = "sync"
[component.learner]
lr_anneal_env_steps = 500_000
`

// hashesOf trains and returns the hash of the parameters after each dataset. change is called during the run.
func hashesOf(t *testing.T, steps int, change func(p *pipeline.Pipeline, parts *graph.Parts)) (hashes []string) {
	t.Helper()
	parts, engines := builtin.New(builtin.Options{})
	g, problems := graphtest.Parse("swapped.toml", []byte(swappedFile), graph.ParseOptions{
		Parts: parts, Sets: []string{fmt.Sprintf("run.stop.env_steps=%d", steps)},
	})
	if g == nil {
		t.Fatalf("Parse:\n%s", problems)
	}
	o := pipeline.BuildOptions{Parts: parts}
	var final error
	o.AtBoundary = func(snapshot func() (map[string]component.State, error)) error {
		states, missing := snapshot() // rollouts on their way from one version to another cannot be saved
		final = missing
		_, w, err := learner.Weights(states["learner"])
		hashes = append(hashes, runs.ParamsHash(w.Params))
		return err
	}
	p, err := pipeline.Build(t.Context(), g, o)
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		change(p, parts)
	}()
	_, err = p.Run(t.Context())
	<-left
	if final != nil {
		t.Errorf("the last boundary cannot be saved: %v", final)
	}
	if err := errors.Join(err, p.Close(), engines.Close()); err != nil {
		t.Error(err)
	}
	return hashes
}

// A component whose new settings make no difference continues where its predecessor was: with its state and its
// pending messages. So not a bit of the learning differs.
func TestS2SuccessorsContinueTheirPredecessorsWork(t *testing.T) {
	// A change that is under way when the rule is fulfilled lets the run continue for a dataset.
	want := hashesOf(t, 200_000, func(*pipeline.Pipeline, *graph.Parts) {})
	for _, key := range []string{
		"component.inference.max_rows=100%d", "component.batcher.max_policy_lag=%d",
		"component.learner.rho_bar=%d", // no matter without V-trace
		"component.rollout.max_restarts=%d", "component.runner.every=%ds",
	} {
		t.Run(key, func(t *testing.T) {
			replaced := 0
			got := hashesOf(t, 80_000, func(p *pipeline.Pipeline, parts *graph.Parts) {
				for i := 1; t.Context().Err() == nil; i++ {
					n, err := replaceOne(t, p, parts, fmt.Sprintf(key, 3+i%2))
					if replaced += n; errors.Is(err, pipeline.ErrEnded) {
						return
					}
					if err != nil {
						t.Error(err)
						p.Stop(component.StopInterrupted)
						return
					}
				}
			})
			t.Logf("%d replaced, %d boundaries seen", replaced, len(got))
			if replaced == 0 || len(got) < 3 {
				t.Errorf("%d replaced, %d boundaries seen: the test looks at too little", replaced, len(got))
			}
			left := want
			for i, hash := range got { // boundaries that fall into a change are not seen
				at := slices.Index(left, hash)
				if at < 0 {
					t.Fatalf("at boundary %d of those seen the parameters are none of those without changes", i+1)
				}
				left = left[at+1:]
			}
		})
	}
}

// replaceOne replaces the components that an override changes, between two boundaries.
func replaceOne(t *testing.T, p *pipeline.Pipeline, parts *graph.Parts, set string) (replaced int, err error) {
	if err := p.AtNextBoundary(t.Context(), func(pipeline.Snapshot) error { return nil }); err != nil {
		return 0, err
	}
	g, problems := graphtest.With(p.Graph(), []string{set}, parts)
	if g == nil {
		return 0, problems
	}
	x, err := p.Prepare(t.Context(), g, pipeline.TransitionOptions{})
	if err != nil {
		return 0, err
	}
	o, err := x.Commit(t.Context())
	return len(o.Replaced), err
}
