package main

type runCommand struct {
	Pipeline string   `arg:"" optional:"" predictor:"pipeline" help:"Pipeline file; default ./pipeline.toml; - is standard input."`
	Set      []string `placeholder:"KEY=VALUE" sep:"none" help:"Override a key of the file, such as component.rollout.envs=4. May be repeated."`
	JSON     bool     `name:"json" help:"Print one JSON object per line; the last one has the event \"end\"."`
	Attached int      `placeholder:"PID" help:"End as SIGTERM does when that process ends, which started this one."`
	Metrics  bool     `help:"With --json: also an object with the event \"metrics\" for each line of the run's metrics."`
}

// Help shows how run is called.
func (c *runCommand) Help() string {
	return `Runs any pipeline that rlhost validate accepts: environments and a policy that sample, components that only talk to each other. It
ends by a stop rule, when a component asks for it, by rlhost stop and by a signal. stop.env_steps counts the env steps that were made.
What has a learner is trained, as by rlhost train. Without one there are no checkpoints, and no evaluation at the end.

  rlhost run sampler.toml
  rlhost run bus.toml --set run.stop.wall_time=10s`
}

// Run runs the pipeline.
func (c *runCommand) Run(p *program) error {
	as := &trainCommand{Pipeline: c.Pipeline, Set: c.Set, JSON: c.JSON, Attached: c.Attached, Metrics: c.Metrics, withoutLearner: true}
	return as.Run(p)
}
