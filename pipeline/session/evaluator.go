package session

import (
	"context"
	"errors"
	"maps"
	"math"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// Metrics of evaluations during the run. The gauges are of the newest one; a policy that does not lead has its name in front.
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

// evaluator plays the learned policies during the run, as run.evaluation.every_env_steps asks: at a dataset boundary it takes the state that a
// checkpoint would hold, and plays its policies one after the other, on a separate goroutine with separate environments and actors, as fast
// as its share of a processor allows. The run uses its results only to choose the best checkpoints.
type evaluator struct {
	s      *Session
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup
	busy   atomic.Bool // an evaluation is under way
	next   uint64      // env steps from which one is due; of the learner's loop
	video  uint64      // env steps from which a video is due; the same

	envs map[string]*evaluatedEnv // of the evaluation under way, by name

	done, skipped, failures *stat.Counter
}

// evaluatedEnv is an environment that evaluations have loaded for themselves.
type evaluatedEnv struct {
	plugin env.Plugin
	table  graph.EnvTable // that it was loaded from
}

func newEvaluator(s *Session) *evaluator {
	e := &evaluator{s: s, envs: map[string]*evaluatedEnv{}}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	stats := s.pipeline.Stats()
	e.done, e.skipped, e.failures = stats.Counter(evalCount), stats.Counter(evalSkipped), stats.Counter(evalFailures)
	period := s.Graph().Run.Evaluation
	e.next, e.video = after(s.before.EnvSteps, period.EveryEnvSteps), after(s.before.EnvSteps, period.VideoEveryEnvSteps)
	return e
}

// after returns the next multiple of a period.
func after(envSteps uint64, every int) uint64 {
	return envSteps - envSteps%uint64(max(every, 1)) + uint64(every)
}

// boundary begins an evaluation if one is due and none is under way, unless the run comes to its end, which would drop it. A video is
// made in the same way, but one that is due meanwhile is made later. It runs on the loop of a learner.
func (e *evaluator) boundary(snapshot pipeline.Snapshot) error {
	period, made := e.s.Graph().Run.Evaluation, e.s.before.EnvSteps+e.s.pipeline.Trained(e.s.policy.Name)
	judges := period.EveryEnvSteps > 0 && made >= e.next
	films := period.VideoEveryEnvSteps > 0 && made >= e.video
	if !judges && !films || e.s.pipeline.Stopping() != "" {
		return nil
	}
	if e.busy.Swap(true) {
		if judges {
			e.next = after(e.next, period.EveryEnvSteps)
			e.skipped.Inc()
		}
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
	g := e.s.Graph() // that the states are of
	if judges {
		e.next = after(c.EnvSteps, period.EveryEnvSteps)
	}
	if films {
		e.video = after(c.EnvSteps, period.VideoEveryEnvSteps)
	}
	e.all.Go(func() {
		defer e.busy.Store(false)
		if judges {
			e.evaluate(g, c)
		}
		if films {
			e.film(g, &c)
		}
	})
	return nil
}

// evaluate plays the policies of a checkpoint, and keeps it if it is the best so far of one of them.
func (e *evaluator) evaluate(g *graph.Graph, c runs.Checkpoint) {
	c.MeanReturn, c.MeanReturns = math.NaN(), map[string]float64{}
	failed := false
	for _, x := range leadingFirst(e.s, g) {
		told, err := e.play(g, &c, x)
		if e.ctx.Err() != nil {
			return
		}
		if err != nil {
			failed = true
			e.s.log.Warn("an evaluation failed, training goes on", "policy", x.policy.Name, "env_steps", c.EnvSteps, "policy_version", c.PolicyVersion, "error", err)
			continue
		}
		if e.publish(g, told); told.Leads {
			c.MeanReturn = told.Return
		} else {
			c.MeanReturns[told.Policy] = told.Return
		}
		e.s.tell(*told)
	}
	if failed {
		e.failures.Inc()
	} else {
		e.done.Inc()
	}
	if err := e.s.Folder().SaveEvaluated(c); err != nil {
		e.s.log.Error("training goes on without this checkpoint", "error", err)
	}
}

// publish writes the results of an evaluation to the metrics.
func (e *evaluator) publish(g *graph.Graph, x *Evaluated) {
	set := func(name string, v float64) {
		if !x.Leads {
			name = component.OfPolicy(x.Policy, name)
		}
		e.s.pipeline.Stats().Gauge(name).Set(v)
	}
	set(evalReturn, x.Return)
	set(evalStd, x.Std)
	set(evalLength, x.Length)
	set(evalStep, float64(x.EnvSteps))
	set(evalVersion, float64(x.PolicyVersion))
	if players.Pooled(g, x.Policy) {
		set(evalElo, x.Ratings.Elo())
	}
}

// play plays the episodes of one policy in the way that is judged, and the matches that rate one with a pool.
func (e *evaluator) play(g *graph.Graph, c *runs.Checkpoint, of learning) (*Evaluated, error) {
	plugin, err := e.load(g, of.policy.Env)
	if err != nil {
		return nil, err
	}
	p, err := planOf(e.s, g, c.Components, of, plugin)
	if err != nil {
		return nil, err
	}
	x := &Evaluated{Policy: of.policy.Name, Leads: of.component == e.s.learner, Greedy: p.options.JudgesGreedy}
	if x.PolicyVersion, x.EnvSteps, err = progressOf(e.s.o.Parts, c.Components[of.component]); err != nil {
		return nil, err
	}
	o := p.options.Options
	o.Plugin, o.Greedy, o.Share = plugin, x.Greedy, g.Run.Evaluation.Share
	if x.Played, err = players.Play(e.ctx, p.player, p.options.Beside, o); err != nil {
		return nil, err
	}
	x.Ratings, err = ratingsOf(e.ctx, e.s, of.policy, &p.reader, plugin, o)
	return x, err
}

// load loads an environment for evaluations alone: that of the run may be replaced at any moment.
func (e *evaluator) load(g *graph.Graph, name string) (env.Plugin, error) {
	of, had := g.Env(name), e.envs[name]
	if had != nil && reflect.DeepEqual(had.table, of.Table) {
		return had.plugin, nil
	}
	plugin, err := e.s.o.Parts.Load(e.ctx, of.Name, of.Table, g.Dir)
	if err != nil {
		return nil, err
	}
	e.envs[name] = &evaluatedEnv{plugin, of.Table}
	if had != nil {
		err = had.plugin.Close()
	}
	return plugin, err
}

// stop ends an evaluation under way, which then counts for nothing.
func (e *evaluator) stop() (err error) {
	e.cancel()
	e.all.Wait()
	for _, x := range e.envs {
		err = errors.Join(err, x.plugin.Close())
	}
	clear(e.envs)
	return err
}
