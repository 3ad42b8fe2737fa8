package results

import (
	"context"
	"fmt"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
)

// Eval evaluates a trained policy.
type Eval struct {
	RunID string `arg:"" optional:"" default:"latest" name:"run" help:"Run: a folder, a name such as cartpole (its newest run), cartpole/7, or latest."`
	Folder
	Policy     string   `placeholder:"NAME" help:"Policy to evaluate; default the leading one."`
	Checkpoint string   `default:"latest" help:"best (of that policy), latest or a policy version of the leading one."`
	Episodes   int      `default:"100" help:"Episodes to play."`
	Seed       uint64   `default:"1" help:"Seed of the episodes."`
	MaxSteps   int      `placeholder:"N" help:"Give an episode up after that many env steps; default run.evaluation.max_steps of the run, else ten times the longest episode in training and at least 10,000."`
	Greedy     *bool    `negatable:"" help:"Judge by greedy actions or, with --no-greedy, by sampled ones; default as in the run."`
	Elo        bool     `help:"Rate the versions that the run has of its policy, in matches of so many episodes against each other; actions are sampled unless --greedy is given."`
	Set        []string `placeholder:"KEY=VALUE" sep:"none" help:"Override a key of the run's pipeline, such as env.lander.use=gymnasium:LunarLander-v3. May be repeated."`
	JSON       bool     `name:"json" help:"Print JSON."`
}

// Help shows how eval is called.
func (c *Eval) Help() string {
	return `The same checkpoint, seed and episodes give the same returns, however often they are asked for.

Each episode is played twice, with greedy actions and with sampled ones. Another
environment with the same spaces is given by --set.

  rlhost eval
  rlhost eval cartpole/3 --checkpoint best
  rlhost eval connectfour --elo
  rlhost eval lunarlander --set env.lunarlander.use=lunarlander.wasm`
}

// Run evaluates a checkpoint in the environment that the run was trained on.
func (c *Eval) Run(p *Program) error {
	if c.Episodes < 1 || c.Episodes > graph.MaxEpisodes {
		return usage(fmt.Errorf("--episodes %d: want 1 to %d", c.Episodes, graph.MaxEpisodes))
	}
	if c.MaxSteps < 0 {
		return usage(fmt.Errorf("--max-steps %d: want 0 (the default) or more", c.MaxSteps))
	}
	return p.WithParts(func(parts *graph.Parts) error { return c.evaluate(p, parts) })
}

func (c *Eval) evaluate(p *Program, parts *graph.Parts) error {
	run, checkpoint, err := c.Load(c.RunID, c.Checkpoint, c.Policy)
	if err != nil {
		return err
	}
	o := session.RunEvaluation{
		Parts: parts, Sets: c.Set, Policy: c.Policy, Episodes: c.Episodes, Seed: c.Seed, MaxSteps: uint64(c.MaxSteps),
		Greedy: c.Greedy, Log: p.Log,
	}
	if c.Elo {
		return c.rate(p, run, &checkpoint, o)
	}
	e, err := session.EvaluateRun(context.Background(), run, &checkpoint, o)
	if err != nil {
		return err
	}
	return c.report(p, run, e)
}

// rate reports how strong the versions of a policy are.
func (c *Eval) rate(p *Program, run *runs.Run, checkpoint *runs.Checkpoint, o session.RunEvaluation) error {
	ratings, err := session.RateRun(context.Background(), run, checkpoint, o)
	if err != nil {
		return err
	}
	if newest := ratings.Newest(); c.JSON {
		return p.encode(map[string]any{
			"run": run.ID(), "policy": newest.Policy, "policy_version": newest.Version, "env_steps": ratings.EnvSteps, "seed": c.Seed,
			"episodes": ratings.Episodes, "judged": players.Way(ratings.Greedy), "elo": newest.Elo, "ratings": ratings.Versions, "against_random": ratings.Random,
		})
	}
	p.printf("%s\n", ratings)
	return nil
}

func (c *Eval) report(p *Program, run *runs.Run, e *players.Evaluation) error {
	judged := e.Judged()
	if c.JSON {
		return p.encode(map[string]any{
			"run": run.ID(), "policy": e.Policy, "policy_version": e.PolicyVersion, "env_steps": e.EnvSteps,
			"episodes": len(judged.Returns), "seed": c.Seed, "judged": players.Way(e.JudgesGreedy), "max_steps": e.MaxSteps,
			"mean_return": judged.Return, "std_return": judged.Std, "mean_length": judged.Length,
			"unfinished": judged.Unfinished, "returns": judged.Returns, "greedy": e.Greedy, "sampled": e.Sampled, "greedy_returns": e.Greedy.Returns, "sampled_returns": e.Sampled.Returns,
		})
	}
	whose := run.ID()
	if len(run.Info().Policies) > 1 {
		whose += ", " + e.Policy
	}
	p.printf("%s at policy version %d (%d env steps): return %s; mean length %.1f, seed %d\n",
		whose, e.PolicyVersion, e.EnvSteps, e, judged.Length, c.Seed)
	return nil
}
