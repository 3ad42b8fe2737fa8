package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/rlhost/rlhost/cmd/rlhost/results"
	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/seeds"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// openSet returns the set of seeds that the command is about, nil if it is about a single run.
func (t *training) openSet() (*runs.Set, error) {
	c := t.command
	list, err := seeds.Parse(c.Seeds)
	if err != nil {
		return nil, fail(exitUsage, err)
	}
	if c.Resume != "" {
		set, err := runs.OpenSet(c.Dir(), c.Resume)
		if err == nil && set.Info().Sweep != nil {
			return nil, fail(exitUsage, fmt.Errorf("%s is a search: rlhost sweep --resume goes on with it", set.ID()))
		}
		if err == nil && len(c.Set) > 0 {
			return nil, fail(exitUsage, errors.New("the seeds of a set differ in nothing else: leave --set out, or begin a new set without --resume"))
		}
		if err == nil {
			return set, seeds.GoOn(set, list)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	switch {
	case c.Resume != "" && list != nil:
		return nil, fail(exitUsage, fmt.Errorf("%s is no set: --seeds with --resume adds seeds to one, such as cartpole/4; rlhost runs lists them", c.Resume))
	case list != nil && c.Pipeline == standardInput:
		return nil, fail(exitUsage, errors.New("each seed reads the pipeline again, which standard input allows once: write it to a file"))
	case list != nil:
		return t.newSet(list)
	case c.Jobs != 0:
		return nil, fail(exitUsage, errors.New("--jobs goes with --seeds, or with the --resume of a set"))
	}
	return nil, nil
}

// newSet makes a set of the pipeline, once that has been checked.
func (t *training) newSet(list []uint64) (set *runs.Set, err error) {
	c := t.command
	err = t.withParts(func(parts *graph.Parts, _ *builtin.Engines) error {
		file := cmp.Or(c.Pipeline, results.DefaultPipeline)
		g, err := t.readGraph(file, c.Set, parts)
		if err == nil {
			err = session.Vet(context.Background(), g, parts) // once, and not for each seed
		}
		if err == nil {
			if g.Cluster.Listen != "" {
				return fail(exitUsage, errors.New("--seeds: machines join one run: leave cluster.listen out, or add --set cluster.listen='\"\"'"))
			}
			set, err = seeds.New(g.Run.Dir, g.Run.Name, file, c.Set, list)
		}
		return err
	})
	return set, err
}

// trainSeeds trains a set.
func (t *training) trainSeeds(set *runs.Set, err error) error {
	if err != nil {
		return t.printProblems(err)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	t.program = t.onScreen(t.command.JSON).outlasting()
	ctx, stop := t.interruptible(onSignals{parting: func() {}})
	defer stop()
	if err := t.command.attach(); err != nil {
		return err
	}
	jobs := cmp.Or(t.command.Jobs, runtime.GOMAXPROCS(0))
	view := &seeds.View{Out: t.out, Set: set, Terminal: t.screen != nil, Size: screenSize, JSON: t.command.JSON}
	trainer := seeds.Trainer{Program: program, Set: set, Jobs: jobs, Threads: max(1, runtime.GOMAXPROCS(0)/jobs), Observe: view.Observe}
	err = trainer.Run(ctx)
	view.End()
	info := set.Info()
	if err = errors.Join(err, set.Close()); err != nil {
		return err
	}
	if ctx.Err() != nil {
		t.notice("to go on: rlhost train --resume %s", set.Dir)
		return t.endedBy(context.Cause(ctx))
	}
	return t.judge(&info, set.Dir)
}

// judge sums up.
func (t *training) judge(info *runs.SetInfo, dir string) error {
	c := seeds.Conclude(info, dir, time.Since(t.started))
	if t.command.JSON {
		if err := t.encode(c); err != nil {
			return err
		}
	} else if err := t.forResults().Table(seeds.Rows(info.Seeds)); err != nil {
		return err
	} else {
		fmt.Fprint(t.out, printable(c.Text()))
	}
	switch {
	case c.Failed > 0:
		return fail(exitFailed, fmt.Errorf("%s failed", text.Count(c.Failed, "seed")))
	case c.Judged == 0:
		return t.require.judge(nil, "")
	}
	return t.require.judge(&c.Summary.Mean.Low, players.Acting(c.Greedy()))
}
