package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/cmd/rlhost/results"
	"github.com/rlhost/rlhost/core/ipc"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/search"
	"github.com/rlhost/rlhost/pipeline/seeds"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/pipeline/trials"
)

// sweepCommand holds what can be done with searches.
type sweepCommand struct {
	Run  sweepRunCommand  `cmd:"" default:"withargs" help:"Search for values of keys, as the table [sweep] of a pipeline says."`
	Show results.Trials   `cmd:"" help:"List the trials of a search."`
	Best results.BestKeys `cmd:"" help:"Write the pipeline file with the values that a search has found."`
	Add  results.AddPoint `cmd:"" help:"Add a trial with these values to a search that is not running."`
}

type sweepRunCommand struct {
	Pipeline string   `arg:"" optional:"" predictor:"pipeline" help:"Pipeline file with a table [sweep]; default ./pipeline.toml."`
	Set      []string `placeholder:"KEY=VALUE" sep:"none" help:"Override a key of the file, such as sweep.method=halving. May be repeated."`
	Trials   int      `placeholder:"N" help:"Trials of the search, in place of sweep.trials; with --resume it may raise their number."`
	Jobs     int      `placeholder:"N" help:"Runs at a time; default one for each processor."`
	Resume   string   `placeholder:"SET" help:"Go on with a search, with its own pipeline."`
	runsFlag
	Require  string `placeholder:"CONDITION" help:"Exit with 6 unless the lower end of the interval of a confirmed trial's mean satisfies this, such as 'eval_return>=475'."`
	JSON     bool   `name:"json" help:"Print one JSON object per line; the last one has the event \"end\"."`
	Attached int    `placeholder:"PID" help:"End as SIGTERM does when that process ends, which started this one."`
}

// Help shows how sweep is called.
func (c *sweepRunCommand) Help() string {
	return `Each trial is a run of its own in the folder of the set. The best trials are trained again from nothing with seeds that the
search has not seen: that is the result, and --require judges it. Ctrl-C saves all runs, and --resume goes on as if there had been none.

  rlhost sweep
  rlhost sweep my.toml --trials 64 --jobs 4
  rlhost sweep --resume cartpole/4
  rlhost sweep --require 'eval_return>=475'`
}

// sweeping is one call of sweep.
type sweeping struct {
	*program
	command *sweepRunCommand
	require *requirement
	started time.Time
}

// Run searches.
func (c *sweepRunCommand) Run(p *program) error {
	s := &sweeping{program: p, command: c, started: time.Now()}
	var err error
	if s.require, err = parseRequirement(c.Require); err != nil {
		return fail(exitUsage, err)
	}
	switch {
	case c.Resume != "" && (c.Pipeline != "" || len(c.Set) > 0):
		return fail(exitUsage, errors.New("--resume goes on with the search's own pipeline and keys: leave file and --set out"))
	case c.Pipeline == standardInput:
		return fail(exitUsage, errors.New("each trial reads the pipeline again, which standard input allows once: write it to a file"))
	case c.Trials < 0 || c.Jobs < 0:
		return fail(exitUsage, errors.New("--trials and --jobs are numbers above 0"))
	}
	set, err := s.open()
	if err != nil {
		return s.printProblems(err)
	}
	return s.search(set)
}

// open returns the set of the search, which it has locked.
func (s *sweeping) open() (*runs.Set, error) {
	if s.command.Resume == "" {
		return s.begin()
	}
	set, err := results.FindSweep(&s.command.runsFlag, s.command.Resume)
	if err != nil {
		return nil, err
	}
	return set, set.Lock()
}

// begin makes the set of a pipeline, once that has been checked.
func (s *sweeping) begin() (set *runs.Set, err error) {
	file, sets := cmp.Or(s.command.Pipeline, results.DefaultPipeline), s.command.Set
	if n := s.command.Trials; n > 0 {
		sets = append(slices.Clone(sets), fmt.Sprintf("sweep.trials=%d", n))
	}
	err = s.withGraph(file, sets, func(g *graph.Graph, parts *graph.Parts) error {
		reread := rereading(file, parts)
		c, err := sweepOf(g, sets, reread)
		if err == nil && c == nil {
			err = fail(exitConfig, fmt.Errorf("%s has no table [sweep]\n  help: add [sweep] with a number of trials, and [sweep.space] with the keys to search", file))
		}
		if err == nil {
			err = session.Vet(context.Background(), g, parts) // once, and not for each trial
		}
		if err != nil {
			return err
		}
		schedules, err := schedulesOf(c, sets, reread)
		if err != nil {
			return err
		}
		set, err = trials.New(g.Run.Dir, g.Run.Name, file, append(schedules, sets...),
			trials.Sweep{Config: *c, First: g.Run.Seed, EvaluationSeed: g.Run.Evaluation.Seed})
		return err
	})
	return set, err
}

// rereading reads a file again with other overrides, and says nothing of its warnings.
func rereading(file string, parts *graph.Parts) func(sets []string) (*graph.Graph, error) {
	return func(sets []string) (*graph.Graph, error) {
		src, err := readPipeline(file)
		if err != nil {
			return nil, err
		}
		return graph.Parse(file, src, graph.ParseOptions{Sets: sets, Parts: parts})
	}
}

// sweepOf reads the table [sweep] of a graph, and tries the ends of its space.
func sweepOf(g *graph.Graph, sets []string, reread func(sets []string) (*graph.Graph, error)) (*search.Config, error) {
	return g.Sweep(sets, func(sets []string) error {
		_, err := reread(sets)
		return err
	})
}

// schedulesOf returns overrides for the keys that follow from the env steps of a run, with the values that a whole trial gives them: a rung
// that stops sooner has the same schedules.
func schedulesOf(c *search.Config, sets []string, reread func(sets []string) (*graph.Graph, error)) (schedules []string, err error) {
	var keys [2]map[string]string
	for i, steps := range []uint64{c.EnvSteps, c.EnvSteps + 1} {
		g, err := reread(append(slices.Clone(sets), fmt.Sprintf("run.stop={ env_steps = %d }", steps)))
		if err != nil {
			return nil, err
		}
		keys[i] = g.Keys()
	}
	for key, value := range keys[0] {
		if value != keys[1][key] && !strings.HasPrefix(key, "run.") {
			schedules = append(schedules, key+"="+value)
		}
	}
	slices.Sort(schedules)
	return schedules, nil
}

// search runs a set's trials.
func (s *sweeping) search(set *runs.Set) error {
	sweep, err := trials.Read(set)
	if err != nil {
		return errors.Join(err, set.Close())
	}
	program, err := os.Executable()
	if err != nil {
		return errors.Join(err, set.Close())
	}
	ctx, stop := s.interruptible(onSignals{parting: func() {}})
	defer stop()
	if s.command.Attached != 0 {
		if err := ipc.WhenEnds(s.command.Attached, terminate); err != nil {
			return errors.Join(fail(exitUsage, fmt.Errorf("--attached: %w", err)), set.Close())
		}
	}
	jobs := cmp.Or(s.command.Jobs, runtime.GOMAXPROCS(0))
	runner := &trials.Runner{Process: seeds.Process{Program: program, Threads: max(1, runtime.GOMAXPROCS(0)/jobs)}, Set: set, Sweep: sweep}
	view := &trials.View{Out: s.out, Config: &sweep.Config, JSON: s.command.JSON}
	run := &trials.Search{Set: set, Jobs: jobs, Train: runner.Train, Trials: s.command.Trials, Observe: view.Observe}
	history, err := run.Run(ctx)
	err = errors.Join(err, set.Close())
	if cause := context.Cause(ctx); cause != nil {
		s.notice("to go on: rlhost sweep --resume %s", set.Dir)
		return s.stopped(cause)
	}
	if err != nil {
		return s.explained(err, set)
	}
	return s.judge(trials.Conclude(set, history, &sweep.Config, time.Since(s.started)))
}

// explained says how a search that came to no end is resumed.
func (s *sweeping) explained(err error, set *runs.Set) error {
	if ended := (*trials.EndedError)(nil); errors.As(err, &ended) {
		return fmt.Errorf("%w\n  help: remove the cause, then rlhost sweep --resume %s tries them again", err, filepath.Clean(set.Dir))
	}
	return err
}

// stopped is how a search that was asked to end comes to an end.
func (s *sweeping) stopped(cause error) error {
	if errors.Is(cause, errTerminated) && s.require == nil {
		return printed(exitOK, cause)
	}
	return printed(exitInterrupted, errInterrupted)
}

// judge tells what the search has found.
func (s *sweeping) judge(c *trials.Conclusion) error {
	if s.command.JSON {
		if err := s.encode(c); err != nil {
			return err
		}
	} else {
		fmt.Fprint(s.out, printable(c.Text()))
	}
	if c.Best == nil {
		return fail(exitFailed, errors.New("no trial has a value"))
	}
	if len(c.Confirmed) == 0 || len(c.Confirmed[0].Values) == 0 {
		return s.require.judge(nil, "")
	}
	return s.require.judge(&c.Confirmed[0].Mean.Low, "fresh seeds")
}
