package session_test

import (
	"context"
	"fmt"
	"os"

	"github.com/rlhost/rlhost/pipeline/graph"
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
