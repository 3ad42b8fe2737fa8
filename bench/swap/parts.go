package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/control"
)

// guest returns the module of the cartpole in a language.
func (o options) guest(language string) string {
	return filepath.Join(o.guests, "cartpole-"+language, "cartpole.wasm")
}

func quantile(list []float64, q float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[min(int(q*float64(len(list))), len(list)-1)]
}

// pauses swaps a module for itself again and again, and reports how long stepping stood still.
func pauses(ctx context.Context, o options) error {
	n := cmp.Or(o.changes, 1000)
	fmt.Printf("%-6s %-12s %-6s %8s %8s %8s   %s\n", "guest", "boundary", "state", "p50 ms", "p99 ms", "most ms", "bar p50, p99")
	for _, language := range []string{"c", "rust", "go"} {
		for _, at := range []string{"trajectory", "step"} {
			for _, keep := range []bool{false, true} {
				if err := pausesOf(ctx, o, language, at, keep, n); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func pausesOf(ctx context.Context, o options, language, at string, keep bool, n int) error {
	j, err := start(ctx, o, setup{guest: o.guest(language)})
	if err != nil {
		return err
	}
	var list []float64
	for i := range n {
		// The other way round each time, so that it is another file: the same one would be no change.
		r, err := j.swap(ctx, o.other(language, i), at, keep)
		if err != nil {
			return errors.Join(err, j.stop(ctx))
		}
		if r.Outcome != control.Committed || r.Dropped != 0 {
			return fmt.Errorf("change %d: %+v", i, r)
		}
		list = append(list, r.PauseP50)
	}
	state, bar := "new", "0.3, 1"
	if keep {
		state = "kept"
	}
	if language == "go" {
		bar = "1, 3"
	}
	fmt.Printf("%-6s %-12s %-6s %8.3f %8.3f %8.3f   %s\n", language, at, state, quantile(list, 0.5), quantile(list, 0.99), slices.Max(list), bar)
	return j.stop(ctx)
}

// wrappers swaps one wrapper between two others again and again, and reports how long stepping was paused and the losses.
func wrappers(ctx context.Context, o options) error {
	n := cmp.Or(o.changes, 1000)
	fmt.Printf("%-12s %8s %8s %8s %10s   %s\n", "boundary", "p50 ms", "p99 ms", "most ms", "kept", "bar p99")
	for _, at := range []string{"trajectory", "step"} {
		if err := wrappersAt(ctx, o, at, n); err != nil {
			return err
		}
	}
	return nil
}

func wrappersAt(ctx context.Context, o options, at string, n int) error {
	j, err := start(ctx, o, setup{guest: o.guest("c"), wrap: `{ time_limit = 400 }, { record_stats = "a" }, { reward_scale = 0.5 }`})
	if err != nil {
		return err
	}
	var list []float64
	kept, none, probation := 0, 0, 0.0
	for i := range n {
		q := control.SwapRequest{Component: "rollout.wrap[1]", File: fmt.Sprintf("{ record_stats = %q }", []string{"b", "a"}[i%2]), At: at, TrialEnvs: &none, Probation: &probation}
		var r control.SwapReply
		if err := j.client.Do(ctx, control.VerbSwap, q, &r, nil); err != nil || r.Outcome != control.Committed || r.Dropped+uint64(r.Truncated) != 0 {
			return errors.Join(fmt.Errorf("change %d: %+v: %w", i, r, err), j.stop(ctx))
		}
		kept += r.Kept
		list = append(list, r.PauseP50)
	}
	fmt.Printf("%-12s %8.3f %8.3f %8.3f %10d   0.3\n", at, quantile(list, 0.5), quantile(list, 0.99), slices.Max(list), kept)
	s, err := j.status(ctx)
	if err == nil {
		steps := s.Steps
		fmt.Printf("%d changes; env steps made %d = trained %d + dropped %d + under way %d (difference %d)\n", n, steps.Made,
			steps.Trained, steps.Dropped, steps.UnderWay, int64(steps.Made)-int64(steps.Trained)-int64(steps.Dropped)-int64(steps.UnderWay))
	}
	return errors.Join(err, j.stop(ctx))
}

// other returns the file of a change: the cartpole itself and, every second time, the one in C, or in Rust where the run
// began with that in C.
func (o options) other(language string, i int) string {
	if i%2 == 1 {
		return o.guest(language)
	}
	if language == "c" {
		return o.guest("rust")
	}
	return o.guest("c")
}

// many changes the environments of one run again and again, and every hundredth time its inference to a process and back, and
// shows that it holds no more for it in the end.
func many(ctx context.Context, o options) error {
	n := cmp.Or(o.changes, 10000)
	j, err := start(ctx, o, setup{guest: o.guest("c")})
	if err != nil {
		return err
	}
	began := time.Now()
	fmt.Printf("%8s %10s %12s %10s %8s %10s %12s %8s %8s\n", "changes", "goroutines", "descriptors", "mappings", "MB", "kept", "ended", "dropped", "return")
	var kept, ended, dropped uint64
	for i := range n {
		file := o.guest("rust")
		if i%2 == 1 {
			file = o.guest("c")
		}
		r, err := j.swap(ctx, file, "trajectory", true)
		if err == nil && i%100 == 99 {
			err = j.throughProcess(ctx)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("change %d: %w", i, err), j.stop(ctx))
		}
		kept, ended, dropped = kept+uint64(r.Kept), ended+uint64(r.Truncated), dropped+r.Dropped
		if (i+1)%(n/10) == 0 || i == 9 {
			s, err := j.status(ctx)
			if err != nil {
				return err
			}
			mean := "–"
			if s.MeanReturn != nil {
				mean = fmt.Sprintf("%.1f", *s.MeanReturn)
			}
			fmt.Printf("%8d %10d %12d %10d %8.1f %10d %12d %8d %8s\n", i+1, s.Resources.Goroutines, s.Resources.Descriptors,
				s.Resources.Mappings, float64(s.Resources.Resident)/1e6, kept, ended, dropped, mean)
		}
	}
	s, err := j.status(ctx)
	if err != nil {
		return err
	}
	steps := s.Steps
	fmt.Printf("%d changes in %.1f s; env steps made %d = trained %d + dropped %d + under way %d (difference %d)\n", n,
		time.Since(began).Seconds(), steps.Made, steps.Trained, steps.Dropped, steps.UnderWay,
		int64(steps.Made)-int64(steps.Trained)-int64(steps.Dropped)-int64(steps.UnderWay))
	return j.stop(ctx)
}

// throughput compares runs that are asked, and that could be, with runs that cannot, because they have no socket.
func throughput(ctx context.Context, o options) error {
	contenders := []struct {
		name string
		deaf bool
		ask  func(ctx context.Context, j *job) error // until ctx ends
	}{
		{"no socket", true, nil}, {"no socket again", true, nil}, {"idle socket", false, nil},
		{"status at 10 Hz", false, askStatus}, {"one tap", false, askTap},
	}
	rates := make([][]float64, len(contenders))
	for range o.rounds {
		for i, c := range contenders {
			rate, err := rateOf(ctx, o, c.deaf, c.ask)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			rates[i] = append(rates[i], rate)
		}
	}
	fmt.Printf("%-16s %14s %10s %10s %10s\n", "", "env steps/s", "ratio", "least", "most")
	for i, c := range contenders {
		ratios := make([]float64, o.rounds)
		for k := range ratios {
			ratios[k] = rates[i][k] / rates[0][k]
		}
		fmt.Printf("%-16s %14.0f %10.3f %10.3f %10.3f\n", c.name, quantile(rates[i], 0.5), quantile(ratios, 0.5), slices.Min(ratios), slices.Max(ratios))
	}
	return nil
}

// measured is how many env steps a run makes that is compared with others: some seconds' worth.
const measured = 2_000_000

// rateOf returns the env steps a second of a whole run, by its own account.
func rateOf(ctx context.Context, o options, deaf bool, ask func(context.Context, *job) error) (float64, error) {
	j, err := start(ctx, o, setup{guest: o.guest("c"), steps: measured, deaf: deaf})
	if err != nil {
		return 0, err
	}
	asking, cancel := context.WithCancel(ctx)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		if ask != nil {
			_ = ask(asking, j) // ends with the run
		}
	}()
	last, err := j.end()
	cancel()
	<-asked
	if err != nil {
		return 0, err
	}
	steps, counted := last["env_steps"].(float64)
	seconds, timed := last["wall_seconds"].(float64)
	if !counted || !timed {
		return 0, fmt.Errorf("the run's last line says %v", last)
	}
	return steps / seconds, nil
}

func askStatus(ctx context.Context, j *job) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if _, err := j.status(ctx); err != nil {
				return err
			}
		}
	}
}

func askTap(ctx context.Context, j *job) error {
	return j.client.Do(ctx, control.VerbTap, control.TapRequest{Pattern: "rollout.trajectories"}, nil, func(json.RawMessage) {})
}
