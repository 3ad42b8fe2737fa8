package session_test

import (
	"context"
	"fmt"
	"os"

	"github.com/rlhost/rlhost"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/session"
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

// unending begins a training that only a command ends.
func unending(dir string) (*session.Session, error) {
	return rlhost.Begin(context.Background(), rlhost.Options{Text: cartpole, Set: []string{"run.dir=" + dir, "run.stop.env_steps=1_000_000_000", "component.runner.log=[]"}})
}

// A program saves a checkpoint when it wants one, during the training.
func ExampleSession_Checkpoint() {
	dir, _ := os.MkdirTemp("", "runs")
	defer os.RemoveAll(dir)
	s, err := unending(dir)
	if err != nil {
		fmt.Println(err)
		return
	}

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
	s, err := unending(dir)
	if err != nil {
		fmt.Println(err)
		return
	}

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
