package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// task is something to learn with settings of this repository.
type task struct {
	name   string
	preset string
	file   string // pipeline
	sets   []string
	steps  string  // env steps at most, as the page writes them
	bar    float64 // for the mean evaluation over the seeds
	whence string  // where the bar is from
	inTest bool
}

// The bars: CartPole-v1 counts as solved at 475; CleanRL's figure for Acrobot-v1 is from its own benchmark of ppo.py.
var tasks = []task{
	cartpole("general", true),
	cartpole("fast", false),
	{name: "Acrobot-v1", preset: "general", file: "examples/pipelines/acrobot.toml", steps: "500,000", bar: -86.4, whence: "CleanRL", inTest: true},
	{name: "Acrobot-v1", preset: "ppo", file: "examples/pipelines/acrobot.toml", steps: "500,000", bar: -86.4, whence: "CleanRL",
		sets: []string{"train.preset=ppo"}},
	{name: "MountainCar-v0", preset: "general", file: "examples/pipelines/mountaincar.toml", steps: "1,000,000", bar: -115, inTest: true},
}

func cartpole(preset string, inTest bool) task {
	return task{name: "CartPole-v1", preset: preset, file: "pipeline.toml", steps: "500,000", bar: 475, whence: "solved", inTest: inTest,
		sets: []string{"train.preset=" + preset}}
}

// scaled are tasks that need a module of their own.
type scaled struct {
	tasks []task
	dir   string
}

func (s *scaled) remove() { _ = os.RemoveAll(s.dir) } // a temporary folder that stays harms nothing

// scaledTasks builds CartPole with scaled rewards.
func scaledTasks(ctx context.Context) (*scaled, error) {
	dir, err := os.MkdirTemp("", "rlhost-learn-")
	if err != nil {
		return nil, err
	}
	s := &scaled{dir: dir}
	module := filepath.Join(dir, "scaled.wasm")
	build := exec.CommandContext(ctx, "go", "build", "-buildmode=c-shared", "-ldflags=-s", "-o", module, "./bench/learn/scaled")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		s.remove()
		return nil, fmt.Errorf("build ./bench/learn/scaled: %w\n%s", err, out)
	}
	for _, scale := range []string{"1e-4", "1e-2", "1", "100", "1e4"} {
		t := cartpole("general", false)
		times, err := strconv.ParseFloat(scale, 64)
		if err != nil {
			s.remove()
			return nil, err
		}
		t.name = scale
		t.bar *= times
		t.sets = append(t.sets, "env.cartpole.use="+strconv.Quote(module), fmt.Sprintf("env.cartpole.args.reward_scale=%s", scale),
			fmt.Sprintf("run.stop.return=%g", t.bar))
		s.tasks = append(s.tasks, t)
	}
	return s, nil
}
