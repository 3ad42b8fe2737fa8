package session

import (
	"context"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// Metrics of evaluations while the run goes on. The gauges are of the newest one.
const (
	evalReturn   = "eval/episodic_return" // mean, of the way of acting that is judged
	evalStd      = "eval/return_std"
	evalLength   = "eval/episodic_length"
	evalElo      = "eval/elo"         // of a policy with a pool, against the versions that the run has; NaN where none could be played
	evalStep     = "eval/global_step" // at which its policy had been learned
	evalVersion  = "eval/policy_version"
	evalCount    = "eval/evaluations"
	evalSkipped  = "eval/skipped" // were due while another was still being played
	evalFailures = "eval/failures"
)

// evaluator plays the policy while the run goes on, as run.evaluation.every asks: at a dataset boundary it takes the state
// that a checkpoint would hold, and plays what is in it on a goroutine, environments and an actor of its own, as fast as its
// share of a processor allows. Nothing of the run reads what it does, but for the choice of the best checkpoint.
type evaluator struct {
	s      *Session
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup
	busy   atomic.Bool // an evaluation is under way
	next   uint64      // env steps from which one is due; of the learner's loop

	// Of the evaluation under way.
	plugin env.Plugin     // nil before there was one
	table  graph.EnvTable // that the plugin was loaded from

	done, skipped, failures *stat.Counter
}

func newEvaluator(s *Session) *evaluator {
	e := &evaluator{s: s}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	stats := s.pipeline.Stats()
	e.done, e.skipped, e.failures = stats.Counter(evalCount), stats.Counter(evalSkipped), stats.Counter(evalFailures)
	e.schedule(s.before.EnvSteps)
	return e
}

// schedule makes the next evaluation due at the next multiple of the period.
func (e *evaluator) schedule(envSteps uint64) {
	if every := uint64(e.s.Graph().Run.Evaluation.Every); every > 0 {
		e.next = envSteps - envSteps%every + every
	}
}

// boundary begins an evaluation if one is due and none is under way, unless the run comes to its end, which would drop it.
// It runs on the loop of a learner.
func (e *evaluator) boundary(snapshot pipeline.Snapshot) error {
	if e.s.Graph().Run.Evaluation.Every == 0 || e.s.pipeline.Stopping() != "" {
		return nil
	}
	if e.s.before.EnvSteps+e.s.pipeline.Trained(e.s.policy.Name) < e.next {
		return nil
	}
	if e.busy.Swap(true) {
		e.schedule(e.next)
		e.skipped.Inc()
		return nil
	}
	c, err := take(e.s, snapshot)
	if err != nil {
		e.busy.Store(false)
		return err
	}
	c.Components = maps.Clone(c.Components) // a checkpoint may hold them too
	for name, state := range c.Components {
		if c.Components[name], err = state.Frozen(); err != nil {
			e.busy.Store(false)
			return err
		}
	}
	e.schedule(c.EnvSteps)
	g := e.s.Graph() // that the states are of
	e.all.Go(func() {
		defer e.busy.Store(false)
		e.evaluate(g, c)
	})
	return nil
}

// evaluate plays the policy of a checkpoint, and keeps it if it is the best so far.
func (e *evaluator) evaluate(g *graph.Graph, c runs.Checkpoint) {
	p, ratings, err := e.play(g, &c)
	if e.ctx.Err() != nil {
		return
	}
	if err != nil {
		e.failures.Inc()
		e.s.log.Warn("an evaluation failed, training goes on", "env_steps", c.EnvSteps, "policy_version", c.PolicyVersion, "error", err)
		return
	}
	stats := e.s.pipeline.Stats()
	for name, v := range map[string]float64{
		evalReturn: p.Return, evalStd: p.Std, evalLength: p.Length, evalStep: float64(c.EnvSteps), evalVersion: float64(c.PolicyVersion),
	} {
		stats.Gauge(name).Set(v)
	}
	if players.Pooled(g, e.s.policy.Name) {
		stats.Gauge(evalElo).Set(ratings.Elo())
	}
	e.done.Inc()
	c.MeanReturn = p.Return
	if err := e.s.run.SaveEvaluated(c); err != nil {
		e.s.log.Error("training goes on without this checkpoint", "error", err)
	}
	e.s.tell(Evaluated{EnvSteps: c.EnvSteps, PolicyVersion: c.PolicyVersion, Played: p, Deterministic: g.Run.Evaluation.Deterministic,
		Ratings: ratings})
}

// play plays the episodes in the way that is judged, and the matches that rate a policy with a pool; the ratings are nil where there are
// none.
func (e *evaluator) play(g *graph.Graph, c *runs.Checkpoint) (p Played, ratings *players.Ratings, err error) {
	network, weights, err := players.WeightsOf(e.s.o.Parts, c.Components[e.s.learner])
	if err != nil {
		return p, nil, err
	}
	if err := e.load(g); err != nil {
		return p, nil, err
	}
	o := EvaluationOf(g, uint64(e.s.gauge(component.GaugeLongestEpisode))).Options
	o.Plugin, o.Greedy, o.Share = e.plugin, g.Run.Evaluation.Deterministic, g.Run.Evaluation.Share
	r := players.Reader{Parts: e.s.o.Parts, Graph: g, States: c.Components, Spec: e.plugin.Spec()}
	beside, err := r.Beside(e.s.policy)
	if err != nil {
		return p, nil, err
	}
	d := &policy.Definition{Network: network, Backend: e.s.definition().Backend}
	if p, err = playOnce(e.ctx, players.Player{Definition: d, Weights: weights}, beside, o); err != nil {
		return p, nil, err
	}
	ratings, err = ratingsOf(e.ctx, e.s, &r, e.plugin, o)
	return p, ratings, err
}

// load loads the environment for evaluations alone: that of the run may be replaced at any moment.
func (e *evaluator) load(g *graph.Graph) error {
	of := g.Env(e.s.policy.Env)
	if e.plugin != nil && reflect.DeepEqual(e.table, of.Table) {
		return nil
	}
	plugin, err := e.s.o.Parts.Load(e.ctx, of.Name, of.Table, g.Dir)
	if err != nil {
		return err
	}
	if e.plugin != nil {
		err = e.plugin.Close()
	}
	e.plugin, e.table = plugin, of.Table
	return err
}

// stop ends an evaluation under way, which then counts for nothing.
func (e *evaluator) stop() error {
	e.cancel()
	e.all.Wait()
	if e.plugin == nil {
		return nil
	}
	plugin := e.plugin
	e.plugin = nil
	return plugin.Close()
}
