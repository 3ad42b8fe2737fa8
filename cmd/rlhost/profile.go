package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rlhost/rlhost/cmd/rlhost/profile"
	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/pipeline/bench"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"
)

type profileCommand struct {
	envFlags
	Envs    int     `default:"64" help:"Environments stepped by one call."`
	Seconds float64 `default:"5" help:"Time that is sampled."`
	Out     string  `default:"profile.pb.gz" placeholder:"FILE" help:"Profile for go tool pprof."`
	Folded  string  `placeholder:"FILE" help:"Also the stacks as lines, for flame graphs."`
}

// Help says what a profile shows.
func (c *profileCommand) Help() string {
	return `The environment takes random actions, and the sandbox looks at its stack about every 0.2 ms. Functions have their names where the
module keeps them, and lines where it was built with -g. What the compiler has inlined counts for the function that it is in.

  rlhost profile my.wasm
  go tool pprof -http=: profile.pb.gz`
}

// shownFunctions is how many functions are printed; the file has all.
const shownFunctions = 12

// Run profiles a module.
func (c *profileCommand) Run(p *program) error {
	if c.Envs < 1 || c.Envs > bench.MaxEnvs {
		return fail(exitUsage, fmt.Errorf("--envs %d: want 1 to %d", c.Envs, bench.MaxEnvs))
	}
	if c.Seconds <= 0 || c.Seconds > 3600 {
		return fail(exitUsage, fmt.Errorf("--seconds %g: want more than 0, at most 3600", c.Seconds))
	}
	var r *profile.Result
	err := p.withParts(func(parts *graph.Parts, _ *builtin.Engines) (err error) {
		t := c.table(c.Env, parts)
		if t.Plugin != nil || c.Runtime != "host" {
			return fail(exitUsage, fmt.Errorf("%s runs in a process of its own: rlhost profiles modules in its sandbox\n  help: for Python, py-spy; for native programs, perf", c.Env))
		}
		o := profile.Options{Path: c.Env, Module: plugins.Builtins()[c.Env], Source: t.Source, Envs: c.Envs, Time: time.Duration(c.Seconds * float64(time.Second))}
		r, err = profile.Run(context.Background(), o, compilerCommand)
		if err != nil {
			return memoryHelp(loadError(c.Env, err), "lower --envs")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := writeProfile(c.Out, r.WritePprof); err != nil {
		return err
	}
	if c.Folded != "" {
		if err := writeProfile(c.Folded, r.WriteFolded); err != nil {
			return err
		}
	}
	if c.JSON {
		return p.encode(r)
	}
	c.print(p, r)
	return nil
}

func writeProfile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

func (c *profileCommand) print(p *program, r *profile.Result) {
	percent := func(d time.Duration) float64 { return 100 * d.Seconds() / r.Time.Seconds() }
	fmt.Fprintf(p.out, "%s  %d envs per call, %d env steps in %.2f s: %.1f ns and %.1f fuel an env step, %d samples\n",
		printable(r.Env), r.Envs, r.EnvSteps, r.Time.Seconds(), r.Plain, r.Fuel, r.Samples)
	fmt.Fprintf(p.out, "sampling made it %.1f %% slower\n", max(0, 100*(r.Sampled/r.Plain-1)))
	for _, x := range r.Exports {
		fmt.Fprintf(p.out, "  %-28s %6.1f %%  %8.1f ns an env step\n", printable(x.Name), percent(x.Time), float64(x.Time.Nanoseconds())/float64(r.EnvSteps))
	}
	fmt.Fprintf(p.out, "  %-28s %8s  %10s\n", "function", "itself", "with calls")
	for _, f := range r.Functions[:min(len(r.Functions), shownFunctions)] {
		fmt.Fprintf(p.out, "  %-28s %6.1f %%  %8.1f %%\n", printable(f.Name), percent(f.Own), percent(f.Whole))
	}
	fmt.Fprintf(p.out, "go tool pprof -http=: %s\n", printable(c.Out))
}
