package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/seeds"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// openSet returns the set of seeds that the command is about, nil if it is about a single run.
func (c *trainCommand) openSet() (*runs.Set, error) {
	if c.Seeds == "" {
		set, err := runs.OpenSet(c.dir(), c.Resume)
		switch {
		case c.Resume != "" && err == nil:
			return set, set.Lock()
		case c.Jobs != 0:
			return nil, fail(exitUsage, errors.New("--jobs goes with --seeds, or with the --resume of a set"))
		case c.Resume == "" || errors.Is(err, fs.ErrNotExist):
			return nil, nil
		}
		return nil, err
	}
	list, err := seeds.Parse(c.Seeds)
	if err != nil {
		return nil, fail(exitUsage, err)
	}
	info := runs.SetInfo{Rlhost: hostabi.Release, Sets: c.Set}
	if info.Pipeline, err = filepath.Abs(cmp.Or(c.Pipeline, defaultPipeline)); err != nil {
		return nil, err
	}
	for _, seed := range list {
		info.Seeds = append(info.Seeds, runs.SeedRun{Seed: seed, State: runs.Pending})
	}
	return c.newSet(info)
}

// newSet makes a set for a pipeline that is right.
func (c *trainCommand) newSet(info runs.SetInfo) (set *runs.Set, err error) {
	p := &program{out: os.Stdout, err: os.Stderr, cli: &commandLine{Log: "text"}}
	err = p.withParts(func(parts *graph.Parts, _ *builtin.Engines) error {
		g, _, err := p.readGraph(info.Pipeline, info.Sets, parts)
		if err != nil {
			return err
		}
		if info.SHA256, err = files.SHA256(info.Pipeline); err != nil {
			return err
		}
		set, err = runs.CreateSet(g.Run.Dir, g.Run.Name, info)
		return err
	})
	return set, err
}

// trainSeeds trains a set.
func (t *training) trainSeeds(set *runs.Set, err error) error {
	if err != nil {
		return t.told(err)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	t.program = t.onScreen(t.command.JSON)
	ctx, stop := t.interruptible(func() {})
	defer stop()
	jobs := cmp.Or(t.command.Jobs, runtime.GOMAXPROCS(0))
	view := &seeds.View{Out: t.out, Set: set, Terminal: t.screen != nil, JSON: t.command.JSON}
	trainer := seeds.Trainer{Program: program, Set: set, Jobs: jobs, Threads: max(1, runtime.GOMAXPROCS(0)/jobs), Observe: view.Observe}
	err = trainer.Run(ctx)
	view.End()
	info := set.Info()
	if err = errors.Join(err, set.Close()); err != nil {
		return err
	}
	if ctx.Err() != nil {
		t.notice("to go on: rlhost train --resume %s", set.Dir)
		return said(exitInterrupted, errInterrupted)
	}
	return t.judge(&info, set.Dir)
}

// judge sums up.
func (t *training) judge(info *runs.SetInfo, dir string) error {
	scores, ended, failed := seeds.Results(info)
	s := seeds.Summarize([][]float64{scores}, seeds.Options{})
	if t.command.JSON {
		if err := t.encode(map[string]any{"event": "end", "set": info.ID(), "ended": ended, "failed": failed, "seeds": info.Seeds, "summary": s,
			"wall_seconds": time.Since(t.started).Seconds()}); err != nil {
			return err
		}
	} else {
		if err := t.table(seeds.Rows(info.Seeds)); err != nil {
			return err
		}
		fmt.Fprintf(t.out, "%d of %s ended, %d failed, %.2f s; set %s\n", ended, text.Count(len(info.Seeds), "seed"), failed, time.Since(t.started).Seconds(), dir)
		if len(scores) > 0 {
			fmt.Fprintf(t.out, "mean   %s (%s)\nmedian %s (%s)\nIQM    %s (%s)  95 %% bootstrap intervals over %s\n", text.Returns(s.Mean.Value), s.Mean.Interval(),
				text.Returns(s.Median.Value), s.Median.Interval(), text.Returns(s.IQM.Value), s.IQM.Interval(), text.Count(len(scores), "seed"))
		}
	}
	switch {
	case failed > 0:
		return fail(exitFailed, fmt.Errorf("%s failed", text.Count(failed, "seed")))
	case len(scores) == 0:
		return t.require.judge(nil)
	}
	return t.require.judge(&s.Mean.Low)
}
