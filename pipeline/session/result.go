package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/evaluation"
)

// Broken is the reason of a run that an error ended.
const Broken component.StopReason = "failed"

// failed notes that the run ended by an error.
func (s *Session) failed(err error) error {
	endErr := s.run.End(string(Broken))
	s.tell(Failed{})
	return errors.Join(&Error{Kind: Failure, Err: err}, endErr)
}

// Result is what a training came to.
type Result struct {
	Reason                  component.StopReason
	EnvSteps, PolicyVersion uint64 // at the last boundary that was looked at
	Episodes                uint64
	MeanReturn              float64 // over the window at the last boundary; NaN while that is not full
	ReachedReturn           float64 // over the window when it ended the run; NaN if that did not
	ParamsHash              string  // empty if no dataset was learned from
	// ParamsHashes are those of the other policies that were learned, by their names; nil if there are none.
	ParamsHashes map[string]string
	Evaluation   *Evaluation
	Saved        bool  // the state that the run ended in was taken
	SaveErr      error // and why it could not be written, or nil
	Took         time.Duration
}

// finish evaluates what the run ended with. Its result comes with an error of the run's folder.
func (s *Session) finish(ctx context.Context, reason component.StopReason) (*Result, error) {
	p := s.Progress()
	r := &Result{
		Reason: reason, EnvSteps: p.EnvSteps, PolicyVersion: p.PolicyVersion, Episodes: s.count("runner/episodes"),
		MeanReturn: s.at.MeanReturn, ReachedReturn: math.NaN(), Saved: s.last != nil, SaveErr: s.saveErr,
	}
	if reason == component.StopReturn {
		r.ReachedReturn = s.gauge(component.GaugeReachedReturn)
	}
	if s.last != nil {
		_, weights, err := players.WeightsOf(s.o.Parts, s.last[s.learner])
		if err != nil {
			return nil, s.failed(err)
		}
		r.ParamsHash = runs.ParamsHash(weights.Params)
		if r.ParamsHashes, err = hashesBeside(s, s.last); err != nil {
			return nil, s.failed(err)
		}
		if reason != component.StopInterrupted {
			if r.Evaluation, err = s.evaluate(ctx, weights); err != nil && ctx.Err() == nil {
				return nil, s.failed(err)
			}
		}
	}
	r.Took = time.Since(s.started)
	err := s.run.Update(func(i *runs.Info) { i.Outcome = r.outcome() })
	return r, errors.Join(err, s.run.End(string(reason)))
}

// hashesBeside returns the hashes of the parameters of the policies that do not lead, nil if there are none.
func hashesBeside(s *Session, states map[string]component.State) (hashes map[string]string, err error) {
	for _, x := range learnings(s.Graph()) {
		state, saved := states[x.component]
		if !saved || x.component == s.learner {
			continue
		}
		_, weights, err := players.WeightsOf(s.o.Parts, state)
		if err != nil {
			return nil, fmt.Errorf("policy %q: %w", x.policy.Name, err)
		}
		if hashes == nil {
			hashes = map[string]string{}
		}
		hashes[x.policy.Name] = runs.ParamsHash(weights.Params)
	}
	return hashes, nil
}

// outcome is what run.json says of the result.
func (r *Result) outcome() *runs.Outcome {
	o := &runs.Outcome{EnvSteps: r.EnvSteps, PolicyVersion: r.PolicyVersion, WallSeconds: r.Took.Seconds(), ParamsHash: r.ParamsHash, ParamsHashes: r.ParamsHashes}
	if !math.IsNaN(r.MeanReturn) {
		o.MeanReturn = &r.MeanReturn
	}
	if e := r.Evaluation; e != nil {
		o.Return, o.Greedy, o.Sampled = &e.Judged().Return, &e.Greedy.Return, &e.Sampled.Return
	}
	return o
}

// evaluate plays the frozen evaluation that the file asks for.
func (s *Session) evaluate(ctx context.Context, w policy.Weights) (*Evaluation, error) {
	plugin, err := s.pipeline.Env(s.policy.Env)
	if err != nil {
		return nil, err
	}
	o := EvaluationOf(s.Graph(), uint64(s.gauge(component.GaugeLongestEpisode)))
	r := players.Reader{Parts: s.o.Parts, Graph: s.Graph(), States: s.last, Spec: plugin.Spec()}
	if o.Beside, err = r.Beside(s.policy); err != nil {
		return nil, err
	}
	e, err := Evaluate(ctx, plugin, s.definition(), w, o)
	if err == nil {
		e.Ratings, err = ratingsOf(ctx, s, &r, plugin, o.Options)
	}
	return e, err
}

// ratingsOf rates the versions of the leading policy in matches with sampled actions; nil where it has no pool, or none could be played.
func ratingsOf(ctx context.Context, s *Session, r *players.Reader, plugin env.Plugin, o evaluation.Options) (*players.Ratings, error) {
	if r.Spec.Agents() < 2 || len(r.Spec.Groups) > 1 || !players.Pooled(r.Graph, s.policy.Name) {
		return nil, nil
	}
	o.Greedy = false
	ratings, err := r.Rate(ctx, s.policy, plugin, o)
	if err != nil && ctx.Err() == nil { // what was trained stands
		s.log.Warn("the versions of the policy are not rated", "policy", s.policy.Name, "error", err)
	}
	return ratings, ctx.Err()
}

// count returns a counter of the run.
func (s *Session) count(name string) uint64 { return s.pipeline.Stats().Counter(name).Value() }

// gauge returns a gauge of the run, NaN if there is none of that name.
func (s *Session) gauge(name string) float64 {
	for _, x := range s.pipeline.Stats().Snapshot() {
		if x.Name == name {
			return x.Value
		}
	}
	return math.NaN()
}

// WhatIsSaved tells the newest checkpoint of a run.
func WhatIsSaved(run *runs.Run) string {
	latest, err := run.Load(runs.Latest)
	if err != nil {
		return "it has no checkpoint yet"
	}
	return fmt.Sprintf("it was saved at %d env steps: rlhost train --resume %s", latest.EnvSteps, run.ID())
}
