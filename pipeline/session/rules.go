package session

import (
	"math"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// rules say how a change is made: from the request, else from [swap] of the pipeline.
type rules struct {
	at         component.Boundary
	keepState  bool
	trialEnvs  int     // environments of the trial; 0 = none
	trialSteps int     // most env steps of each
	slower     float64 // refuse a version slower by more; 0 = do not
	train      bool
	probation  time.Duration
	dryRun     bool
	force      time.Duration // after which an instance that does not pause is removed as it is; 0 = never
	check      bool          // new environments
	brief      bool          // with short checks, the others afterwards
}

// maxTrial bounds the environments of a trial.
const maxTrial = 4096

// swapRules are the rules of a request, with the pipeline's where it says nothing.
func swapRules(g *graph.Graph, q *control.SwapRequest) (rules, error) {
	r := rulesOf(g)
	r.dryRun, r.train, r.check, r.force = q.DryRun, q.TrialLive, true, forceAfter(q.Force, q.At)
	if err := r.set(q.At, q.KeepState); err != nil {
		return r, err
	}
	if q.TrialEnvs != nil {
		r.trialEnvs = *q.TrialEnvs
	}
	if q.TrialSteps != nil {
		r.trialSteps = *q.TrialSteps
	}
	if q.Probation != nil {
		if !(*q.Probation >= 0 && *q.Probation < math.MaxInt32) {
			return r, bad("a probation of %g s: want 0 or more", *q.Probation)
		}
		r.probation = time.Duration(*q.Probation * float64(time.Second))
	}
	switch {
	case r.trialEnvs < 0 || r.trialEnvs > maxTrial:
		return r, bad("a trial of %d environments: want 0 to %d", r.trialEnvs, maxTrial)
	case r.trialSteps < 1:
		return r, bad("a trial of %d env steps: want 1 or more", r.trialSteps)
	case r.train && r.trialEnvs == 0:
		return r, bad("a live trial needs environments: --trial-envs N")
	}
	return r, nil
}

// rulesOf are the rules of a pipeline's [swap].
func rulesOf(g *graph.Graph) rules {
	s := g.Swap
	return rules{at: s.At, keepState: s.KeepState, trialEnvs: s.TrialEnvs, trialSteps: s.TrialSteps, slower: s.Slower, probation: s.Probation}
}

// longestForced is how long a forced change waits for each component to pause, and longestNow how long an immediate one does.
const (
	longestForced = 10 * time.Second
	longestNow    = 2 * time.Second
)

// forceAfter returns after what time a request removes an instance that does not pause; 0 is never.
func forceAfter(force bool, at string) time.Duration {
	switch {
	case at == component.AtNow.String():
		return longestNow
	case force:
		return longestForced
	}
	return 0
}

func (r *rules) set(at string, keepState *bool) error {
	if at != "" {
		b, err := component.ParseBoundary(at)
		if err != nil {
			return bad("%v", err)
		}
		r.at = b
	}
	if keepState != nil {
		r.keepState = *keepState
	}
	return nil
}
