package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/evaluation"
)

// Played is how a policy did with its actions picked in one way.
type Played struct {
	Return     float64   `json:"mean_return"`
	Std        float64   `json:"std_return"`
	Length     float64   `json:"mean_length"`
	Unfinished int       `json:"unfinished"` // episodes that were given up
	Returns    []float64 `json:"-"`
}

// Evaluation is how a policy did greedily and with sampled actions, in the same episodes.
type Evaluation struct {
	Greedy, Sampled Played
	Deterministic   bool             // the greedy one is judged
	MaxSteps        uint64           // after which episodes were given up
	Ratings         *players.Ratings // how strong its versions are, in the final evaluation of a run with a pool of them; else nil

	// Of EvaluateRun: the policy, and how far its learner had come.
	Policy                  string
	PolicyVersion, EnvSteps uint64
}

// Judged returns the part that a run is judged by.
func (e *Evaluation) Judged() *Played {
	if e.Deterministic {
		return &e.Greedy
	}
	return &e.Sampled
}

// String tells both, what is judged first.
func (e *Evaluation) String() string {
	judged, how, other, otherHow := &e.Sampled, "sampled actions", &e.Greedy, "deterministic"
	if e.Deterministic {
		judged, how, other, otherHow = &e.Greedy, "deterministic actions", &e.Sampled, "sampled"
	}
	told := fmt.Sprintf("%s over %d episodes%s, %s; %s %s%s", text.Returns(judged.Return, judged.Std), len(judged.Returns),
		e.unfinished(judged), how, otherHow, text.Returns(other.Return, other.Std), e.unfinished(other))
	if e.Ratings != nil {
		told += "\n" + e.Ratings.String()
	}
	return told
}

// unfinished tells how many episodes were given up, if any were.
func (e *Evaluation) unfinished(p *Played) string {
	if p.Unfinished == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d unfinished after %d env steps)", p.Unfinished, e.MaxSteps)
}

// EvaluationOptions say what is played and judged.
type EvaluationOptions struct {
	evaluation.Options
	Deterministic bool
	Beside        players.Beside // who plays beside the policy
}

// EvaluationOf returns the evaluation that a pipeline asks for, after a training whose longest episode had so many env
// steps.
func EvaluationOf(g *graph.Graph, longest uint64) EvaluationOptions {
	e := g.Run.Evaluation
	most := max(10*longest, 10_000)
	if e.MaxSteps > 0 {
		most = uint64(e.MaxSteps)
	}
	return EvaluationOptions{Deterministic: e.Deterministic, Options: evaluation.Options{
		Episodes: e.Episodes, Seed: e.Seed, MaxSteps: most,
	}}
}

// Evaluate plays the episodes twice at the same time, greedily and with sampled actions.
func Evaluate(ctx context.Context, plugin env.Plugin, d *policy.Definition, w policy.Weights, o EvaluationOptions) (*Evaluation, error) {
	o.Plugin = plugin
	greedy, sampled := o.Options, o.Options
	greedy.Greedy = true
	e, p := &Evaluation{Deterministic: o.Deterministic, MaxSteps: o.MaxSteps}, players.Player{Definition: d, Weights: w}
	other := make(chan error, 1)
	go func() {
		var err error
		e.Sampled, err = playOnce(ctx, p, o.Beside, sampled)
		other <- err
	}()
	var err error
	e.Greedy, err = playOnce(ctx, p, o.Beside, greedy)
	if err = errors.Join(err, <-other); err != nil {
		return nil, err
	}
	return e, nil
}

// RunEvaluation says how a checkpoint of a run is evaluated: as the run's own pipeline says, but for what is set here.
type RunEvaluation struct {
	Parts         *graph.Parts
	Policy        string // empty: the leading one
	Episodes      int
	Seed          uint64
	MaxSteps      uint64 // 0: the pipeline's
	Deterministic *bool  // nil: the pipeline's
	Log           *slog.Logger
}

// evaluated is a policy of a checkpoint, and what it takes to play it. Whoever opens it closes the plugin.
type evaluated struct {
	players.Reader
	policy  *graph.Policy
	learner component.State
	plugin  env.Plugin
	player  players.Player
	options EvaluationOptions
}

// openEvaluated loads the environment that a run was trained in. A warning is logged if that has changed since; if it cannot be
// loaded, the error is of kind Plugin.
func openEvaluated(ctx context.Context, run *runs.Run, c *runs.Checkpoint, o *RunEvaluation) (x *evaluated, err error) {
	g, _, err := ownPipeline(run, nil, o.Parts) // its warnings are about training
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
	x.policy, x.learner, x.options = trained, c.Components[learner], o.options(g, longest)
	return x, nil
}

// EvaluateRun evaluates a checkpoint in the environment that its run was trained on. A warning is logged if that has changed
// since; if it cannot be loaded, the error is of kind Plugin.
func EvaluateRun(ctx context.Context, run *runs.Run, c *runs.Checkpoint, o RunEvaluation) (e *Evaluation, err error) {
	x, err := openEvaluated(ctx, run, c, &o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.plugin.Close()) }()
	if x.player.Network, x.player.Weights, err = players.WeightsOf(o.Parts, x.learner); err != nil {
		return nil, err
	}
	version, envSteps, err := progressOf(o.Parts, x.learner)
	if err != nil {
		return nil, err
	}
	if x.options.Beside, err = x.Beside(x.policy); err != nil {
		return nil, err
	}
	if e, err = Evaluate(ctx, x.plugin, x.player.Definition, x.player.Weights, x.options); err != nil {
		return nil, err
	}
	e.Policy, e.PolicyVersion, e.EnvSteps = x.policy.Name, version, envSteps
	return e, nil
}

// RateRun rates the versions of a policy that a checkpoint of a run has, in matches of the episodes that EvaluateRun would play. Actions
// are sampled unless Deterministic says otherwise: two policies that always do the same play the same game again and again.
func RateRun(ctx context.Context, run *runs.Run, c *runs.Checkpoint, o RunEvaluation) (ratings *players.Ratings, err error) {
	x, err := openEvaluated(ctx, run, c, &o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.plugin.Close()) }()
	options := x.options.Options
	options.Greedy = o.Deterministic != nil && *o.Deterministic
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

// options are the pipeline's own, but for what is set.
func (e *RunEvaluation) options(g *graph.Graph, longest uint64) EvaluationOptions {
	o := EvaluationOf(g, longest)
	o.Episodes, o.Seed = e.Episodes, e.Seed
	o.MaxSteps = cmp.Or(e.MaxSteps, o.MaxSteps)
	if e.Deterministic != nil {
		o.Deterministic = *e.Deterministic
	}
	return o
}

// playOnce plays all episodes in one way, with environments and policies of its own.
func playOnce(ctx context.Context, p players.Player, b players.Beside, o evaluation.Options) (Played, error) {
	const most = 32
	turns := (o.Episodes + most - 1) / most
	envs := (o.Episodes + turns - 1) / turns // so that few are idle in the last turn
	spec := o.Plugin.Spec()
	p.Group = b.Group
	all, closeAll, err := players.ActAll(append([]players.Player{p}, b.Players...), envs*spec.Agents())
	if err != nil {
		return Played{}, err
	}
	o.Player, o.Others, o.Envs = all[0], all[1:], envs
	if len(o.Others) > 0 {
		o.Plays = func(_, agent int) int { return b.Agents[agent] }
	}
	r, err := evaluation.Run(ctx, o)
	if err = errors.Join(err, closeAll()); err != nil {
		return Played{}, err
	}
	return Played{Return: r.Mean(), Std: r.Std(), Length: r.MeanLength(), Unfinished: r.Unfinished, Returns: r.Returns}, nil
}
