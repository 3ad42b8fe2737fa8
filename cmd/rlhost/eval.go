package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/evaluation"
	"github.com/rlhost/rlhost/plugins/learner"
	"github.com/rlhost/rlhost/plugins/runner"
)

type evalCommand struct {
	RunID         string `arg:"" name:"run" help:"Run: a folder, a name such as cartpole, or cartpole/7."`
	Dir           string `name:"runs" default:"runs" help:"Folder that runs lie in."`
	Checkpoint    string `default:"latest" help:"best, latest or a policy version."`
	Episodes      int    `default:"100" help:"Episodes to play."`
	Seed          uint64 `default:"1" help:"Seed of the episodes."`
	Deterministic bool   `help:"Take the most probable action instead of a sample."`
	JSON          bool   `name:"json" help:"Print JSON."`
}

// Run evaluates a checkpoint in the environment that the run was trained on.
func (c *evalCommand) Run(p *program) error {
	if c.Episodes < 1 {
		return fail(exitUsage, fmt.Errorf("--episodes %d: want 1 or more", c.Episodes))
	}
	run, err := runs.Open(c.Dir, c.RunID)
	if err != nil {
		return fail(exitUsage, err)
	}
	checkpoint, err := run.Load(c.Checkpoint)
	if err != nil {
		return err
	}
	r, err := newRuntime(p.logger())
	if err != nil {
		return err
	}
	parts := newParts(r, runner.Output{})
	src, err := run.Pipeline()
	if err != nil {
		return errors.Join(err, r.Close())
	}
	g, problems := pipeline.Parse(runs.PipelineFile, src, pipeline.ParseOptions{Parts: parts, Dir: "."})
	if g == nil {
		return errors.Join(fail(exitConfig, problems.Err()), r.Close())
	}
	result, err := c.play(p, g, parts, checkpoint)
	if err := errors.Join(err, r.Close()); err != nil {
		return err
	}
	return c.report(p, run.ID(), &checkpoint, result)
}

func (c *evalCommand) play(p *program, g *pipeline.Graph, parts *pipeline.Parts, checkpoint runs.Checkpoint) (*evaluation.Result, error) {
	ctx := context.Background()
	name := ""
	for _, k := range g.Components {
		if k.Kind == "learner" {
			name = k.Name
		}
	}
	network, weights, err := learner.Weights(checkpoint.Components[name])
	if err != nil {
		return nil, err
	}
	e := g.Env(g.Policies[0].Env)
	plugin, err := parts.Load(ctx, e.Name, e.Table, g.Dir)
	if err != nil {
		return nil, pluginError(err)
	}
	d := &policy.Definition{Network: network, Backend: backends()["cpu"]()}
	result, err := evaluate(ctx, plugin, d, weights, evaluation.Options{
		Episodes: c.Episodes, Seed: c.Seed, Greedy: c.Deterministic,
	})
	return result, errors.Join(err, plugin.Close())
}

func (c *evalCommand) report(p *program, id string, checkpoint *runs.Checkpoint, r *evaluation.Result) error {
	how := "sampled actions"
	if r.Greedy {
		how = "deterministic actions"
	}
	if c.JSON {
		return json.NewEncoder(p.out).Encode(map[string]any{
			"run": id, "policy_version": checkpoint.PolicyVersion, "env_steps": checkpoint.EnvSteps,
			"episodes": len(r.Returns), "seed": c.Seed, "deterministic": r.Greedy,
			"mean_return": r.Mean(), "std_return": r.Std(), "mean_length": r.MeanLength(), "returns": r.Returns,
		})
	}
	fmt.Fprintf(p.out, "%s at policy version %d (%d env steps): return %.1f ± %.1f, length %.1f, %d episodes, %s, seed %d\n",
		id, checkpoint.PolicyVersion, checkpoint.EnvSteps, r.Mean(), r.Std(), r.MeanLength(), len(r.Returns), how, c.Seed)
	return nil
}
