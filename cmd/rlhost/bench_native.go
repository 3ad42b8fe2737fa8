package main

import (
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/examples/plugins/cartpole-go/cartpole"
)

// nativeBatch is CartPole as Go code in this process: what a guest's speed is held against.
type nativeBatch struct {
	batch                 *cartpole.Batch
	action                []int32
	obs, final, reward    []float32
	terminated, truncated []byte
}

func newNative(envs int) *nativeBatch {
	n := &nativeBatch{
		batch: cartpole.NewBatch(envs, cartpole.DefaultMaxSteps), action: make([]int32, envs),
		obs: make([]float32, envs*cartpole.ObsDim), final: make([]float32, envs*cartpole.ObsDim),
		reward: make([]float32, envs), terminated: make([]byte, envs), truncated: make([]byte, envs),
	}
	seeds := make([]uint64, envs)
	for i := range seeds {
		seeds[i] = env.Seed(1, i)
	}
	n.batch.Reset(seeds, n.obs)
	return n
}

// step steps for about d and returns env steps per second.
func (n *nativeBatch) step(d time.Duration) float64 {
	steps, started := 0, time.Now()
	for time.Since(started) < d {
		for range 256 {
			for i := range n.action {
				n.action[i] = int32((steps + i) & 1)
			}
			n.batch.Step(n.action, n.obs, n.reward, n.terminated, n.truncated, n.final)
			steps++
		}
	}
	return float64(steps*len(n.action)) / time.Since(started).Seconds()
}
