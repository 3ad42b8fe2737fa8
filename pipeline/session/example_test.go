package session_test

import (
	"context"
	"fmt"
	"os"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// cartpole is a pipeline of a few thousand env steps that comes to the same each time.
const cartpole = `
rlhost = 1
[run]
name = "cartpole"
stop = { env_steps = 4096 }
evaluation = { episodes = 8 }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "ppo"
env = "cartpole"
mode = "sync"
`

// A program trains a policy without the command line: the table of what there is, a graph, a training.
func ExampleTrain() {
	dir, _ := os.MkdirTemp("", "runs")
	defer os.RemoveAll(dir)

	parts, engines := builtin.New(builtin.Options{})
	defer engines.Close()
	g, problems := graph.Parse("cartpole.toml", []byte(cartpole), graph.ParseOptions{Parts: parts, Sets: []string{"run.dir=" + dir}})
	if g == nil {
		fmt.Print(problems)
		return
	}
	result, err := session.Train(context.Background(), session.Options{Parts: parts, Graph: g})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Reason, result.EnvSteps, len(result.Evaluation.Judged().Returns))
	// Output: env_steps 4096 8
}

// A run goes on from its newest checkpoint, with other limits, and a checkpoint of it is evaluated.
func ExampleResume() {
	dir, _ := os.MkdirTemp("", "runs")
	defer os.RemoveAll(dir)
	parts, engines := builtin.New(builtin.Options{})
	defer engines.Close()
	g, problems := graph.Parse("cartpole.toml", []byte(cartpole), graph.ParseOptions{Parts: parts, Sets: []string{"run.dir=" + dir}})
	if g == nil {
		fmt.Print(problems)
		return
	}
	if _, err := session.Train(context.Background(), session.Options{Parts: parts, Graph: g}); err != nil {
		fmt.Println(err)
		return
	}
	run, err := runs.Open(dir, "cartpole")
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := session.Resume(context.Background(), run, session.Options{Parts: parts, Sets: []string{"run.stop.env_steps=8192"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := s.Run(context.Background())
	fmt.Println(result.EnvSteps, err)
	checkpoint, err := run.Load(runs.Latest)
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := session.EvaluateRun(context.Background(), run, &checkpoint, session.RunEvaluation{Parts: parts, Episodes: 4, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.EnvSteps, len(e.Judged().Returns), s.Close())
	// Output:
	// 8192 <nil>
	// 8192 4 <nil>
}
