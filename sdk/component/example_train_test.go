package component_test

import (
	"context"
	"fmt"
	"os"

	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/internal/training"
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

// train trains with a component of one's own, and returns the metrics.
func train(mine component.Component, sets ...string) *stat.Registry {
	return trainOn(cartpole, mine, sets...)
}

func trainOn(pipeline string, mine component.Component, sets ...string) *stat.Registry {
	dir, err := os.MkdirTemp("", "runs")
	if err != nil {
		fmt.Println(err)
		return nil
	}
	defer os.RemoveAll(dir)
	own := training.Kinds{"mine": func() component.Component { return mine }} // the pipeline has one instance
	result, metrics, err := training.Run(context.Background(), dir, pipeline, own, sets...)
	if err != nil {
		fmt.Println(err)
		return nil
	}
	fmt.Println("ended:", result.Reason)
	return metrics
}
