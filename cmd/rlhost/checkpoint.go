package main

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/learner"
)

// resume opens a run to go on with: its own pipeline, with the overrides of the command line.
func (t *training) resume() (err error) {
	if t.run, err = runs.Open("runs", t.command.Resume); err != nil {
		return fail(exitUsage, err)
	}
	if err := t.run.Lock(); err != nil {
		return fail(exitUsage, err)
	}
	src, err := t.run.Pipeline()
	if err != nil {
		return err
	}
	g, problems := pipeline.Parse(runs.PipelineFile, src, pipeline.ParseOptions{Sets: t.command.Set, Parts: t.parts, Dir: "."})
	for _, problem := range problems {
		fmt.Fprint(t.err, problem)
	}
	if g == nil {
		return fail(exitConfig, nil)
	}
	t.graph = g
	t.keep()
	if t.before, err = t.run.Load("latest"); err != nil {
		return fail(exitFailed, err)
	}
	exact := "exactly: all state was saved"
	if !t.before.Exact {
		exact = "not exactly: " + t.before.WhyNotExact
	}
	fmt.Fprintf(t.err, "resuming %s at %d env steps, policy version %d, %s\n", t.run.ID(), t.before.EnvSteps,
		t.before.PolicyVersion, exact)
	return t.run.Update(func(i *runs.Info) {
		i.State = runs.Running
		i.Resumes = append(i.Resumes, runs.Resume{
			At: time.Now().UTC(), PolicyVersion: t.before.PolicyVersion, EnvSteps: t.before.EnvSteps,
			Exact: t.before.Exact, Why: t.before.WhyNotExact,
		})
	})
}

// initFrom makes the weights of an old run the beginning of this one.
func (t *training) initFrom() error {
	old, err := runs.Open(t.graph.Run.Dir, t.command.InitFrom)
	if err != nil {
		return fail(exitUsage, err)
	}
	checkpoint, err := old.Load("latest")
	if err != nil {
		return err
	}
	name := t.learnerName()
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
func (t *training) learnerName() string {
	for _, c := range t.graph.Components {
		if c.Kind == "learner" {
			return c.Name
		}
	}
	return ""
}

// atBoundary saves a checkpoint where one is due, and keeps the state that the run ends in.
func (t *training) atBoundary(snapshot func() (map[string]component.State, error)) error {
	every := t.graph.Run.Checkpoint.Every
	ending := t.pipeline.Stopping() != ""
	if !ending && (every <= 0 || time.Since(t.saved) < every) {
		return nil
	}
	states, missing := snapshot()
	c := runs.Checkpoint{Components: states, MeanReturn: t.meanReturn(), Exact: t.graph.Synchronous && missing == nil}
	progress, err := learner.ProgressOf(states[t.learnerName()])
	if err != nil {
		return errors.Join(err, missing)
	}
	c.PolicyVersion, c.EnvSteps = progress.PolicyVersion, progress.EnvSteps
	switch {
	case missing != nil:
		c.WhyNotExact = missing.Error()
	case !t.graph.Synchronous:
		c.WhyNotExact = "asynchronous mode does not save the episodes that are under way; they start anew"
	}
	if ending {
		t.last, t.at = states, c
	}
	t.saved = time.Now()
	if err := t.run.Save(c); err != nil {
		t.logger().Error("training goes on without this checkpoint", "error", err)
	}
	return nil
}

// meanReturn is the mean of the runner's window, or NaN while that is not full.
func (t *training) meanReturn() float64 {
	for _, s := range t.pipeline.Stats().Snapshot() {
		if s.Name == "charts/episodic_return" {
			return s.Value
		}
	}
	return math.NaN()
}
