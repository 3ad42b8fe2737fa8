package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/evaluation"
	"github.com/rlhost/rlhost/plugins/learner"
	"github.com/rlhost/rlhost/plugins/runner"
)

type evalCommand struct {
	RunID string `arg:"" optional:"" default:"latest" name:"run" help:"Run: a folder, a name such as cartpole (its newest run), cartpole/7, or latest."`
	runsFlag
	Checkpoint    string `default:"latest" help:"best, latest or a policy version."`
	Episodes      int    `default:"100" help:"Episodes to play."`
	Seed          uint64 `default:"1" help:"Seed of the episodes."`
	Deterministic bool   `help:"Take the most probable action instead of a sample."`
	JSON          bool   `name:"json" help:"Print JSON."`
}

// Help shows how eval is called.
func (c *evalCommand) Help() string {
	return `The same checkpoint, seed and episodes give the same returns, however often they are asked for.

  rlhost eval
  rlhost eval cartpole/3 --checkpoint best --deterministic`
}

// Run evaluates a checkpoint in the environment that the run was trained on.
func (c *evalCommand) Run(p *program) error {
	if c.Episodes < 1 {
		return fail(exitUsage, fmt.Errorf("--episodes %d: want 1 or more", c.Episodes))
	}
	e := newEngines(p.logger())
	return p.also(c.evaluate(p, newParts(e, runner.Output{})), e.Close())
}

func (c *evalCommand) evaluate(p *program, parts *pipeline.Parts) error {
	run, err := c.find(c.RunID)
	if err != nil {
		return err
	}
	checkpoint, err := load(run, c.Checkpoint)
	if err != nil {
		return err
	}
	g, err := p.ownPipeline(run, nil, parts)
	if err != nil {
		return err
	}
	result, err := c.play(p, run, g, parts, checkpoint)
	if err != nil {
		return err
	}
	return c.report(p, run.ID(), &checkpoint, result)
}

func (c *evalCommand) play(p *program, run *runs.Run, g *pipeline.Graph, parts *pipeline.Parts,
	checkpoint runs.Checkpoint) (*evaluation.Result, error) {
	ctx := context.Background()
	network, weights, err := learner.Weights(checkpoint.Components[learnerName(g)])
	if err != nil {
		return nil, err
	}
	e := g.Env(g.Policies[0].Env)
	plugin, err := parts.Load(ctx, e.Name, e.Table, g.Dir)
	if err != nil {
		return nil, pluginError(err)
	}
	for _, name := range changed(run.Info(), map[string]string{e.Table.Use: plugin.Hash()}) {
		p.tell(slog.LevelWarn, "warning: ", "changed since the run began: %s", name)
	}
	d := &policy.Definition{Network: network, Backend: backends()["cpu"]()}
	result, err := evaluate(ctx, plugin, d, weights, evaluation.Options{
		Episodes: c.Episodes, Seed: c.Seed, Greedy: c.Deterministic, EpisodeLimit: episodeLimit(g),
	})
	return result, errors.Join(err, plugin.Close())
}

func (c *evalCommand) report(p *program, id string, checkpoint *runs.Checkpoint, r *evaluation.Result) error {
	if c.JSON {
		return json.NewEncoder(p.out).Encode(map[string]any{
			"run": id, "policy_version": checkpoint.PolicyVersion, "env_steps": checkpoint.EnvSteps,
			"episodes": len(r.Returns), "seed": c.Seed, "deterministic": r.Greedy,
			"mean_return": r.Mean(), "std_return": r.Std(), "mean_length": r.MeanLength(), "returns": r.Returns,
		})
	}
	fmt.Fprintf(p.out, "%s at policy version %d (%d env steps): return %s, length %.1f, %d episodes, %s, seed %d\n",
		id, checkpoint.PolicyVersion, checkpoint.EnvSteps, returnText(r.Mean(), r.Std()), r.MeanLength(), len(r.Returns), howActed(r.Greedy), c.Seed)
	return nil
}
