package component_test

import (
	"context"
	"fmt"
	"os"

	"github.com/rlhost/rlhost"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/sdk/component"
)

// cartpole trains for eight blocks of 512 env steps. A component of the kind mine sees each of them before the batcher.
const cartpole = `
rlhost = 1
[run]
name = "cartpole"
stop = { env_steps = 4096 }
evaluation = { episodes = 1 }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "ppo"
env = "cartpole"
mode = "sync"
[component.runner]
log = []
[component.mine]
kind = "mine"
[[wire]]
signal = "rollout.trajectories"
slot = "mine.on_trajectories"
mode = "queue"
depth = 64
on_full = "block"
replace = true
[[wire]]
signal = "mine.trajectories"
slot = "batcher.on_trajectories"
mode = "queue"
depth = 64
on_full = "block"
`

// train trains with a component of one's own, and returns the session, which has ended.
func train(mine component.Component, sets ...string) *session.Session {
	return trainOn(cartpole, mine, sets...)
}

func trainOn(pipeline string, mine component.Component, sets ...string) *session.Session {
	dir, err := os.MkdirTemp("", "runs")
	if err != nil {
		fmt.Println(err)
		return nil
	}
	defer os.RemoveAll(dir)
	s, err := rlhost.Begin(context.Background(), rlhost.Options{
		Text: pipeline, Set: append([]string{"run.dir=" + dir}, sets...),
		Components: map[string]func() component.Component{"mine": func() component.Component { return mine }}, // the pipeline has one instance
	})
	if err != nil {
		fmt.Println(err)
		return nil
	}
	defer s.Close()
	result, err := s.Run(context.Background())
	if err != nil {
		fmt.Println(err)
		return nil
	}
	fmt.Println("ended:", result.Reason)
	return s
}
