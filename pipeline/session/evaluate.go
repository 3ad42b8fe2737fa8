package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/play"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/evaluation"
)

// RunEvaluation says how a checkpoint of a run is evaluated: as in the run's own pipeline, except for the fields set here.
type RunEvaluation struct {
	Parts    *graph.Parts
	Sets     []string // keys of the run's pipeline that are changed, KEY=VALUE: another environment with the same spaces, say
	Policy   string   // empty: the leading one
	Episodes int
	Seed     uint64
	MaxSteps uint64 // 0: the pipeline's
	Greedy   *bool  // judge greedy or sampled actions; nil: the pipeline's
	Log      *slog.Logger
}

// evaluated is a policy of a checkpoint, and everything needed to play it. Its opener closes the plugin.
type evaluated struct {
	players.Reader
	policy  *graph.Policy
	learner component.State
	plugin  env.Plugin
	player  players.Player
	options players.EvaluationOptions
}

// openEvaluated loads the environment that a run was trained in. A warning is logged if that has changed since; if it cannot be
// loaded, the error is of kind Plugin.
func openEvaluated(ctx context.Context, run *runs.Run, c *runs.Checkpoint, o *RunEvaluation) (x *evaluated, err error) {
	g, err := ownPipeline(run, o.Sets, o.Parts)
	if err != nil {
		return nil, err
	}
	x = &evaluated{}
	trained, learner, err := learned(g, o.Policy)
	if err != nil {
		return nil, err
	}
	longest, err := longestEpisode(g, o.Parts, c.Components)
	if err != nil {
		return nil, err
	}
	if x.player, x.plugin, err = define(ctx, o.Parts, g, trained); err != nil {
		return nil, err
	}
	for _, name := range changedSince(run.Info(), map[string]string{g.Env(trained.Env).Table.Use: x.plugin.Hash()}) {
		o.Log.Warn("changed since the run began: " + name)
	}
	x.Reader = players.Reader{Parts: o.Parts, Graph: g, States: c.Components, Spec: x.plugin.Spec()}
	x.policy, x.learner, x.options = trained, c.Components[learner], o.options(g, longest, c.Components)
	return x, nil
}

// EvaluateRun evaluates a checkpoint in the environment that its run was trained on. A warning is logged if that has changed
// since; if it cannot be loaded, the error is of kind Plugin.
func EvaluateRun(ctx context.Context, run *runs.Run, c *runs.Checkpoint, o RunEvaluation) (e *players.Evaluation, err error) {
	x, err := openEvaluated(ctx, run, c, &o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.plugin.Close()) }()
	asked := x.player.Network // of the environment that is there now
	if x.player.Network, x.player.Weights, err = players.WeightsOf(o.Parts, x.learner); err != nil {
		return nil, err
	}
	if err := x.fits(&asked); err != nil {
		return nil, err
	}
	version, envSteps, err := progressOf(o.Parts, x.learner)
	if err != nil {
		return nil, err
	}
	if x.options.Beside, err = x.Beside(x.policy); err != nil {
		return nil, err
	}
	if e, err = players.Evaluate(ctx, x.plugin, x.player, x.options); err != nil {
		return nil, err
	}
	e.Policy, e.PolicyVersion, e.EnvSteps = x.policy.Name, version, envSteps
	return e, nil
}

// fits refuses an environment with other spaces than the policy's network has.
func (x *evaluated) fits(asked *policy.Network) error {
	trained := &x.player.Network
	if asked.Obs() == trained.Obs() && fmt.Sprint(asked.Dists()) == fmt.Sprint(trained.Dists()) {
		return nil
	}
	return &Error{Kind: Usage, Err: fmt.Errorf("env %s: %s has obs %s and act %s: policy %q reads %d numbers and acts by %v\n  help: --set an environment with the spaces of the run's own",
		x.policy.Env, x.Spec.Name, x.Spec.Spaces(hostabi.RoleObservation), x.Spec.Spaces(hostabi.RoleAction), x.policy.Name, trained.Obs(), trained.Dists())}
}

// Seat returns a policy of a checkpoint that acts on its caller's observations, as it is judged: with its most probable actions, or with
// sampled ones. The environment that it was trained in is loaded for its spaces, and closed.
func Seat(ctx context.Context, run *runs.Run, c *runs.Checkpoint, o RunEvaluation) (*evaluation.Seat, error) {
	x, err := openEvaluated(ctx, run, c, &o)
	if err != nil {
		return nil, err
	}
	if x.player.Network, x.player.Weights, err = players.WeightsOf(o.Parts, x.learner); err != nil {
		return nil, errors.Join(err, x.plugin.Close())
	}
	if err := x.plugin.Close(); err != nil {
		return nil, err
	}
	acting, _, err := players.ActAll([]players.Player{x.player}, 1)
	if err != nil {
		return nil, err
	}
	return evaluation.NewSeat(acting[0], x.Spec, o.Seed, x.options.JudgesGreedy)
}

// RateRun rates the versions of a policy that a checkpoint of a run has, in matches of the episodes that EvaluateRun would play. Actions
// are sampled unless Greedy says otherwise: two policies that always do the same play the same game again and again.
func RateRun(ctx context.Context, run *runs.Run, c *runs.Checkpoint, o RunEvaluation) (ratings *players.Ratings, err error) {
	x, err := openEvaluated(ctx, run, c, &o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.plugin.Close()) }()
	options := x.options.Options
	options.Greedy = o.Greedy != nil && *o.Greedy
	ratings, err = x.Rate(ctx, x.policy, x.plugin, options)
	var coded *table.Error
	if errors.As(err, &coded) && coded.Code == players.CodeUnrated {
		return nil, &Error{Kind: Usage, Err: fmt.Errorf("error[%s]: %w\n  help: %s", coded.Code, err, coded.Help)}
	}
	return ratings, err
}

// define returns a policy of a graph, without weights, and the plugin of its environment, which the caller closes. The error is of
// kind Plugin if that cannot be loaded.
func define(ctx context.Context, parts *graph.Parts, g *graph.Graph, p *graph.Policy) (players.Player, env.Plugin, error) {
	e := g.Env(p.Env)
	plugin, err := parts.Load(ctx, e.Name, e.Table, g.Dir)
	if err != nil {
		return players.Player{}, nil, &Error{Kind: Plugin, Err: err}
	}
	x, err := players.Define(parts, g, p, plugin.Spec())
	if err != nil {
		return players.Player{}, nil, errors.Join(err, plugin.Close())
	}
	return x, plugin, nil
}

// options are the pipeline's, except for the fields set.
func (e *RunEvaluation) options(g *graph.Graph, longest uint64, states map[string]component.State) players.EvaluationOptions {
	o := players.EvaluationOf(g, longest, states)
	o.Episodes, o.Seed = e.Episodes, e.Seed
	o.MaxSteps = cmp.Or(e.MaxSteps, o.MaxSteps)
	if e.Greedy != nil {
		o.JudgesGreedy = *e.Greedy
	}
	return o
}

// Stage is the environment of a run, with a seat of its policy for each agent. Its opener closes it.
type Stage struct {
	Plugin        env.Plugin
	Seats         []*evaluation.Seat
	Policy        string
	PolicyVersion uint64
	Keys          map[string]string // of the environment's table
}

// OpenStage opens the environment that a checkpoint's policy was trained in, and the policy for all of its agents, acting as it is judged.
func OpenStage(ctx context.Context, run *runs.Run, c *runs.Checkpoint, o RunEvaluation) (*Stage, error) {
	x, err := openEvaluated(ctx, run, c, &o)
	if err != nil {
		return nil, err
	}
	s := &Stage{Plugin: x.plugin, Policy: x.policy.Name, Keys: x.Graph.Env(x.policy.Env).Table.Keys}
	if err := s.seat(x, &o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// seat seats the policy for every agent. Each draws numbers of its own.
func (s *Stage) seat(x *evaluated, o *RunEvaluation) (err error) {
	asked := x.player.Network // of the environment that is there now
	if x.player.Network, x.player.Weights, err = players.WeightsOf(o.Parts, x.learner); err != nil {
		return err
	}
	if err := x.fits(&asked); err != nil {
		return err
	}
	if s.PolicyVersion, _, err = progressOf(o.Parts, x.learner); err != nil {
		return err
	}
	return s.seatAll(x.player, x.Spec, o.Seed, x.options.JudgesGreedy)
}

// seatAll makes the seats of a player.
func (s *Stage) seatAll(player players.Player, spec hostabi.EnvSpec, seed uint64, greedy bool) error {
	for agent := range spec.Agents() {
		acting, _, err := players.ActAll([]players.Player{player}, 1)
		if err != nil {
			return err
		}
		seat, err := evaluation.NewSeat(acting[0], spec, seed+uint64(agent), greedy)
		if err != nil {
			return err
		}
		s.Seats = append(s.Seats, seat)
	}
	return nil
}

// Players are the seats, for a game.
func (s *Stage) Players() (list []play.Seat) {
	for _, seat := range s.Seats {
		list = append(list, seat)
	}
	return list
}

// Close closes the seats and the environment's plugin.
func (s *Stage) Close() error { return errors.Join(s.leave(), s.Plugin.Close()) }

// leave closes the seats.
func (s *Stage) leave() error {
	var errs []error
	for _, seat := range s.Seats {
		errs = append(errs, seat.Close())
	}
	return errors.Join(errs...)
}
