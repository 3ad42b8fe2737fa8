package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
)

// result is what came of one training.
type result struct {
	evaluation float64 // mean return of the frozen policy
	reached    float64 // env steps until the window of training episodes was at the bar; NaN if it never was
	seconds    float64
	kernels    string
}

// row is a task with the results of its seeds, from 1.
type row struct {
	task
	results []result
}

// trainAll trains each task with each seed, some at a time.
func trainAll(ctx context.Context, o options, list []task, seeds, otherwise int) ([]row, error) {
	if seeds == 0 {
		seeds = otherwise
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	rows := make([]row, len(list))
	turns := make(chan struct{}, o.jobs)
	var all sync.WaitGroup
	for i := range list {
		rows[i] = row{list[i], make([]result, seeds)}
		for seed := range seeds {
			turns <- struct{}{}
			all.Go(func() {
				defer func() { <-turns }()
				var err error
				if rows[i].results[seed], err = train(ctx, o.program, &list[i], seed+1); err != nil {
					cancel(err)
				}
			})
		}
	}
	all.Wait()
	return rows, context.Cause(ctx)
}

// end is what the last line of a training says.
type end struct {
	Event      string   `json:"event"`
	Reason     string   `json:"reason"`
	Run        string   `json:"run"`
	Kernels    string   `json:"kernels"`
	Wall       float64  `json:"wall_seconds"`
	Evaluation *float64 `json:"eval_return"`
	Episodes   int      `json:"eval_episodes"`
	Greedy     bool     `json:"eval_deterministic"`
}

// train trains one task with one seed.
func train(ctx context.Context, program string, t *task, seed int) (r result, err error) {
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	dir, err := os.MkdirTemp("", "rlhost-learn-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	args := []string{"train", t.file, "--json", "--set", "run.dir=" + dir, "--set", fmt.Sprint("run.seed=", seed), "--set", "run.checkpoint.every=0s"}
	for _, s := range t.sets {
		args = append(args, "--set", s)
	}
	var complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("%s, seed %d: %w\n%s", t.name, seed, err, complaints.Bytes())
	}
	var e end
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &e); err != nil || e.Event != "end" || e.Evaluation == nil || e.Episodes < 100 || !e.Greedy {
		return r, fmt.Errorf("%s, seed %d: the last line is no end with a greedy evaluation of 100 episodes: %s (%w)", t.name, seed, lines[len(lines)-1], err)
	}
	r = result{evaluation: *e.Evaluation, seconds: e.Wall, kernels: e.Kernels}
	r.reached, err = reached(filepath.Join(dir, e.Run, "metrics.jsonl"), t.bar)
	return r, err
}

// reached returns the env steps at which the mean return over a full window was first at the bar, NaN if it never was.
func reached(file string, bar float64) (float64, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var m struct {
			Steps  float64  `json:"global_step"`
			Full   float64  `json:"charts/window_full"`
			Return *float64 `json:"charts/episodic_return"` // null while it is not finite
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		if m.Full == 1 && m.Return != nil && *m.Return >= bar {
			return m.Steps, nil
		}
	}
	return math.NaN(), nil
}

// evaluations returns those of the seeds, in their order.
func (r *row) evaluations() []float64 {
	return r.each(func(x *result) float64 { return x.evaluation })
}

func (r *row) mean() float64 {
	sum := 0.0
	for _, v := range r.evaluations() {
		sum += v
	}
	return sum / float64(len(r.results))
}

// median returns the middle of a list, the mean of the middle two of an even number. NaN counts as more than all others.
func median(list []float64) float64 {
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, func(a, b float64) int {
		switch {
		case a == b || math.IsNaN(a) && math.IsNaN(b):
			return 0
		case math.IsNaN(b) || a < b:
			return -1
		}
		return 1
	})
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// each returns one number of every seed.
func (r *row) each(of func(*result) float64) []float64 {
	list := make([]float64, len(r.results))
	for i := range r.results {
		list[i] = of(&r.results[i])
	}
	return list
}
