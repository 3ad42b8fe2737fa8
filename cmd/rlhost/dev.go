package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/rlhost/rlhost/cmd/rlhost/results"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/dev"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
)

type devCommand struct {
	Pipeline string   `arg:"" optional:"" predictor:"pipeline" help:"Pipeline file; default ./pipeline.toml."`
	Set      []string `placeholder:"KEY=VALUE" sep:"none" help:"Override a key of the file, as for train. May be repeated."`
	Job      string   `name:"run" placeholder:"RUN" help:"Keep this running training up to date, which rlhost train began; default: begin one."`
	runsFlag
}

// Help says what a save leads to.
func (c *devCommand) Help() string {
	return `Each save of a file below the pipeline's folder is built, by the key build of its table, checked for a moment, and brought into the running
training at its next boundary. A saved pipeline file is reloaded. One line says what came of it. The training continues whatever happens: a
build that fails changes nothing, and a version that fails later is taken back.

The training that this begins has no rules of run.stop: it ends with Ctrl-C.

  rlhost dev
  rlhost dev --run latest`
}

// Run trains and watches, or watches alone.
func (c *devCommand) Run(p *program) error {
	if c.Job != "" {
		return c.attached(p)
	}
	ctx, stop := untilAsked()
	defer stop()
	p = p.onScreen(false).quietly()
	loop := c.loop(p, func(ctx context.Context) (*control.Client, error) { return nil, errNoJob })
	ready, err := loop.Open(ctx)
	for err == nil {
		if !ready {
			err = loop.Wait(ctx)
		}
		if err != nil {
			break
		}
		var began bool
		if began, err = c.train(p, loop); began {
			break
		}
		if err == nil || !couldBegin(err) {
			break
		}
		_ = p.exitCode(err) // it says why
		p.notice("waiting for a save to begin the training")
		ready, err = false, nil
	}
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		err = fail(exitInterrupted, errInterrupted)
	}
	return p.also(p.printProblems(err), loop.Close())
}

// couldBegin reports whether a training that has not begun may begin once a file has been saved.
func couldBegin(err error) bool {
	var e *session.Error
	return errors.As(err, &e) && (e.Kind == session.Kind(exitConfig) || e.Kind == session.Kind(exitPlugin) || e.Kind == session.Kind(exitCheck))
}

// train trains until that ends, and brings saves in. began is false where the run did not come to take commands.
func (c *devCommand) train(p *program, loop *dev.Loop) (began bool, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	serving, ended := make(chan *runs.Run, 1), make(chan error, 1)
	command := &trainCommand{Pipeline: c.Pipeline, Set: loop.Sets, runsFlag: c.runsFlag, serves: func(run *runs.Run) { serving <- run }}
	go func() {
		ended <- command.Run(p)
		cancel()
	}()
	select {
	case err := <-ended:
		return false, err
	case run := <-serving:
		loop.Dial = func(ctx context.Context) (*control.Client, error) { return control.Dial(ctx, run.Info().Socket) }
	}
	watching := loop.Run(ctx)
	if watching != nil {
		p.notice("saves are no longer brought in: %v", watching)
	}
	return true, <-ended
}

// attached keeps a training of another process up to date.
func (c *devCommand) attached(p *program) error {
	f := jobFlags{Job: c.Job, runsFlag: c.runsFlag}
	run, err := f.runningJob()
	if err != nil {
		return err
	}
	ctx, stop := untilAsked()
	defer stop()
	loop := c.loop(p, func(ctx context.Context) (*control.Client, error) { return control.Dial(ctx, run.Info().Socket) })
	loop.Sets = c.Set
	if _, err = loop.Open(ctx); err == nil {
		err = loop.Run(ctx)
	}
	if err = p.also(err, loop.Close()); err == nil && ctx.Err() == nil {
		p.notice("%s has ended", run.ID())
	}
	return err
}

// quietly returns the program without what the line of a save says, and what this command means.
func (p *program) quietly() *program {
	next := *p
	next.quiet = true
	return &next
}

// loop is what watches, for a training without rules by which it ends.
func (c *devCommand) loop(p *program, dial func(context.Context) (*control.Client, error)) *dev.Loop {
	typed := cmp.Or(c.Pipeline, results.DefaultPipeline)
	l := &dev.Loop{File: typed, Sets: append([]string{"run.stop={}"}, c.Set...), Read: readPipeline, Dial: dial}
	l.Say = func(text string) {
		text = strings.ReplaceAll(strings.TrimRight(text, "\n"), l.File+":", typed+":")
		fmt.Fprintf(p.out, "%s %s\n", time.Now().Format(time.TimeOnly), printable(text))
	}
	if src, err := readPipeline(l.File); err == nil {
		dir, _ := graph.RunDir(l.File, src) // Parse reports its problems
		if dir, err := filepath.Abs(filepath.Join(filepath.Dir(l.File), dir)); err == nil {
			l.Skip = append(l.Skip, dir)
		}
	}
	if dir, err := filepath.Abs(c.Dir()); err == nil {
		l.Skip = append(l.Skip, dir)
	}
	return l
}
