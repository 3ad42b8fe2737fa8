package session

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
)

// status answers VerbStatus.
func (j *Commands) status(ctx context.Context, q control.StatusRequest, _ control.Notice) (*control.StatusReply, error) {
	if q.Wait {
		if err := j.quiet(ctx); err != nil {
			return nil, err
		}
	}
	return j.report(), nil
}

// quiet waits until nothing is being changed, watched or started.
func (j *Commands) quiet(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond) // components do not tell when they have started
	defer tick.Stop()
	for {
		j.mu.Lock()
		still, changed := j.current == nil && j.watched == nil, j.changed
		j.mu.Unlock()
		if j.over() || still && allStarted(j.o.Pipeline.Status()) {
			return nil
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-j.ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// report describes the training now.
func (j *Commands) report() *control.StatusReply {
	p, run := j.o.Pipeline, j.o.Run
	r := &control.StatusReply{
		Run: run.ID(), Dir: run.Dir, PID: pid(), Wall: time.Since(j.started).Seconds(),
		Components: p.Status(), Wires: p.Wires(), Steps: p.Steps(), Policy: j.o.Pipeline.PolicyVersion(), MeanReturn: j.meanReturn(),
		Resources: control.ReadResources(),
	}
	j.versions(r.Components)
	j.mu.Lock()
	r.Swaps = j.counts
	if j.current != nil {
		r.Transition = j.current.text()
	}
	if w := j.watched; w != nil {
		for _, part := range w.parts {
			r.Probation = append(r.Probation, control.Probation{
				Component: part.component, Version: part.new, Left: max(0, time.Until(w.until).Seconds()),
			})
		}
	}
	j.mu.Unlock()
	r.State, r.Cause = p.State(), j.cause(r.Components)
	return r
}

// versions puts the names in that files had when they came in, and what rollback goes back to.
func (j *Commands) versions(list []control.ComponentStatus) {
	for i := range list {
		c := &list[i]
		name := componentOf(c.Name)
		if c.Version != nil && strings.ContainsRune(c.Version.File, filepath.Separator) {
			c.Version.File = j.name(c.Version.Hash, c.Version.File)
		}
		j.mu.Lock()
		if before := j.previous[name]; before != nil {
			old := before.version
			c.Previous = &old
		}
		if why, fell := j.fallen[name]; fell {
			c.Note = strings.TrimPrefix(c.Note+"; rolled back: "+why, "; ")
		}
		j.mu.Unlock()
	}
}

// meanReturn is the mean of the runner's window, or nil while that is not full.
func (j *Commands) meanReturn() *float64 {
	for _, s := range j.o.Pipeline.Stats().Snapshot() {
		if s.Name == component.GaugeMeanReturn && !math.IsNaN(s.Value) && !math.IsInf(s.Value, 0) {
			return &s.Value
		}
	}
	return nil
}
