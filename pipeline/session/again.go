package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"

	"github.com/rlhost/rlhost/core/tape"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/replay"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// Again says how a run is run again.
type Again struct {
	Parts *graph.Parts
	Log   *slog.Logger
	Line  replay.Line // the episode that is wanted
	Dir   string      // folder for the repeated run; the caller removes it
	// Begins is told the env steps that the repetition begins with; may be nil.
	Begins func(envSteps uint64)
}

// againBytes bounds the recording of a repetition, which needs the end of it alone.
const againBytes = "1GiB"

// RunAgain runs a synchronous run again, from the nearest exact checkpoint to the end of an episode, and returns the folder of the repetition,
// which has a recording of that, and the episode's key there. The run itself is only read. The error is a *table.Error of one of the codes of replay where it cannot be done.
func RunAgain(ctx context.Context, run *runs.Run, o Again) (repeated *runs.Run, key replay.Key, err error) {
	key = o.Line.Key
	from, before, err := o.nearest(run)
	if err != nil {
		return nil, key, err
	}
	sets, err := o.undone(run, from, before.EnvSteps)
	if err != nil {
		return nil, key, err
	}
	g, err := ownPipeline(run, sets, o.Parts)
	if err != nil {
		return nil, key, err
	}
	if !g.Synchronous {
		return nil, key, o.gone(run, "the run was asynchronous, and recorded nothing of it: what its policies did depends on when they did it")
	}
	for i := range g.Components {
		if g.Components[i].Kind == kindRunner {
			sets = append(sets, fmt.Sprintf("component.%s.log=[]", g.Components[i].Name))
		}
	}
	if g, err = ownPipeline(run, sets, o.Parts); err != nil {
		return nil, key, err
	}
	var s *Session
	came := false
	ended := func(of *tape.Head, e tape.Episode) {
		if e.Env == o.Line.Key.Env && e.Agent == o.Line.Key.Agent && e.Number == o.Line.Key.Number && !came {
			came, key.Life = true, of.Life
			s.Stop(true)
		}
	}
	options := Options{Parts: o.Parts, Graph: g, Log: o.Log, Ended: ended, WithoutLearner: true, Policy: run.Info().Policy}
	if s, err = o.open(ctx, run, from, g, options); err != nil {
		return nil, key, err
	}
	if o.Begins != nil {
		o.Begins(before.EnvSteps)
	}
	dir := s.run.Dir
	_, err = s.Run(ctx)
	if err := errors.Join(err, s.Close(), ctx.Err()); err != nil {
		return nil, key, err
	}
	if !came {
		return nil, key, o.gone(run, "the repetition of the run ended before it")
	}
	repeated, err = runs.Open("", dir)
	return repeated, key, err
}

// gone is the error of an episode that cannot be had again.
func (o *Again) gone(run *runs.Run, why string) error { return replay.Gone(run, o.Line, why, nil) }

// nearest returns the checkpoint to begin with: the newest exact one during the agent's episode before, or nil for the beginning of the run.
func (o *Again) nearest(run *runs.Run) (c *runs.Checkpoint, at runs.Saved, err error) {
	runner, err := players.KindOf[Runner](o.Parts, kindRunner)
	if err != nil {
		return nil, at, err
	}
	for _, saved := range slices.Backward(run.Checkpoints()) {
		if saved.EnvSteps > o.Line.EnvStep || o.Line.Before < 0 {
			continue
		}
		c, err := run.Load(fmt.Sprint(saved.PolicyVersion))
		if err != nil || !c.Exact {
			continue // one that is damaged, too: an older one does it
		}
		for _, state := range c.Components {
			mark, err := runner.EpisodesMark(state)
			if err == nil && mark > 0 && mark <= o.Line.Before {
				return &c, saved, nil
			}
		}
	}
	return nil, at, nil
}

// undone returns the overrides that turn the run's pipeline back into that of a checkpoint, or of the beginning where from is nil. A change
// between that and the episode cannot be repeated.
func (o *Again) undone(run *runs.Run, from *runs.Checkpoint, envSteps uint64) (sets []string, err error) {
	list, err := run.Changes()
	if err != nil {
		return nil, err
	}
	began := map[uint64]uint64{} // env steps at which changes began to go over
	for _, c := range list {
		if c.Step == runs.StepBegin {
			began[c.Number] = c.EnvStep
		}
	}
	for _, c := range slices.Backward(list) {
		if !madeBy(&c) || c.EnvStep < envSteps || from != nil && c.Number <= from.Change {
			continue
		}
		if step, known := began[c.Number]; c.EnvStep <= o.Line.EnvStep || known && step <= o.Line.EnvStep {
			return nil, o.gone(run, fmt.Sprintf("change %d of the run, a %s of %s at env step %d, comes between it and the checkpoint before: the moment of a change is not repeated", c.Number, c.What, c.Component, c.EnvStep))
		}
		if len(c.Undo) > 0 {
			return nil, o.gone(run, fmt.Sprintf("change %d of the run has made another pipeline of it, and that before is not kept", c.Number))
		}
		sets = append(sets, c.Back...)
	}
	return append(sets, "run.record="+againBytes, "run.checkpoint.every=0s", "run.evaluation.every_env_steps=0", "run.evaluation.video_every_env_steps=0", "run.dir="+graph.Literal(o.Dir)), nil
}

// open opens the repetition.
func (o *Again) open(ctx context.Context, run *runs.Run, from *runs.Checkpoint, g *graph.Graph, options Options) (*Session, error) {
	if from == nil {
		return Begin(ctx, options)
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	again, err := runs.Create(o.Dir, g.Run.Name)
	if err != nil {
		return nil, err
	}
	text, err := (&Session{o: options, run: again, policy: &graph.Policy{Name: run.Info().Policy}}).text(g)
	if err == nil {
		err = again.WritePipeline(text)
	}
	if err == nil {
		info := run.Info()
		err = again.Update(func(i *runs.Info) {
			i.Plugins, i.Kernel, i.Policy, i.Python, i.Left = info.Plugins, info.Kernel, info.Policy, info.Python, info.Left
			i.Resumes = info.Resumes[:max(0, min(len(info.Resumes), int(o.Line.Life>>16)-1))]
		})
	}
	again.Retain(runs.Retention{Newest: 1})
	if err == nil {
		from.MeanReturn = math.NaN()
		from.Change = 0 // of the repetition's own, which has none
		err = again.Save(*from)
	}
	if err := errors.Join(err, again.Close()); err != nil {
		return nil, err
	}
	if again, err = runs.Open("", again.Dir); err != nil {
		return nil, err
	}
	return Resume(ctx, again, options)
}
