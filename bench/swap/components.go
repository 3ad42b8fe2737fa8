package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/rlhost/rlhost/core/control"
)

// shaper compares runs in which the shaper in C shapes the rewards of each block with runs without it, by the clock and by the processor
// time of the whole run, which other work on the machine disturbs less.
func shaper(ctx context.Context, o options) error {
	module, err := filepath.Abs(filepath.Join(o.guests, "shaper-c", "shaper.wasm"))
	if err != nil {
		return err
	}
	contenders := []struct{ name, module string }{{"without", ""}, {"without again", ""}, {"shaper in C", module}}
	rates, costs := make([][]float64, len(contenders)), make([][]float64, len(contenders))
	for range o.rounds {
		for i, c := range contenders {
			rate, cost, err := whole(ctx, o, setup{guest: o.guest("c"), steps: measured, deaf: true, shaper: c.module})
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			rates[i], costs[i] = append(rates[i], rate), append(costs[i], cost)
		}
	}
	fmt.Printf("%-14s %12s %22s %12s %22s\n", "", "env steps/s", "ratio, least, most", "per CPU s", "ratio, least, most")
	for i, c := range contenders {
		fmt.Printf("%-14s %12.0f %22s %12.0f %22s\n", c.name, quantile(rates[i], 0.5), ratios(rates[i], rates[0]), quantile(costs[i], 0.5), ratios(costs[i], costs[0]))
	}
	return nil
}

// ratios describes the median of the ratios of two lists, and their minimum and maximum.
func ratios(list, of []float64) string {
	all := slices.Clone(list)
	for k := range all {
		all[k] /= of[k]
	}
	return fmt.Sprintf("%.3f, %.3f, %.3f", quantile(all, 0.5), slices.Min(all), slices.Max(all))
}

// whole returns the env steps of a run by second, by its own account, and by second of processor time.
func whole(ctx context.Context, o options, s setup) (rate, perCPU float64, err error) {
	j, err := start(ctx, o, s)
	if err != nil {
		return 0, 0, err
	}
	last, err := j.end()
	if err != nil {
		return 0, 0, err
	}
	steps, counted := last["env_steps"].(float64)
	seconds, timed := last["wall_seconds"].(float64)
	if !counted || !timed {
		return 0, 0, fmt.Errorf("the run's last line says %v", last)
	}
	used := j.cmd.ProcessState.UserTime() + j.cmd.ProcessState.SystemTime()
	return steps / seconds, steps / used.Seconds(), nil
}

// components swaps the shaper of a run for itself again and again, and reports the run's losses. A module is another one with another
// custom section. How long its messages wait is BenchmarkSwap in plugins/wasm/component.
func components(ctx context.Context, o options) error {
	n := cmp.Or(o.changes, 1000)
	for _, language := range []string{"c", "go"} {
		module := filepath.Join(o.guests, "shaper-"+language, "shaper.wasm")
		if _, err := os.Stat(module); err != nil {
			fmt.Printf("shaper-%s is not built: go run ./examples/plugins/build shaper-%s\n", language, language)
			continue
		}
		if err := componentsOf(ctx, o, language, module, n); err != nil {
			return err
		}
	}
	return nil
}

func componentsOf(ctx context.Context, o options, language, module string, n int) error {
	files, err := twins(module)
	if err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Dir(files[0]))
	j, err := start(ctx, o, setup{guest: o.guest("c"), shaper: files[0]})
	if err != nil {
		return err
	}
	none, probation := 0, 0.0
	for i := range n {
		var r control.SwapReply
		err := j.client.Do(ctx, control.VerbSwap, control.SwapRequest{Component: "shaper", File: files[(i+1)%2], TrialEnvs: &none, Probation: &probation}, &r, nil)
		if err != nil || r.Outcome != control.Committed || r.Dropped != 0 {
			return errors.Join(fmt.Errorf("change %d: %+v: %w", i, r, err), j.stop(ctx))
		}
	}
	s, err := j.status(ctx)
	if err == nil {
		steps := s.Steps
		fmt.Printf("shaper-%s: %d changes; env steps made %d = trained %d + dropped %d + under way %d (difference %d)\n", language, n, steps.Made,
			steps.Trained, steps.Dropped, steps.UnderWay, int64(steps.Made)-int64(steps.Trained)-int64(steps.Dropped)-int64(steps.UnderWay))
	}
	return errors.Join(err, j.stop(ctx))
}

// twins writes two files that differ only in a custom section.
func twins(module string) (files [2]string, err error) {
	code, err := os.ReadFile(module)
	if err != nil {
		return files, err
	}
	dir, err := os.MkdirTemp("", "rlhost-twins-")
	if err != nil {
		return files, err
	}
	for i := range files {
		files[i] = filepath.Join(dir, fmt.Sprintf("shaper%d.wasm", i))
		section := []byte{0, 3, 1, 't', byte('0' + i)} // a custom section called t
		if err := os.WriteFile(files[i], append(slices.Clone(code), section...), 0o600); err != nil {
			return files, errors.Join(err, os.RemoveAll(dir))
		}
	}
	return files, nil
}
