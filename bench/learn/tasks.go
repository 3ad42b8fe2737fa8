package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// task is something to learn with settings of this repository.
type task struct {
	name      string
	preset    string
	file      string // pipeline
	sets      []string
	steps     string  // env steps at most, as the page writes them
	bar       float64 // for the lower end of the interval of the mean return
	below     bool    // the task cannot be learned so: the bar is for the upper end
	sampled   bool    // the bar is for sampled actions, not for the most probable ones
	published string  // figure of others, with its source
	inTest    bool
	brief     bool    // a seed takes less than a second
	scale     float64 // of rewards; 0 = as they are
}

// folder names the task's files.
func (t *task) folder() string {
	return strings.NewReplacer("/", "-", " ", "-", "×", "x").Replace(t.name + "-" + t.preset)
}

// testSeeds is how many the test trains: the interval of three seeds is wide, so a brief task has as many as on the page.
func (t *task) testSeeds() int {
	if t.brief {
		return t.seeds()
	}
	return 3
}

// seeds is how many the page has.
func (t *task) seeds() int {
	if t.scale != 0 {
		return 5
	}
	return 10
}

// command is how a user trains the same.
func (t *task) command(seeds int) string {
	c := fmt.Sprintf("rlhost train %s --seeds 1-%d", t.file, seeds)
	for _, s := range t.sets {
		if strings.HasPrefix(s, "env.cartpole.use=") {
			s = "env.cartpole.use=./scaled.wasm" // built from bench/learn/scaled
		}
		c += " --set '" + s + "'"
	}
	return c
}

// The published figures: RL Zoo's are of its benchmark.md (rl-baselines3-zoo), CleanRL's of the page on PPO of its docs.
var tasks = []task{
	cartpole("general", true),
	cartpole("fast", false),
	{name: "Acrobot-v1", preset: "general", file: "examples/pipelines/acrobot.toml", steps: "500,000", bar: -86.4, published: "-86.4 ± 1.3 CleanRL, -73.5 ± 18.2 RL Zoo", inTest: true},
	{name: "Acrobot-v1", preset: "ppo", file: "examples/pipelines/acrobot.toml", steps: "500,000", bar: -86.4, published: "-86.4 ± 1.3 CleanRL",
		sets: []string{"train.preset=ppo"}},
	{name: "MountainCar-v0", preset: "general", file: "examples/pipelines/mountaincar.toml", steps: "1,000,000", bar: -115, published: "-110.4 ± 19.5 RL Zoo", inTest: true},
	{name: "LunarLander-v3", preset: "general and keys", file: "examples/pipelines/lunarlander.toml", steps: "1,000,000", bar: 200, published: "242 ± 32 RL Zoo (v2)"},
	{name: "LunarLander module", preset: "general and keys", file: "examples/pipelines/lunarlander-module.toml", steps: "1,000,000", bar: 200, published: "242 ± 32 RL Zoo (v2)"},
	{name: "Pendulum-v1", preset: "continuous", file: "examples/pipelines/pendulum.toml", steps: "300,000", bar: -250, published: "-172 ± 104 RL Zoo (gSDE)", inTest: true},
	{name: "MountainCarContinuous-v0", preset: "continuous and keys", file: "examples/pipelines/mountaincarcontinuous.toml", steps: "300,000", bar: 85,
		published: "88.3 ± 2.6 RL Zoo (gSDE)", inTest: true},
	positions("CartPole", "general", "gru", 150, 475),
	positions("CartPole", "general", "lstm", 150, 475, "policy.main.net.chunk=32"),
	positions("CartPole", "general", "", 150, 200),
	positions("Pendulum", "continuous", "gru", 500, -250),
	{name: "Taxi-v4", preset: "general and keys", file: "examples/pipelines/taxi.toml", steps: "500,000", bar: 7.5, inTest: true},
	{name: "LunarLanderContinuous-v3", preset: "general and keys", file: "examples/pipelines/lunarlander.toml", steps: "1,000,000", bar: 270.9 - 32.1,
		published: "270.9 ± 32.1 RL Zoo (v2)", sets: []string{"env.lunarlander.use=gymnasium:LunarLanderContinuous-v3"}},
	{name: "BipedalWalker-v3", preset: "continuous and keys", file: "examples/pipelines/bipedalwalker.toml", steps: "5,000,000", bar: 213 - 129,
		published: "213 ± 129 RL Zoo"},
	mujoco("InvertedPendulum-v4", "200,000", 963, 22),
	mujoco("HalfCheetah-v4", "1,000,000", 1443, 46),
	mujoco("Hopper-v4", "1,000,000", 2383, 272),
	mujoco("Walker2d-v4", "1,000,000", 2288, 572),
	minatar("Breakout", "300,000", 6, ""),
	minatar("Breakout", "10,000,000", 28, "28 gymnax"),
	minatar("Freeway", "10,000,000", 58, "58 gymnax"),
	sanity("bandit"),
	sanity("memory", `policy.main.net={core={kind="gru",size=64}}`),
	sanity("password"),
	sanity("spaces"),
	sanity("squared"),
	sanity("stochastic"),
	sanity("continuous"),
	sanity("tuple"),
}

// minatar is a game of MinAtar. One that is short is in the test, and its bar is ours; gymnax's figures are of the checkpoints in its README at 086ad95.
func minatar(game, steps string, bar float64, published string) task {
	name := fmt.Sprintf("MinAtar %s %s", game, strings.ReplaceAll(steps, ",000,000", "M"))
	return task{name: name, preset: "general and keys", file: "examples/pipelines/minatar.toml",
		steps: steps, bar: bar, published: published, inTest: published == "",
		sets: []string{"env.minatar.use=minatar-" + strings.ToLower(game) + "@1", "run.stop.env_steps=" + strings.ReplaceAll(steps, ",", "_")}}
}

// positions is a task without velocities over some thousand env steps, learned with a core or, to show that it takes one, without.
func positions(name, preset, core string, thousands int, bar float64, keys ...string) task {
	t := task{name: name + " positions", preset: preset + " and " + core, file: "examples/pipelines/" + strings.ToLower(name) + "-positions.toml",
		steps: fmt.Sprintf("%d,000", thousands), bar: bar, inTest: name == "CartPole", sets: append([]string{"policy.main.net.core.kind=" + core}, keys...)}
	if core == "" {
		t.preset, t.below, t.sets = preset, true, []string{"policy.main.net={}"}
	}
	return t
}

// sanity is a task of the sanity set, whose returns are scores from 0 to 1.
func sanity(name string, keys ...string) task {
	t := task{name: "Sanity " + name, preset: "general", file: "examples/pipelines/sanity.toml", steps: "50,000", bar: 0.9,
		sampled: name == "stochastic", inTest: true, brief: true, sets: append([]string{"env.sanity.use=" + name + "@1"}, keys...)}
	if len(keys) > 0 {
		t.preset += " and keys"
	}
	return t
}

// mujoco is a task of MuJoCo, whose bar is CleanRL's mean after 1,000,000 env steps less its deviation. A task that takes fewer is in the test.
func mujoco(name, steps string, mean, deviation float64) task {
	return task{name: name, preset: "continuous", file: "examples/pipelines/mujoco.toml", steps: steps, bar: mean - deviation,
		published: fmt.Sprintf("%g ± %g CleanRL", mean, deviation), inTest: steps != "1,000,000",
		sets: []string{"env.mujoco.use=gymnasium:" + name, "run.stop.env_steps=" + strings.ReplaceAll(steps, ",", "_")}}
}

func cartpole(preset string, inTest bool) task {
	return task{name: "CartPole-v1", preset: preset, file: "pipeline.toml", steps: "500,000", bar: 475, published: "500 ± 0 RL Zoo, 490.0 ± 6.1 CleanRL", inTest: inTest,
		sets: []string{"train.preset=" + preset}}
}

// allTasks are the tasks of the page. Their builds are kept in the folder of trainings, which continue with them.
func allTasks(ctx context.Context, work string) ([]task, error) {
	module, err := filepath.Abs(filepath.Join(work, "scaled.wasm"))
	if err != nil {
		return nil, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-buildmode=c-shared", "-ldflags=-s", "-o", module, "./bench/learn/scaled")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build ./bench/learn/scaled: %w\n%s", err, out)
	}
	return slices.Concat(tasks, scaledTasks(module)), nil
}

// scaledTasks are CartPole with its rewards multiplied, by a separate module.
func scaledTasks(module string) (list []task) {
	for _, scale := range []float64{1e-4, 1e-2, 1, 100, 1e4} {
		t := cartpole("general", false)
		t.name, t.scale, t.published = fmt.Sprintf("CartPole × %g", scale), scale, ""
		t.bar *= scale
		t.sets = append(t.sets, "env.cartpole.use="+strconv.Quote(module), fmt.Sprintf("env.cartpole.args.reward_scale=%g", scale),
			fmt.Sprintf("run.stop.return=%g", t.bar))
		list = append(list, t)
	}
	return list
}
