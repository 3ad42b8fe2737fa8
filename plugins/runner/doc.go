// Package runner is the component that watches a run: it keeps the window of returns, ends the run by its stop
// rules, and writes metrics and progress, on the console and into the run's folder.
//
//	kinds := map[string]func() component.Component{
//		"runner": runner.New(runner.Output{Out: os.Stdout, Terminal: true, Width: width}),
//	}
//
// In the run's folder it appends to
//
//	metrics.jsonl   one line per learner round: global_step (env steps learned from), time (Unix seconds), and every
//	                metric by name
//	episodes.csv    one line per episode of an agent: env_step (made so far), env, return, length, terminated, and who played:
//	                agent (index in its environment), policy, policy_version (the newest that acted in it). A file that
//	                an earlier version began keeps its five columns; one of 64 MiB takes each second episode, and so on
//
// A file that cannot be written is counted (runner/log_errors), warned of once, and ends nothing.
//
// The window's mean return is the gauge charts/episodic_return, NaN while the window is not full; the episodes of
// the run are the counter runner/episodes.
//
// With several policies, all of this is about the leading one. Every other policy whose episodes end has its own window, with gauges
// under its name (rival/charts/episodic_return), and other learners' reports are in the leading one's next line, also under their
// names. Host.PolicyOf gives a message's policy by its sender; in rollouts in which several act, the episode has it.
//
// The number of environments, which decides when the window counts, is the gauge rollout/envs that rollout
// components set when they start. The env steps made are their counter rollout/env_steps; the env steps learned
// from come with the learner's stats, whose names and order are the schema of their arena, a []string. So this
// package does not know learners.
package runner
