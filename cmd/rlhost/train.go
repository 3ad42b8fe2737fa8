package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/pipeline/session"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"

	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/runs"
)

type trainCommand struct {
	Pipeline string   `arg:"" optional:"" help:"Pipeline file; default ./pipeline.toml."`
	Set      []string `placeholder:"KEY=VALUE" sep:"none" help:"Override a key of the file, such as component.learner.epochs=4. May be repeated."`
	Fresh    bool     `xor:"start" help:"Start a new run. This is the default: no run is ever resumed unasked."`
	Resume   string   `xor:"start" placeholder:"RUN" help:"Go on with a run from its latest checkpoint, with its own pipeline."`
	InitFrom string   `xor:"start" placeholder:"RUN" help:"Start a new run from the weights of an old one."`
	Reset    []string `placeholder:"PART" enum:"optimizer,value,normalizer" help:"With --init-from: what to begin anew: optimizer, value (and with it the optimizer), normalizer."`
	runsFlag
	Require string `placeholder:"CONDITION" help:"Exit with 6 unless the final evaluation satisfies this, such as 'return>=475'."`
	JSON    bool   `name:"json" help:"Print one JSON object per line; the last one has the event \"end\"."`
}

// Help shows how train is called.
func (c *trainCommand) Help() string {
	return `RUN is a folder, a name such as cartpole (its newest run), cartpole/3, or latest. Ctrl-C saves a checkpoint at the next
dataset boundary and ends; Ctrl-C again ends at once.

  rlhost train
  rlhost train my.toml --set run.seed=2 --set component.learner.epochs=4
  rlhost train --resume cartpole
  rlhost train --init-from cartpole/3 --reset optimizer,value`
}

// training is one call of train.
type training struct {
	*program
	command  *trainCommand
	require  *requirement
	started  time.Time
	engines  *builtin.Engines
	parts    *graph.Parts
	graph    *graph.Graph
	run      *runs.Run
	pipeline *pipeline.Pipeline
	records  *recorder         // the run's log
	job      *session.Commands // that answers commands, or nil
	before   runs.Checkpoint   // that the run goes on from
	resumed  bool

	known   atomic.Pointer[known]      // what the end event can say at any time
	saved   time.Time                  // when the last checkpoint was taken
	saveErr error                      // why the last one could not be written
	last    map[string]component.State // at the boundary that ended the run
	at      runs.Checkpoint            // counters of the last boundary
	ended   atomic.Bool                // the end event has been printed
	aborted atomic.Bool                // it is to end at once: nothing is saved any more
}

// known is what is known of a run while it goes on. It is replaced, not changed.
type known struct {
	run, kernels            string
	envSteps, policyVersion uint64 // at the last boundary that was looked at
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
	if c.Pipeline != "" && c.Resume != "" {
		return fail(exitUsage, errors.New("--resume goes on with the run's own pipeline: leave the file out, and change keys with --set"))
	}
	t.program = p.onScreen(c.JSON)
	t.records = &recorder{}
	t.program = t.program.recording(t.records)
	t.parts, t.engines = builtin.New(t.logger(), t.output())
	ctx, stop := t.interruptible(t.parting)
	defer stop()
	err = t.train(ctx)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = fail(exitInterrupted, errInterrupted)
	}
	err = t.also(err, t.close())
	t.endFailed(err)
	return err
}

func (t *training) train(ctx context.Context) error {
	if err := t.open(ctx); err != nil {
		return err
	}
	t.serve()
	reason, err := t.pipeline.Run(ctx)
	if t.job != nil {
		t.job.End()
	}
	if err != nil {
		return t.failed(err)
	}
	return t.finish(ctx, reason)
}

// open reads the pipeline, makes or opens the run, and builds. A new run that cannot be built leaves no folder.
func (t *training) open(ctx context.Context) (err error) {
	if t.command.Resume != "" {
		err = t.resume()
	} else {
		err = t.begin()
	}
	if err != nil {
		return err
	}
	if err = t.build(ctx); err == nil {
		t.problems(t.pipeline.Warnings())
		return t.describe()
	}
	err = t.buildError(err)
	if t.resumed {
		return err
	}
	dir := t.run.Dir
	return t.also(err, errors.Join(t.run.Close(), os.RemoveAll(dir)))
}

// build builds the pipeline. A resumed run whose environments cannot go on from what was saved, because they or
// their number have changed, begins new episodes instead.
func (t *training) build(ctx context.Context) (err error) {
	o := pipeline.BuildOptions{
		Parts: t.parts, RunDir: t.run.Dir, Log: t.logger(), Resume: t.before.Components, AtBoundary: t.atBoundary,
	}
	var problems graph.Problems
	if t.resumed {
		o.Resumes = len(t.run.Info().Resumes) + 1
	}
	t.pipeline, err = pipeline.Build(ctx, t.graph, o)
	if err == nil || !t.resumed || errors.As(err, &problems) || ctx.Err() != nil {
		return err
	}
	o.Resume = withoutEpisodes(t.graph, t.before.Components)
	again, still := pipeline.Build(ctx, t.graph, o)
	if still != nil {
		return err
	}
	t.pipeline = again
	t.before.Exact, t.before.WhyNotExact = false, "new episodes begin, because those that were saved do not fit: "+err.Error()
	return nil
}

// begin starts a new run, perhaps from the weights of an old one.
func (t *training) begin() (err error) {
	file := t.command.Pipeline
	if file == "" {
		file = defaultPipeline
	}
	if t.graph, err = t.readGraph(file, t.command.Set, t.parts); err != nil {
		return err
	}
	if err := t.trainable(file); err != nil {
		return err
	}
	if t.command.InitFrom != "" {
		if err := t.initFrom(); err != nil {
			return err
		}
	} else {
		t.hintResume()
	}
	if t.run, err = runs.Create(t.graph.Run.Dir, t.graph.Run.Name); err != nil {
		return fmt.Errorf("%w\n  help: runs go to the folder %s; another one is --set run.dir=DIR", err, t.graph.Run.Dir)
	}
	t.keep()
	t.openLog()
	text, err := t.text(t.graph)
	if err != nil {
		return err
	}
	return t.run.WritePipeline(text)
}

// text is what pipeline.toml of the run's folder says of a graph.
func (t *training) text(g *graph.Graph) ([]byte, error) {
	kept, err := movedTo(t.run.Dir, g, t.parts.Builtins)
	if err != nil {
		return nil, err
	}
	for i := range kept.Envs { // the folder's own modules go with it where it is moved to
		use := &kept.Envs[i].Table.Use
		if !filepath.IsAbs(*use) {
			continue
		}
		if inside, err := relativePath(t.run.Dir, *use); err == nil && filepath.IsLocal(inside) {
			*use = inside
		}
	}
	return []byte(kept.Expanded()), nil
}

// trainable says whether there is something to train, and no more than this program can.
func (t *training) trainable(file string) error {
	learners := 0
	for _, c := range t.graph.Components {
		if c.Kind == "learner" {
			learners += c.Count
		}
	}
	if learners == 1 && len(t.graph.Policies) == 1 {
		return nil
	}
	return fail(exitConfig, fmt.Errorf("%s: train wants one learner and one policy, this pipeline has %d and %d\n"+
		"  help: add or remove components of kind learner and [policy] tables; presets have one of each",
		file, learners, len(t.graph.Policies)))
}

// keep tells the run which checkpoints to keep.
func (t *training) keep() {
	c := t.running().Run.Checkpoint
	t.run.Keep, t.run.KeepBest = max(1, c.Keep), c.Best
}

// running is the graph that runs, all changes included; before there is a pipeline it is what that will be made from.
func (t *training) running() *graph.Graph {
	if t.pipeline != nil {
		return t.pipeline.Graph()
	}
	return t.graph
}

// failed says how a run ended by an error, and what of it is there.
func (t *training) failed(err error) error {
	endErr := t.run.End(reasonFailed)
	t.notice("run %s failed; %s", t.run.ID(), t.whatIsSaved())
	return t.also(fail(exitFailed, err), endErr)
}

// whatIsSaved tells the newest checkpoint of the run.
func (t *training) whatIsSaved() string {
	latest, err := t.run.Load(runs.Latest)
	if err != nil {
		return "it has no checkpoint yet"
	}
	return fmt.Sprintf("it was saved at %d env steps: rlhost train --resume %s", latest.EnvSteps, t.run.ID())
}

// close releases everything that open has taken.
func (t *training) close() error {
	var errs []error
	if t.job != nil {
		errs = append(errs, t.job.Close())
	}
	if t.pipeline != nil {
		errs = append(errs, t.pipeline.Close())
	}
	errs = append(errs, t.records.close())
	if t.run != nil {
		errs = append(errs, t.run.Close())
	}
	if t.engines != nil {
		errs = append(errs, t.engines.Close())
	}
	return errors.Join(errs...)
}

// also adds an error that came up on the way out to the one that is to be reported.
func (p *program) also(err, more error) error {
	switch {
	case more == nil:
		return err
	case err == nil:
		return more
	}
	p.complain(more)
	return err
}

// buildError prints what is wrong with a pipeline and picks the exit code: the file's fault, or a plugin's.
func (p *program) buildError(err error) error {
	var fault *env.Fault
	if errors.As(err, &fault) {
		return fail(exitPlugin, err)
	}
	var problems graph.Problems
	if !errors.As(err, &problems) {
		return err
	}
	p.problems(problems)
	return said(problemsCode(problems), problems)
}

// problemsCode picks the exit code: a plugin's if no error is the file's.
func problemsCode(problems graph.Problems) int {
	code := exitConfig
	for _, problem := range problems {
		switch {
		case slices.Contains(pluginCodes, problem.Code):
			code = exitPlugin
		case strings.HasPrefix(problem.Code, "E"):
			return exitConfig
		}
	}
	return code
}

// pluginCodes are the problems that a plugin is to blame for, not the file.
var pluginCodes = []string{"E013", "E014", "E015", "E016", "E017", "E018", "E019", "E050", "E051",
	"E061", "E062", "E063", "E064", "E065", "E066", "E067", "E068", "E069"}
