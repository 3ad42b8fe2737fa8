package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/evaluation"
)

// Broken is the reason of a run that an error ended.
const Broken component.StopReason = "failed"

// failed notes that the run ended by an error.
func (s *Session) failed(err error) error {
	endErr := s.Folder().End(string(Broken))
	s.tell(Failed{})
	return errors.Join(&Error{Kind: Failure, Err: err}, endErr)
}

// Result is the result of a training.
type Result struct {
	Reason                  component.StopReason
	EnvSteps, PolicyVersion uint64 // learned from, or made where nothing is learned, and published
	CutEnvSteps             uint64 // of the dataset that the end of the run came into: learned from in part, and dropped
	PartialEnvSteps         uint64 // of trajectories that were not full when the run was cut: dropped
	Episodes                uint64
	StoodStill              string  // why the run stood still at its end; empty if it did not
	MeanReturn              float64 // over the window at the last boundary; NaN while that is not full
	ReachedReturn           float64 // over the window when it ended the run; NaN if that did not
	ReachedBy               string  // the policy that does not lead whose rule ended the run; else empty
	ParamsHash              string  // empty if no dataset was learned from
	// ParamsHashes are the hashes of the other learned policies, by their names; nil if there are none.
	ParamsHashes   map[string]string
	Evaluation     *players.Evaluation
	Evaluations    map[string]*players.Evaluation // of the other policies that were learned, likewise
	Saved          bool                           // the state that the run ended in was taken
	SaveErr        error                          // and why it could not be written, or nil
	Took           time.Duration                  // by the training
	EvaluationTook time.Duration                  // by the evaluations after it
}

// Learned reports whether the run, the time before a resume included, has learned anything.
func (r *Result) Learned() bool { return r.EnvSteps > 0 || r.CutEnvSteps > 0 }

// finish evaluates the run's last state. Its result comes with an error of the run's folder.
func (s *Session) finish(ctx context.Context, reason component.StopReason) (*Result, error) {
	p := s.Progress()
	r := &Result{
		Reason: reason, EnvSteps: max(p.EnvSteps, s.before.EnvSteps+s.pipeline.Trained(s.policy.Name)),
		PolicyVersion: max(p.PolicyVersion, s.pipeline.PolicyVersion()), CutEnvSteps: s.count(component.CounterCut), PartialEnvSteps: s.count(component.CounterCutEnvs), Episodes: s.count("runner/episodes"),
		MeanReturn: s.at.MeanReturn, Saved: s.last != nil, SaveErr: s.saveErr,
	}
	if s.learner == "" {
		r.EnvSteps, r.MeanReturn = s.pipeline.Steps().Made, s.gauge(component.GaugeMeanReturn)
	}
	r.ReachedBy, r.ReachedReturn = reached(s)
	r.StoodStill = s.pipeline.StoodStill()
	r.Took = time.Since(s.started)
	if s.last != nil {
		_, weights, err := players.WeightsOf(s.o.Parts, s.last[s.learner])
		if err != nil {
			return nil, s.failed(err)
		}
		r.ParamsHash = runs.ParamsHash(weights.Params)
		if r.ParamsHashes, err = hashesBeside(s, s.last); err != nil {
			return nil, s.failed(err)
		}
		if left := s.pipeline.LeftBehind(); len(left) > 0 {
			s.log.Warn("there is no final evaluation: the environments may take as long there", "components", strings.Join(left, ", "))
		} else if reason != component.StopInterrupted {
			if err := evaluateAll(ctx, s, r); err != nil && ctx.Err() == nil {
				return nil, s.failed(err)
			}
		}
	}
	r.EvaluationTook = time.Since(s.started) - r.Took
	err := s.Folder().Update(func(i *runs.Info) { i.Outcome = r.outcome() })
	return r, errors.Join(err, s.Folder().End(string(reason)))
}

// reached returns the policy that does not lead whose rule ended the run, empty if none did, and the mean return that ended it, NaN if that
// did not.
func reached(s *Session) (policy string, mean float64) {
	for name := range s.Graph().Run.Stop.Policies {
		mean = s.gauge(component.OfPolicy(name, component.GaugeReachedReturn))
		if !math.IsNaN(mean) || !math.IsNaN(s.gauge(component.OfPolicy(name, component.GaugeReachedSteps))) {
			return name, mean
		}
	}
	return "", s.gauge(component.GaugeReachedReturn)
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

// outcome returns the result for run.json.
func (r *Result) outcome() *runs.Outcome {
	o := &runs.Outcome{EnvSteps: r.EnvSteps, PolicyVersion: r.PolicyVersion, WallSeconds: r.Took.Seconds(), ParamsHash: r.ParamsHash, ParamsHashes: r.ParamsHashes}
	if !math.IsNaN(r.MeanReturn) {
		o.MeanReturn = &r.MeanReturn
	}
	if e := r.Evaluation; e != nil {
		o.Return, o.Greedy, o.Sampled = &e.Judged().Return, &e.Greedy.Return, &e.Sampled.Return
	}
	o.Returns = r.Returns()
	return o
}

// Returns are the judged returns of the policies that do not lead, nil if none was evaluated.
func (r *Result) Returns() map[string]float64 {
	if len(r.Evaluations) == 0 {
		return nil
	}
	returns := map[string]float64{}
	for name, e := range r.Evaluations {
		returns[name] = e.Judged().Return
	}
	return returns
}

// evaluateAll plays the frozen evaluations that the file asks for. That of a policy which does not lead may fail.
func evaluateAll(ctx context.Context, s *Session, r *Result) error {
	list, began := leadingFirst(s, s.Graph()), time.Now()
	of := s.Graph().Run.Evaluation
	limit := of.Limit(r.Took)
	for i, x := range list {
		e, err := s.evaluate(ctx, x, began.Add(limit*time.Duration(i+1)/time.Duration(len(list))))
		switch {
		case errors.Is(err, players.ErrNoRound):
			s.log.Warn("a policy is not evaluated", "policy", x.policy.Name, "error", err)
		case x.component == s.learner:
			if r.Evaluation = e; err != nil {
				return err
			}
		case err == nil && e != nil:
			if r.Evaluations == nil {
				r.Evaluations = map[string]*players.Evaluation{}
			}
			r.Evaluations[x.policy.Name] = e
		case err != nil && ctx.Err() == nil:
			s.log.Warn("a policy is not evaluated", "policy", x.policy.Name, "error", err)
		}
	}
	return ctx.Err()
}

// tellEvery is how long an evaluation plays between two lines about how far it is.
const tellEvery = 5 * time.Second

// evaluate plays the evaluation of one policy until a moment at most; nil if it has no state.
func (s *Session) evaluate(ctx context.Context, of learning, until time.Time) (*players.Evaluation, error) {
	if _, saved := s.last[of.component]; !saved {
		return nil, nil
	}
	plugin, err := s.pipeline.Env(of.policy.Env)
	if err != nil {
		return nil, err
	}
	p, err := planOf(s, s.Graph(), s.last, of, plugin)
	if err != nil {
		return nil, err
	}
	var played atomic.Int64
	p.options.Until, p.options.Done = until, func() { played.Add(1) }
	end := s.tellEvaluating(of, &played, 2*p.options.Episodes)
	e, err := players.Evaluate(ctx, plugin, p.player, p.options)
	end()
	if err != nil || e.Cut() {
		return e, err
	}
	p.options.Until, p.options.Done = time.Time{}, nil
	bounded, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	e.Ratings, err = ratingsOf(bounded, s, of.policy, &p.reader, plugin, p.options.Options)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("the versions of the policy are not rated: the time of the evaluation is over", "policy", of.policy.Name, "help", "give it more by run.evaluation.wall_time")
		err = nil
	}
	return e, err
}

// tellEvaluating reports the progress of an evaluation, now and then, until end is called.
func (s *Session) tellEvaluating(of learning, played *atomic.Int64, all int) (end func()) {
	over := make(chan struct{})
	var told sync.WaitGroup
	told.Go(func() {
		tick := time.NewTicker(tellEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.tell(Evaluating{Policy: of.policy.Name, Played: int(played.Load()), Episodes: all})
			case <-over:
				return
			}
		}
	})
	return func() {
		close(over)
		told.Wait()
	}
}

// plan is the evaluation of a policy with its learner's saved state.
type plan struct {
	player  players.Player
	options players.EvaluationOptions
	reader  players.Reader
}

func planOf(s *Session, g *graph.Graph, states map[string]component.State, of learning, plugin env.Plugin) (p plan, err error) {
	network, weights, err := players.WeightsOf(s.o.Parts, states[of.component])
	if err != nil {
		return p, err
	}
	d, err := definitionOf(s, of.policy.Name)
	if err != nil {
		return p, err
	}
	p.player = players.Player{Definition: &policy.Definition{Network: network, Backend: d.Backend}, Weights: weights}
	p.options = players.EvaluationOf(g, uint64(s.gauge(component.GaugeLongestEpisode)), states)
	p.reader = players.Reader{Parts: s.o.Parts, Graph: g, States: states, Spec: plugin.Spec()}
	p.options.Beside, err = p.reader.Beside(of.policy)
	return p, err
}

// ratingsOf rates the versions of a policy in matches with sampled actions; nil where it has no pool, or none could be played.
func ratingsOf(ctx context.Context, s *Session, p *graph.Policy, r *players.Reader, plugin env.Plugin, o evaluation.Options) (*players.Ratings, error) {
	if r.Spec.Agents() < 2 || len(r.Spec.Groups) > 1 || !players.Pooled(r.Graph, p.Name) {
		return nil, nil
	}
	o.Greedy = false
	ratings, err := r.Rate(ctx, p, plugin, o)
	if err != nil && ctx.Err() == nil { // the training is valid
		s.log.Warn("the versions of the policy are not rated", "policy", p.Name, "error", err)
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

// WhatIsSaved describes the newest checkpoint of a run.
func WhatIsSaved(run *runs.Run) string {
	latest, err := run.Load(runs.Latest)
	if err != nil {
		return "it has no checkpoint yet"
	}
	return fmt.Sprintf("it was saved at %d env steps: rlhost train --resume %s", latest.EnvSteps, run.ID())
}
