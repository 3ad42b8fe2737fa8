package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// serve starts to answer commands. A run that cannot continues without.
func (s *Session) serve() {
	var err error
	s.commands, err = serve(commandOptions{
		Pipeline: s.pipeline, Run: s.run, Parts: s.o.Parts, Log: s.log, Text: s.text, Checkpoint: s.Checkpoint,
		Stop: s.Stop, LastCheckpoint: s.lastCheckpoint, Records: s.records.log(), Begins: !s.resumed, Policy: s.policy.Name, StepsBefore: s.before.EnvSteps,
		Hosts: s.o.Hosts, Made: s.made.Store,
	})
	if err != nil {
		s.log.Warn("the run goes on, but takes no commands such as rlhost status", "error", err)
	}
}

// atBoundary evaluates and saves a checkpoint where that is due, and keeps the state that the run ends in. All of it is about
// one snapshot.
func (s *Session) atBoundary(snapshot func() (map[string]component.State, error)) error {
	s.noteChange()
	snapshot = sync.OnceValues(snapshot)
	if err := s.evaluator.boundary(snapshot); err != nil {
		return err
	}
	ending := s.pipeline.Stopping() != ""
	if s.aborted.Load() || !ending && !s.due() {
		return nil
	}
	if err := s.save(snapshot, ending); err != nil {
		return err
	}
	if s.saveErr != nil && !ending {
		s.log.Error("training goes on without this checkpoint", "error", s.saveErr)
	}
	return nil
}

// due says whether a checkpoint is due: with its time, and in a synchronous run after each change, since what follows can be run
// again from there alone.
func (s *Session) due() bool {
	g := s.Graph()
	every := g.Run.Checkpoint.Every
	return every > 0 && (time.Since(s.saved) >= every || g.Synchronous && s.change > s.at.Change)
}

// atFailure saves the learners' states of a run that fails before its first checkpoint, if it has learned anything.
func (s *Session) atFailure(snapshot func() (map[string]component.State, error)) error {
	if s.resumed || s.aborted.Load() || s.at.Components != nil && s.saveErr == nil {
		return nil
	}
	s.noteChange()
	states, missing := snapshot()
	if _, there := states[s.learner]; !there {
		return nil
	}
	c, err := take(s, func() (map[string]component.State, error) { return states, missing })
	if err != nil || c.EnvSteps == 0 {
		return err
	}
	return s.Folder().Save(c)
}

// save saves a checkpoint at a dataset boundary, on the learner's loop. An error is kept in saveErr.
func (s *Session) save(snapshot pipeline.Snapshot, ending bool) error {
	s.keep()
	c, err := take(s, snapshot)
	if err != nil {
		return err
	}
	s.at = c
	s.know(c.EnvSteps, c.PolicyVersion)
	if ending {
		s.last = c.Components
	}
	if s.Graph().Run.Evaluation.EveryEnvSteps > 0 { // evaluations say which is the best
		c.MeanReturn, c.MeanReturns = math.NaN(), nil
	}
	s.saveErr = s.Folder().Save(c)
	s.saved = time.Now()
	s.tell(Saved{EnvSteps: c.EnvSteps, PolicyVersion: c.PolicyVersion, Err: s.saveErr})
	return nil
}

// noteChange notes which changes are complete, before a snapshot is taken: that has them, and of later ones it may have a part.
func (s *Session) noteChange() { s.change = max(s.change, s.made.Load()) }

// take takes the state of a run at a dataset boundary, on the learner's loop.
func take(s *Session, snapshot pipeline.Snapshot) (runs.Checkpoint, error) {
	g := s.Graph()
	states, missing := snapshot()
	c := runs.Checkpoint{Components: states, Change: s.change, MeanReturn: s.gauge(component.GaugeMeanReturn), MeanReturns: map[string]float64{},
		Exact: g.Synchronous && missing == nil}
	for _, x := range learnings(g) {
		if x.component != s.learner {
			c.MeanReturns[x.policy.Name] = s.gauge(component.OfPolicy(x.policy.Name, component.GaugeMeanReturn))
		}
	}
	learner, err := learnerOf(s.o.Parts)
	if err == nil {
		c.PolicyVersion, c.EnvSteps, err = learner.Progress(states[s.learner])
	}
	switch {
	case err != nil:
		return c, errors.Join(err, missing)
	case missing != nil:
		c.WhyNotExact = missing.Error()
	case !g.Synchronous:
		c.WhyNotExact = fmt.Sprintf("asynchronous mode does not save what is under way: %d env steps that nothing was "+
			"learned from, and the running episodes, which start again", s.pipeline.Steps().UnderWay)
	}
	return c, nil
}

// Checkpoint saves a checkpoint at the next dataset boundary and returns its description. Any goroutine may call it
// during Run. A call while a checkpoint is under way returns that one.
func (s *Session) Checkpoint(ctx context.Context) (control.CheckpointReply, error) {
	return s.asked.do(ctx, s.checkpoint)
}

func (s *Session) checkpoint(ctx context.Context) (control.CheckpointReply, error) {
	var reply control.CheckpointReply
	err := s.pipeline.AtNextBoundary(ctx, func(snapshot pipeline.Snapshot) error {
		s.noteChange()
		if err := s.save(snapshot, false); err != nil {
			return err
		}
		reply = replyOf(&s.at)
		return s.saveErr
	})
	return reply, err
}

func replyOf(c *runs.Checkpoint) control.CheckpointReply {
	return control.CheckpointReply{PolicyVersion: c.PolicyVersion, EnvSteps: c.EnvSteps, Exact: c.Exact, Why: c.WhyNotExact}
}

// Stop ends the run at the next dataset boundary with a checkpoint, or at once without. It does not wait for that, and any
// goroutine may call it.
func (s *Session) Stop(now bool) {
	if now {
		s.aborted.Store(true)
		s.pipeline.StopNow(component.StopInterrupted)
		return
	}
	s.pipeline.Stop(component.StopInterrupted)
}

// lastCheckpoint is the run's last checkpoint, once it has ended; nil if nothing was saved at its end.
func (s *Session) lastCheckpoint() *control.CheckpointReply {
	if s.last == nil || s.saveErr != nil {
		return nil
	}
	reply := replyOf(&s.at)
	return &reply
}
