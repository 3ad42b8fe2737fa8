package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/wasm"
)

type trainCommand struct {
	Pipeline string   `arg:"" optional:"" default:"pipeline.toml" help:"Pipeline file."`
	Set      []string `placeholder:"KEY=VALUE" sep:"none" help:"Override a key of the file, such as component.learner.epochs=4."`
	Fresh    bool     `xor:"start" help:"Start a new run (the default)."`
	Resume   string   `xor:"start" placeholder:"RUN" help:"Go on with a run from its latest checkpoint."`
	InitFrom string   `xor:"start" placeholder:"RUN" help:"Start a new run from the weights of an old one."`
	Reset    []string `placeholder:"PART" enum:"optimizer,value,normalizer" help:"With --init-from: what to begin anew: optimizer, value, normalizer."`
	Require  string   `placeholder:"CONDITION" help:"Exit with 6 unless the final evaluation satisfies this, such as 'return>=475'."`
	JSON     bool     `name:"json" help:"Print one JSON object per line."`
}

// training is one call of train.
type training struct {
	*program
	command  *trainCommand
	require  *requirement
	started  time.Time
	runtime  *wasm.Runtime
	parts    *pipeline.Parts
	graph    *pipeline.Graph
	run      *runs.Run
	pipeline *pipeline.Pipeline
	before   runs.Checkpoint // that the run goes on from

	saved time.Time                  // when the last checkpoint was taken
	last  map[string]component.State // at the boundary that ended the run
	at    runs.Checkpoint            // counters of last
}

// Run trains.
func (c *trainCommand) Run(p *program) error {
	t := &training{program: p, command: c, started: time.Now(), saved: time.Now()}
	var err error
	if t.require, err = parseRequirement(c.Require); err != nil {
		return fail(exitUsage, err)
	}
	if len(c.Reset) > 0 && c.InitFrom == "" {
		return fail(exitUsage, errors.New("--reset goes with --init-from"))
	}
	ctx, stop := p.interruptible()
	defer stop()
	if err := t.open(ctx); err != nil {
		return errors.Join(err, t.close())
	}
	reason, err := t.pipeline.Run(ctx)
	if err != nil {
		return errors.Join(t.failed(err), t.close())
	}
	err = t.finish(ctx, reason)
	return errors.Join(err, t.close())
}

// open reads the pipeline, makes or opens the run, and builds.
func (t *training) open(ctx context.Context) (err error) {
	if t.runtime, err = newRuntime(t.logger()); err != nil {
		return err
	}
	t.parts = newParts(t.runtime, t.output())
	if t.command.Resume != "" {
		err = t.resume()
	} else {
		err = t.begin()
	}
	if err != nil {
		return err
	}
	t.pipeline, err = pipeline.Build(ctx, t.graph, pipeline.BuildOptions{
		Parts: t.parts, RunDir: t.run.Dir, Log: t.logger(), Resume: t.before.Components, AtBoundary: t.atBoundary,
	})
	if err != nil {
		return t.buildError(err)
	}
	return t.describe()
}

// begin starts a new run, perhaps from the weights of an old one.
func (t *training) begin() (err error) {
	if t.graph, err = t.readGraph(t.command.Pipeline, t.command.Set, t.parts); err != nil {
		return err
	}
	if t.command.InitFrom != "" {
		if err := t.initFrom(); err != nil {
			return err
		}
	}
	if t.run, err = runs.Create(t.graph.Run.Dir, t.graph.Run.Name); err != nil {
		return err
	}
	t.keep()
	return t.run.WritePipeline([]byte(t.graph.Expanded()))
}

// keep tells the run which checkpoints to keep.
func (t *training) keep() {
	t.run.Keep, t.run.KeepBest = max(1, t.graph.Run.Checkpoint.Keep), t.graph.Run.Checkpoint.Best
}

// failed says how a run ended by an error, and that what was saved is still there.
func (t *training) failed(err error) error {
	endErr := t.run.End("failed")
	fmt.Fprintf(t.err, "run %s failed; its checkpoints are kept in %s\n", t.run.ID(), t.run.Dir)
	return fail(exitFailed, errors.Join(err, endErr))
}

// close releases everything that open has taken.
func (t *training) close() error {
	var errs []error
	if t.pipeline != nil {
		errs = append(errs, t.pipeline.Close())
	}
	if t.run != nil {
		errs = append(errs, t.run.Close())
	}
	if t.runtime != nil {
		errs = append(errs, t.runtime.Close())
	}
	return errors.Join(errs...)
}

// buildError prints what is wrong with a pipeline and picks the exit code: the file's fault, or a plugin's.
func (p *program) buildError(err error) error {
	var problems pipeline.Problems
	if !errors.As(err, &problems) {
		return err
	}
	code := exitConfig
	for _, problem := range problems {
		fmt.Fprint(p.err, problem)
		if slices.Contains(pluginCodes, problem.Code) {
			code = exitPlugin
		}
	}
	return fail(code, nil)
}

// pluginCodes are the problems that a plugin is to blame for, not the file.
var pluginCodes = []string{"E013", "E014", "E015", "E016", "E017", "E018", "E019", "E050", "E051"}
