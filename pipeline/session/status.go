package session

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline"
)

// statusReader answers requests for the run's status.
type statusReader struct{ job *job }

// status answers VerbStatus.
func (r statusReader) status(ctx context.Context, q control.StatusRequest, _ control.Notice) (*control.StatusReply, error) {
	if q.Wait {
		if err := r.quiet(ctx); err != nil {
			return nil, err
		}
	}
	return r.report(), nil
}

// quiet waits until nothing is being changed, watched or started.
func (r statusReader) quiet(ctx context.Context) error {
	for {
		started := r.job.Pipeline.Started()
		current, watched, changed := r.job.now()
		if r.job.over() || current == nil && len(watched) == 0 && allStarted(r.job.Pipeline.Status().Components) {
			return nil
		}
		select {
		case <-changed:
		case <-started:
		case <-r.job.ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// report describes the training now.
func (r statusReader) report() *control.StatusReply {
	p, run := r.job.Pipeline, r.job.Run
	now := p.Status()
	reply := &control.StatusReply{
		Run: run.ID(), Dir: run.Dir, PID: os.Getpid(), Wall: time.Since(r.job.started).Seconds(),
		State: now.State, Cause: cause(&now), Components: now.Components,
		Wires: p.Wires(), Steps: p.Steps(), Policy: p.PolicyVersion(), MeanReturn: r.job.gauge(component.GaugeMeanReturn), Learners: r.learners(),
		Elo: r.job.gauge(evalElo), Wrapped: p.Stats().Counter("rollout/wrapped_bytes").Value(), Processes: uint64(p.Stats().Gauge("rollout/process_bytes").Value()),
		Resources: control.ReadResources(),
	}
	r.versions(reply.Components)
	if r.job.Hosts != nil {
		reply.Hosts = r.job.Hosts()
	}
	current, _, _ := r.job.now() // before its outcome is counted
	reply.Probation = r.job.probations()
	reply.Swaps = r.job.history.swaps()
	if current != nil {
		reply.Transition = current.text()
	}
	return reply
}

// learners describes the state of several learners.
func (r statusReader) learners() []control.LearnerStatus {
	list := r.job.Pipeline.Learners()
	for i := range list {
		gauge := component.GaugeMeanReturn
		if !list[i].Leads {
			gauge = component.OfPolicy(list[i].Policy, gauge)
		}
		list[i].MeanReturn = r.job.gauge(gauge)
	}
	return list
}

// versions fills in the original names of files, and the versions that a rollback goes back to.
func (r statusReader) versions(list []control.ComponentStatus) {
	for i := range list {
		c := &list[i]
		name := componentOf(c.Name)
		if c.Version != nil && strings.ContainsRune(c.Version.File, filepath.Separator) {
			c.Version.File = r.job.history.name(c.Version.Hash, c.Version.File)
		}
		if before := r.job.history.before(name); before != nil {
			old := before.version
			c.Previous = &old
		}
		if why, rolledBack := r.job.history.whyRolledBack(name); rolledBack {
			c.Note = strings.TrimPrefix(c.Note+"; rolled back: "+why, "; ")
		}
	}
}

// allStarted reports whether every component is past its start, and none is being replaced.
func allStarted(list []control.ComponentStatus) bool {
	return !slices.ContainsFunc(list, func(c control.ComponentStatus) bool {
		return c.State == control.Ready || c.State == control.Replacing
	})
}

// cause says why the run has stalled, if it has.
func cause(s *pipeline.Status) string {
	var paused []string
	for _, c := range s.Components {
		if c.State == control.Paused {
			paused = append(paused, c.Name)
		}
	}
	if s.Cause != "" || len(paused) == 0 {
		return s.Cause
	}
	return "paused by request: " + strings.Join(paused, ", ") + " (rlhost unpause ends it)"
}
