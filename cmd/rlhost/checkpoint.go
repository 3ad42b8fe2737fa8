package main

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/learner"
)

// runsFlag says where runs lie that are given by name.
type runsFlag struct {
	Runs string `name:"runs" placeholder:"DIR" help:"Folder to look for runs in; default run.dir of ./pipeline.toml, else runs."`
}

// find opens a run.
func (f *runsFlag) find(which string) (*runs.Run, error) {
	run, err := runs.Open(f.dir(), which)
	if errors.Is(err, runs.ErrNotFound) {
		return nil, fail(exitUsage, err)
	}
	return run, err
}

func (f *runsFlag) dir() string {
	if f.Runs != "" {
		return f.Runs
	}
	if src, err := files.Read(defaultPipeline, graph.MaxBytes); err == nil {
		if dir, problems := graph.RunDir(defaultPipeline, src); problems.Err() == nil {
			return dir
		}
	}
	return "runs"
}

// load reads a checkpoint of a run.
func load(run *runs.Run, which string) (runs.Checkpoint, error) {
	c, err := run.Load(which)
	if errors.Is(err, runs.ErrNotFound) {
		return c, fail(exitUsage, err)
	}
	return c, err
}

// movedTo returns the graph as a file in another folder would give it: with the paths of plugins relative to that.
func movedTo(dir string, g *graph.Graph, builtins []string) (*graph.Graph, error) {
	moved := *g
	moved.Envs, moved.Dir = slices.Clone(g.Envs), dir
	var errs []error
	move := func(path *string, from string) {
		relative, err := relativePath(dir, from)
		*path, errs = relative, append(errs, err)
	}
	for i := range moved.Envs {
		t := &moved.Envs[i].Table
		if use, relative := t.Locate(g.Dir, builtins); relative {
			move(&t.Use, use)
		}
	}
	moved.Plugins = make([]*graph.Plugin, len(g.Plugins))
	for i, p := range g.Plugins {
		there := *p
		moved.Plugins[i] = &there
		if path := there.Table.Path; filepath.Base(path) != path && !filepath.IsAbs(path) {
			move(&there.Table.Path, filepath.Join(g.Dir, path))
		}
	}
	return &moved, errors.Join(errs...)
}

// relativePath returns how a file in dir would name a path.
func relativePath(dir, path string) (string, error) {
	from, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}

// ownPipeline reads the pipeline that a run was started with. It returns the warnings, which are about training.
func (p *program) ownPipeline(run *runs.Run, sets []string, parts *graph.Parts) (*graph.Graph, graph.Problems, error) {
	src, err := run.Pipeline()
	if err != nil {
		return nil, nil, err
	}
	if python := run.Info().Python; python != "" {
		parts.EnvPlugins = parts.EnvPluginsOf(python)
	}
	g, problems := graph.Parse(filepath.Join(run.Dir, runs.PipelineFile), src, graph.ParseOptions{Sets: sets, Parts: parts})
	if g == nil {
		p.problems(problems)
		return nil, nil, said(problemsCode(problems), problems)
	}
	return g, problems, nil
}

// changed lists the plugins that are no longer the files that the run was started with.
func changed(info runs.Info, now map[string]string) []string {
	var names []string
	for use, hash := range now {
		if before, known := info.Plugins[use]; known && before != hash {
			names = append(names, fmt.Sprintf("%s (%.8s, it was %.8s)", use, hash, before))
		}
	}
	slices.Sort(names)
	return names
}

// resume opens a run to go on with: its own pipeline, with the overrides of the command line.
func (t *training) resume() (err error) {
	t.resumed = true
	if t.run, err = t.command.find(t.command.Resume); err != nil {
		return err
	}
	if err := t.run.Lock(); err != nil {
		return fail(exitUsage, err)
	}
	if t.before, err = load(t.run, runs.Latest); err != nil {
		return err
	}
	t.at = t.before
	t.openLog()
	if err := t.wholeModules(); err != nil {
		return err
	}
	graph, warnings, err := t.ownPipeline(t.run, t.command.Set, t.parts)
	if err != nil {
		return err
	}
	t.graph = graph
	t.problems(warnings)
	t.keep()
	return nil
}

// exactness says whether the run goes on as if it had not been interrupted, and if not, why not.
func (t *training) exactness(plugins map[string]string, kernels string) (exact bool, why string) {
	info := t.run.Info()
	if names := changed(info, plugins); len(names) > 0 {
		return false, "changed since the run began: " + strings.Join(names, ", ")
	}
	if info.Kernel != kernels {
		return false, fmt.Sprintf("it began with kernels %s, this machine has %s", info.Kernel, kernels)
	}
	if since := t.swappedSince(); since != "" {
		return false, since
	}
	return t.before.Exact, t.before.WhyNotExact
}

// withoutEpisodes keeps what a run has learned and counted, and leaves out the episodes that were under way.
func withoutEpisodes(g *graph.Graph, states map[string]component.State) map[string]component.State {
	kept := map[string]component.State{}
	for _, c := range g.Components {
		if state, ok := states[c.Name]; ok && (c.Kind == "learner" || c.Kind == "runner") {
			kept[c.Name] = state
		}
	}
	return kept
}

// describeResume says what the run goes on from, and notes it in its description.
func (t *training) describeResume(exact bool, why string) error {
	how := "exactly: all state was saved"
	if !exact {
		how = "not exactly: " + why
	}
	t.notice("resuming %s at %d env steps, policy version %d, %s", t.run.ID(), t.before.EnvSteps,
		t.before.PolicyVersion, how)
	if err := t.tellVersions(); err != nil {
		return err
	}
	return t.run.Update(func(i *runs.Info) {
		i.State, i.Reason, i.Ended = runs.Running, "", nil
		i.Resumes = append(i.Resumes, runs.Resume{
			At: time.Now().UTC(), PolicyVersion: t.before.PolicyVersion, EnvSteps: t.before.EnvSteps,
			Exact: exact, Why: why,
		})
	})
}

// hintResume tells how to go on with the newest run of that name, if that did not come to its end.
func (t *training) hintResume() {
	dir := t.graph.Run.Dir
	run, err := runs.Open(dir, t.graph.Run.Name)
	if err != nil {
		return
	}
	info := run.Info()
	if info.State == runs.Ended && info.Reason != string(component.StopInterrupted) && info.Reason != reasonFailed {
		return
	}
	if run.Lock() != nil { // it is still going on
		return
	}
	latest, err := run.Load(runs.Latest)
	if run.Close() != nil || err != nil {
		return
	}
	t.notice("run %s did not come to its end and was saved at %d env steps; to go on with it: rlhost train --resume %s",
		run.ID(), latest.EnvSteps, run.ID())
}

// initFrom makes the weights of an old run the beginning of this one.
func (t *training) initFrom() error {
	old, err := t.command.find(t.command.InitFrom)
	if err != nil {
		return err
	}
	checkpoint, err := load(old, runs.Latest)
	if err != nil {
		return err
	}
	name := learnerName(t.graph)
	state, ok := checkpoint.Components[name]
	if !ok {
		return fail(exitUsage, fmt.Errorf("run %s has no saved state of component %q", old.ID(), name))
	}
	state, err = learner.StartFrom(state, t.graph.Run.Seed, t.command.Reset)
	if err != nil {
		return err
	}
	t.before.Components = map[string]component.State{name: state}
	return nil
}

// learnerName is the component whose state holds the policy.
func learnerName(g *graph.Graph) string { return nameOfKind(g, "learner") }

// nameOfKind is the first component of a kind, empty if there is none.
func nameOfKind(g *graph.Graph, kind string) string {
	for _, c := range g.Components {
		if c.Kind == kind {
			return c.Name
		}
	}
	return ""
}

// atBoundary saves a checkpoint where one is due, and keeps the state that the run ends in.
func (t *training) atBoundary(snapshot func() (map[string]component.State, error)) error {
	every := t.running().Run.Checkpoint.Every
	ending := t.pipeline.Stopping() != ""
	if t.aborted.Load() || !ending && (every <= 0 || time.Since(t.saved) < every) {
		return nil
	}
	if err := t.save(snapshot, ending); err != nil {
		return err
	}
	if t.saveErr != nil && !ending {
		t.logger().Error("training goes on without this checkpoint", "error", t.saveErr)
	}
	return nil
}

// save saves a checkpoint at a dataset boundary, on the learner's loop. What keeps it from being written is in saveErr.
func (t *training) save(snapshot pipeline.Snapshot, ending bool) error {
	g := t.running()
	t.keep()
	states, missing := snapshot()
	c := runs.Checkpoint{Components: states, MeanReturn: t.meanReturn(), Exact: g.Synchronous && missing == nil}
	progress, err := learner.ProgressOf(states[learnerName(g)])
	if err != nil {
		return errors.Join(err, missing)
	}
	c.PolicyVersion, c.EnvSteps = progress.PolicyVersion, progress.EnvSteps
	switch {
	case missing != nil:
		c.WhyNotExact = missing.Error()
	case !g.Synchronous:
		c.WhyNotExact = fmt.Sprintf("asynchronous mode does not save what is under way: %d env steps that nothing was "+
			"learned from, and the running episodes, which start anew", t.underWay(c.EnvSteps))
	}
	t.at = c
	t.know(c.EnvSteps, c.PolicyVersion)
	if ending {
		t.last = states
	}
	t.saveErr = t.run.Save(c)
	t.saved = time.Now()
	return nil
}

// underWay is how many env steps lie in finished trajectories that nothing has been learned from yet.
func (t *training) underWay(learned uint64) uint64 {
	made, gone := t.count("rollout/env_steps"), t.count("lag/dropped_rows")+learned-t.before.EnvSteps
	return made - min(gone, made)
}

// know updates what the end event says if nothing more comes.
func (t *training) know(envSteps, policyVersion uint64) {
	t.known.Store(&known{run: t.run.ID(), kernels: t.definition().Backend.Kernels(), envSteps: envSteps, policyVersion: policyVersion})
}

// meanReturn is the mean of the runner's window, or NaN while that is not full.
func (t *training) meanReturn() float64 { return t.gauge("charts/episodic_return") }

// gauge returns a gauge of the run, NaN if there is none of that name.
func (t *training) gauge(name string) float64 {
	for _, s := range t.pipeline.Stats().Snapshot() {
		if s.Name == name {
			return s.Value
		}
	}
	return math.NaN()
}
