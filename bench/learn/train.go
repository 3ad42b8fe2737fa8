package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/curves"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/seeds"
)

// Metrics that say when a training was at its bar.
const (
	returnMetric = "charts/episodic_return"
	fullMetric   = "charts/window_full"
)

// train trains a task with seeds from 1 on and returns the results. The folder of the task keeps the seeds that an
// earlier call has trained, and unfinished ones continue.
func train(ctx context.Context, o options, t *task, count int) (*result, error) {
	set, err := open(o, t, count)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	trainer := seeds.Trainer{Program: o.program, Set: set, Jobs: o.jobs, Threads: 1, Observe: func(r runs.SeedRun, _ seeds.Progress) {
		if r.State == runs.Ended || r.State == runs.SeedFailed {
			fmt.Printf("%s, preset %s, seed %d: %s\n", t.name, t.preset, r.Seed, seeds.Text(&r))
		}
	}}
	if err := errors.Join(trainer.Run(ctx), set.Close(), context.Cause(ctx)); err != nil {
		return nil, err
	}
	return resultOf(t, set)
}

// open returns the set of a task with seeds from 1 to count at least: the newest one in its folder of the same
// pipeline and keys, extended by missing seeds, or a new one.
func open(o options, t *task, count int) (*runs.Set, error) {
	dir := filepath.Join(o.work, t.folder())
	list := make([]uint64, count)
	for i := range list {
		list[i] = uint64(i + 1)
	}
	sets := append([]string{"run.checkpoint.every=0s", "run.evaluation.wall_time=30m"}, t.sets...) // a busy machine gets its evaluation, too
	set, err := newest(dir, t.file, sets)
	if set == nil && err == nil {
		return seeds.New(dir, setName, t.file, sets, list)
	}
	if err != nil {
		return nil, err
	}
	return set, seeds.GoOn(set, list)
}

// setName is the name that the sets of every task have in its folder.
const setName = "learn"

// newest returns the last started set in a folder that trains a file as it is now with these keys, nil if there is none.
func newest(dir, file string, sets []string) (*runs.Set, error) {
	sum, err := files.SHA256(file)
	if err != nil {
		return nil, err
	}
	all, err := runs.Sets(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, info := range slices.Backward(all) {
		if info.SHA256 == sum && slices.Equal(info.Sets, sets) {
			return runs.OpenSet(dir, info.ID())
		}
	}
	return nil, err
}

// resultOf reads the results of the seeds of a set.
func resultOf(t *task, set *runs.Set) (*result, error) {
	info := set.Info()
	r := &result{Task: t.name, Preset: t.preset, Steps: t.steps, Bar: t.bar, Below: t.below, BySampled: t.sampled, Published: t.published}
	r.Command = t.command(len(info.Seeds))
	for _, s := range info.Seeds {
		if s.State != runs.Ended || s.Greedy == nil || s.Sampled == nil {
			return nil, fmt.Errorf("%s, preset %s, seed %d is %s: %s", t.name, t.preset, s.Seed, s.State, s.Error)
		}
		dir := filepath.Join(set.Dir, s.Run)
		reached, err := reachedAt(dir, t.bar)
		if err != nil {
			return nil, err
		}
		run, err := runs.Open("", dir)
		if err != nil {
			return nil, err
		}
		r.Kernels, r.Processor, r.CPUs = run.Info().Kernel, run.Info().Host.CPU, run.Info().Host.CPUs
		r.Seeds = append(r.Seeds, seedResult{Seed: s.Seed, Greedy: *s.Greedy, Sampled: *s.Sampled, EnvSteps: s.EnvSteps, Seconds: s.WallSeconds,
			Reached: reached, ParamsHash: s.ParamsHash})
	}
	r.Greedy = seeds.Summarize([][]float64{r.each(func(s *seedResult) float64 { return s.Greedy })}, seeds.Options{})
	r.Sampled = seeds.Summarize([][]float64{r.each(func(s *seedResult) float64 { return s.Sampled })}, seeds.Options{})
	return r, nil
}

// reachedAt returns the env steps at which the mean return over a full window was first at the bar, nil if it never was.
func reachedAt(dir string, bar float64) (*float64, error) {
	full, _, err := curves.Read(dir, fullMetric, curves.EnvSteps)
	if err != nil {
		return nil, err
	}
	mean, _, err := curves.Read(dir, returnMetric, curves.EnvSteps)
	if errors.Is(err, curves.ErrNoMetric) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i, x := range mean.X {
		if full.At(x) == 1 && mean.Y[i] >= bar && !math.IsNaN(mean.Y[i]) {
			return &x, nil
		}
	}
	return nil, nil
}
