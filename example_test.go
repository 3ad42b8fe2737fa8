package rlhost_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"

	"github.com/rlhost/rlhost"
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

func ExampleTrain() {
	dir, _ := os.MkdirTemp("", "runs")
	defer os.RemoveAll(dir)

	result, err := rlhost.Train(context.Background(), rlhost.Options{Text: cartpole, Set: []string{"run.dir=" + dir}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Reason, result.EnvSteps, len(result.Evaluation.Judged().Returns))
	// Output: env_steps 4096 8
}

// A run continues from its newest checkpoint with other limits, and is then evaluated.
func ExampleResume() {
	dir, _ := os.MkdirTemp("", "runs")
	defer os.RemoveAll(dir)
	ctx := context.Background()
	if _, err := rlhost.Train(ctx, rlhost.Options{Text: cartpole, Set: []string{"run.dir=" + dir}}); err != nil {
		fmt.Println(err)
		return
	}
	result, err := rlhost.Resume(ctx, "cartpole", rlhost.Options{Runs: dir, Set: []string{"run.stop.env_steps=8192"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := rlhost.Evaluate(ctx, "cartpole/1", 4, 1, rlhost.Options{Runs: dir})
	fmt.Println(result.EnvSteps, e.EnvSteps, len(e.Judged().Returns), err)
	// Output: 8192 8192 4 <nil>
}

// A mistake is reported with its place and its remedy.
func ExampleTrain_mistake() {
	_, err := rlhost.Train(context.Background(), rlhost.Options{File: "mine.toml", Text: "rlhost = 1\n[run]\nname = \"mine\"\n[train]\npreset = \"pp\"\n"})
	fmt.Println(err)
	// Output:
	// mine.toml:5:10: error[E010]: unknown preset "pp"
	// 5 | preset = "pp"
	//   |          ^^^^ help: did you mean "ppo"? presets: appo, continuous, fast, general, ppo
}

// A trained policy balances a pole in the program's own simulation.
func ExampleLoad() {
	dir, _ := os.MkdirTemp("", "runs")
	defer os.RemoveAll(dir)
	ctx := context.Background()
	quiet := slog.New(slog.DiscardHandler)
	o := rlhost.Options{Text: cartpole, Set: []string{"run.dir=" + dir, "run.stop.env_steps=131072"}, Runs: dir, Log: quiet}
	if _, err := rlhost.Train(ctx, o); err != nil {
		fmt.Println(err)
		return
	}
	policy, err := rlhost.Load(ctx, "cartpole", 1, o)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer policy.Close()
	policy.Begin()
	state, steps := [4]float32{0, 0, 0.02, 0}, 0
	for ; steps < 500 && math.Abs(float64(state[2])) < 0.2; steps++ {
		actions, err := policy.Act(rlhost.Observation{Tensors: []rlhost.Elements{{F32: state[:]}}})
		if err != nil {
			fmt.Println(err)
			return
		}
		state = push(state, actions[0].I32[0] == 1)
	}
	fmt.Println(steps, "steps")
	// Output: 500 steps
}

// push moves a cart with a pole on it for a fiftieth of a second: position, velocity, angle, angular velocity.
func push(s [4]float32, right bool) [4]float32 {
	force := -10.0
	if right {
		force = 10
	}
	x, v, angle, turn := float64(s[0]), float64(s[1]), float64(s[2]), float64(s[3])
	sin, cos := math.Sincos(angle)
	f := (force + 0.05*turn*turn*sin) / 1.1
	bend := (9.8*sin - cos*f) / (0.5 * (4.0/3 - 0.1*cos*cos/1.1))
	const dt = 0.02
	return [4]float32{float32(x + dt*v), float32(v + dt*(f-0.05*bend*cos/1.1)), float32(angle + dt*turn), float32(turn + dt*bend)}
}

// sampler is a pipeline that learns nothing.
const sampler = `
rlhost = 1
[run]
name = "sampler"
[env.cartpole]
use = "cartpole@1"
[component.rollout]
kind = "rollout"
env = "cartpole"
envs = 16
horizon = 32
[component.random]
kind = "random"
[[wire]]
signal = "rollout.obs_ready"
slot = "random.act"
[[wire]]
signal = "random.actions"
slot = "rollout.on_actions"
`

// A program takes the trajectories of a pipeline without a learner.
func ExampleSample() {
	dir, _ := os.MkdirTemp("", "runs")
	defer os.RemoveAll(dir)
	n := 0
	for block, err := range rlhost.Sample(context.Background(), "rollout.trajectories", rlhost.Options{Text: sampler, Set: []string{"run.dir=" + dir, "component.rollout.splits=1"}}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		obs, _ := block.Column("obs")
		reward, _ := block.Column("reward")
		fmt.Println(obs.Rows, obs.Envs, obs.Elems, reward.Row(0, 0).Float32()[0])
		if n++; n == 2 {
			break
		}
	}
	// Output:
	// 33 16 4 1
	// 33 16 4 1
}
