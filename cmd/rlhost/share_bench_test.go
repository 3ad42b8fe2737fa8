package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/gpu/cpu"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline"
)

// actingPipeline rolls out with a policy whose weights never change; the trajectories have no receiver.
const actingPipeline = `
rlhost = 1
[run]
name = "acting"
[env.cartpole]
use = "cartpole@1"
[policy.main]
env = "cartpole"
[component.rollout]
kind = "rollout"
loop = "main"
env = "cartpole"
envs = 128
splits = 2
horizon = 64
[component.inference]
kind = "inference"
loop = "main"
policy = "main"
[component.learner]
kind = "learner"
loop = "main"
policy = "main"
[[wire]]
signal = "rollout.obs_ready"
slot = "inference.act"
mode = "queue"
depth = 64
on_full = "block"
[[wire]]
signal = "inference.actions"
slot = "rollout.on_actions"
mode = "reply"
depth = 64
on_full = "block"
[[wire]]
signal = "learner.weights"
slot = "inference.on_weights"
mode = "latest"
depth = 1
on_full = "coalesce"
`

// BenchmarkRolloutShare measures, in CPU time per env step, a whole rollout (64 environments per split, MLP 64-64, every check), the
// environment alone and the policy alone, taking turns, and reports the framework's share of the whole: (whole - env - act) / whole.
func BenchmarkRolloutShare(b *testing.B) {
	const slice = 400 * time.Millisecond // long compared with the block that each split leaves unfinished
	parts, engines := builtin.New(builtin.Options{})
	defer engines.Close()
	env, err := parts.Load(context.Background(), "cartpole", graph.EnvTable{Source: env.Source{Use: "cartpole@1"}}, ".")
	if err != nil {
		b.Fatal(err)
	}
	defer env.Close()
	alone := newAlone(b, env)
	var whole, step, act []float64
	for b.Loop() {
		whole = append(whole, acting(b, parts, slice))
		step = append(step, alone.step(b, slice))
		act = append(act, alone.act(b, slice))
	}
	// The best of each: other work of the machine only ever adds.
	w, s, a := slices.Min(whole), slices.Min(step), slices.Min(act)
	b.ReportMetric(w, "whole-ns/env-step")
	b.ReportMetric(s, "env-ns/env-step")
	b.ReportMetric(a, "act-ns/env-step")
	b.ReportMetric(100*(w-s-a)/w, "framework-%")
}

// acting runs the pipeline and returns CPU nanoseconds per env step.
func acting(b *testing.B, parts *graph.Parts, d time.Duration) float64 {
	b.Helper()
	g, err := graph.Parse("acting.toml", []byte(actingPipeline), graph.ParseOptions{Parts: parts})
	if err != nil {
		b.Fatal(err)
	}
	p, err := pipeline.Build(context.Background(), g, pipeline.BuildOptions{Parts: parts, Grace: time.Millisecond})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	before := cpuTime(b)
	if _, err := p.Run(ctx); err != nil {
		b.Fatal(err)
	}
	used := cpuTime(b) - before
	steps := p.Stats().Counter("rollout/env_steps").Value()
	if err := p.Close(); err != nil {
		b.Fatal(err)
	}
	return float64(used.Nanoseconds()) / float64(steps)
}

// alone is an environment and a policy without anything around them.
type alone struct {
	stage    *env.Driver
	actor    policy.Actor
	requests []policy.Request
}

func newAlone(b *testing.B, plugin env.Plugin) *alone {
	b.Helper()
	spec := plugin.Spec()
	stage, err := env.NewDriver(plugin, env.DriverOptions{
		Options: env.Options{Name: "alone", Envs: 64, Seed: 1}, Rows: 64,
		SoA: spec.Caps&hostabi.CapPreferSoA != 0,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := stage.Close(); err != nil {
			b.Error(err)
		}
	})
	seeds := make([]uint64, 64)
	for i := range seeds {
		seeds[i] = env.Seed(1, i)
	}
	if err := stage.Reset(nil, seeds); err != nil {
		b.Fatal(err)
	}
	n := policy.MLP{Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: policy.Tanh, HiddenGain: 1.414}.Network()
	actor, err := policy.NewActor(cpu.New(), &n, 1024)
	if err != nil {
		b.Fatal(err)
	}
	if err := actor.Load(policy.Weights{Params: policy.Init(&n, 1)}); err != nil {
		b.Fatal(err)
	}
	return &alone{stage: stage, actor: actor}
}

func (a *alone) step(b *testing.B, d time.Duration) float64 {
	return perStep(b, d, func(i int) error {
		action := a.stage.Action()
		for k := range action {
			action[k] = int32(i+k) & 1
		}
		return a.stage.Advance()
	})
}

// act acts on two splits at once, as the whole does.
func (a *alone) act(b *testing.B, d time.Duration) float64 {
	request := policy.Request{
		Action: a.stage.Actions(), LogProb: a.stage.LogProb(), Value: a.stage.Value(), Obs: a.stage.Observations(), Seed: 1,
	}
	a.requests = append(a.requests[:0], request, request)
	return perStep(b, d, func(i int) error {
		a.requests[0].Step, a.requests[1].Step = uint64(i), uint64(i)
		return a.actor.Act(a.requests)
	}) / 2
}

// perStep calls f, which handles 64 environments, for about d and returns CPU nanoseconds per environment.
func perStep(b *testing.B, d time.Duration, f func(i int) error) float64 {
	b.Helper()
	calls, before, started := 0, cpuTime(b), time.Now()
	for time.Since(started) < d {
		for range 64 {
			if err := f(calls); err != nil {
				b.Fatal(err)
			}
			calls++
		}
	}
	return float64((cpuTime(b) - before).Nanoseconds()) / float64(64*calls)
}

// cpuTime is the time that the process has used of all processors so far.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(fmt.Errorf("getrusage: %w", err))
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
