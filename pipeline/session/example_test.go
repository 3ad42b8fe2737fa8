package session_test

import (
	"context"
	"fmt"
	"os"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// cartpole is a pipeline of a few thousand env steps with the same result each time.
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

// A program trains a policy without the command line: the table of parts, a graph, a training.
func ExampleTrain() {
	dir, _ := os.MkdirTemp("", "runs")
	defer os.RemoveAll(dir)

	parts, engines := builtin.New(builtin.Options{})
	defer engines.Close()
	g, err := graph.Parse("cartpole.toml", []byte(cartpole), graph.ParseOptions{Parts: parts, Sets: []string{"run.dir=" + dir}})
	if err != nil {
		fmt.Print(err)
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

// A run continues from its newest checkpoint, with other limits, and a checkpoint of it is evaluated.
func ExampleResume() {
	dir, _ := os.MkdirTemp("", "runs")
	defer os.RemoveAll(dir)
	parts, engines := builtin.New(builtin.Options{})
	defer engines.Close()
	g, err := graph.Parse("cartpole.toml", []byte(cartpole), graph.ParseOptions{Parts: parts, Sets: []string{"run.dir=" + dir}})
	if err != nil {
		fmt.Print(err)
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

// unending begins a training that only a command ends.
func unending(dir string) (s *session.Session, done func(), err error) {
	parts, engines := builtin.New(builtin.Options{})
	g, err := graph.Parse("cartpole.toml", []byte(cartpole),
		graph.ParseOptions{Parts: parts, Sets: []string{"run.dir=" + dir, "run.stop.env_steps=1_000_000_000", "component.runner.log=[]"}})
	if err != nil {
		return nil, nil, err
	}
	s, err = session.Begin(context.Background(), session.Options{Parts: parts, Graph: g})
	return s, func() { engines.Close() }, err
}

// A program saves a checkpoint when it wants one, during the training.
func ExampleSession_Checkpoint() {
	dir, _ := os.MkdirTemp("", "runs")
	defer os.RemoveAll(dir)
	s, done, err := unending(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()

	go func() {
		saved, err := s.Checkpoint(context.Background()) // at the next dataset boundary
		fmt.Println("saved:", saved.EnvSteps > 0, saved.Exact, err)
		s.Stop(false)
	}()
	result, err := s.Run(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ended:", result.Reason, s.Close())
	// Output:
	// saved: true true <nil>
	// ended: interrupted <nil>
}

// While it runs, a training answers the commands of rlhost status, swap, stop and the like; a program can ask, too.
func ExampleSession_Run() {
	dir, _ := os.MkdirTemp("", "runs")
	defer os.RemoveAll(dir)
	s, done, err := unending(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()

	go func() {
		ctx := context.Background()
		if _, err := s.Checkpoint(ctx); err != nil { // once that is saved, the training runs
			fmt.Println(err)
		}
		client, err := control.Dial(ctx, control.SocketPath(s.Folder().Dir))
		if err != nil {
			fmt.Println(err)
			s.Stop(true)
			return
		}
		defer client.Close()
		var status control.StatusReply
		err = client.Do(ctx, control.VerbStatus, control.StatusRequest{}, &status, nil)
		fmt.Println(status.Run, status.State, len(status.Components), err)
		if err := client.Do(ctx, control.VerbStop, control.StopRequest{}, nil, nil); err != nil {
			fmt.Println(err)
		}
	}()
	result, err := s.Run(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ended:", result.Reason, s.Close())
	// Output:
	// cartpole/0001 running 5 <nil>
	// ended: interrupted <nil>
}
