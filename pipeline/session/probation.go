package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// watcher ends probations, and makes the previous version run again where a new one has failed.
type watcher struct {
	job    *job
	life   context.Context // that of the commands
	looked time.Time       // when it last looked at the probations
	spared time.Time       // until then a stall is not rolled back: that has just been done, or tried

	checked  map[uint64]bool // changes whose other checks have begun
	checking sync.WaitGroup
}

// watchEvery is how often a version on probation is looked at.
const watchEvery = 100 * time.Millisecond

// spareTime is how long a run may take to continue once a version that it stalled with has been rolled back.
const spareTime = 10 * time.Second

// run returns when its context ends.
func (w *watcher) run() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	defer w.checking.Wait()
	looks := 0
	for {
		select {
		case <-w.life.Done():
			return
		case f := <-w.job.failures:
			w.rollBack(f)
		case <-tick.C:
			if f, failed := w.look(); failed {
				w.rollBack(f)
			}
			if looks++; looks%10 == 0 {
				if current, _, _ := w.job.now(); current == nil {
					w.job.history.rewrite()
				}
			}
		}
	}
}

// look ends probations whose time is over, and finds failures that the pipeline does not report: a component that
// does nothing any more, or whose process was started again, and a run that has stalled.
func (w *watcher) look() (f failure, failed bool) {
	now := time.Now()
	since := now.Sub(w.looked)
	w.looked = now
	_, watched, _ := w.job.now()
	if len(watched) == 0 || w.job.over() {
		return f, false
	}
	components := w.job.Pipeline.Status().Components
	for _, p := range slices.Backward(watched) {
		if f, failed := w.fails(p, components); failed {
			return f, true
		}
		w.afterwards(p)
	}
	if f, failed := w.stalls(); failed {
		return f, true
	}
	paused := slices.ContainsFunc(components, func(c control.ComponentStatus) bool { return c.State == control.Paused })
	done := w.job.Pipeline.Done()
	for _, p := range watched {
		if w.job.pass(p, min(since, 10*watchEvery), paused, done) && p.transition.Settle() { // else it has just failed, which comes as a failure
			w.job.settle(p.number)
			w.job.history.note(runs.Change{Step: runs.StepSettled, Number: p.number, What: whatSwap, Component: p.first().component, New: version(p.first().new)}, itself())
		}
	}
	return f, false
}

// fails finds a component on probation that has failed, without having said so.
func (w *watcher) fails(p *probation, components []control.ComponentStatus) (f failure, failed bool) {
	f.number = p.number
	now := w.job.restarts(p.parts)
	for name, before := range p.restarts {
		if n := now[name]; n > before {
			f.component, f.fault = name, errors.New("its process died and was started again")
			return f, true
		}
	}
	for _, s := range components {
		for _, part := range p.parts {
			stalled := s.State == control.Stalled && !time.Now().Before(w.spared)
			if componentOf(s.Name) == part.component && (stalled || s.State == control.Failed || s.State == control.Lost) {
				f.component, f.fault = s.Name, fmt.Errorf("it is in state %s: %s", s.State, s.Note)
				return f, true
			}
		}
	}
	return f, false
}

// stalls finds the newest change on probation with which the run has stalled. A change made during the stall is not to blame before
// something has been learned.
func (w *watcher) stalls() (f failure, failed bool) {
	cause := w.job.Pipeline.Stalled()
	if cause == "" {
		w.job.learned(w.job.Pipeline.Steps().Trained)
		return f, false
	}
	p := w.job.newestMoving()
	if p == nil || time.Now().Before(w.spared) {
		return f, false
	}
	return failure{number: p.number, component: p.first().component, fault: fmt.Errorf("the run stands still: %s", cause), still: true}, true
}

// rollBack makes the previous version of everything that a change has changed run again.
func (w *watcher) rollBack(f failure) {
	title, concerns := w.job.concerns(f)
	if !concerns {
		return // it has been dealt with
	}
	c := &change{
		job: w.job, work: &work{title: "rollback of " + title, say: saysNothing}, what: whatFallback, who: itself(),
		reason: faultOf(f.component, f.fault), rules: rules{at: component.AtStep, force: longestForced},
	}
	ctx, err := w.job.beginBehind(w.life, c.work)
	if err != nil {
		return // the run ends
	}
	defer w.job.finish(c.work)
	ctx, cancel := context.WithTimeout(ctx, longestWayBack)
	defer cancel()
	p := w.job.find(f.number)
	if p == nil {
		return
	}
	c.component = p.first().component
	if err = c.aimBefore(p); err == nil {
		err = c.run(ctx)
	}
	switch {
	case f.still && errors.Is(err, pipeline.ErrNothing): // the next one may be to blame
		w.job.settle(p.number)
		w.job.history.note(runs.Change{Step: runs.StepSettled, Number: p.number, What: whatSwap, Component: c.component, New: version(p.first().new)}, itself())
		w.job.log.Warn("the run stands still, and nothing of a change on probation is left to be taken back", "component", c.component, "change", p.number)
	case errors.Is(err, pipeline.ErrNothing), err == nil:
		w.job.history.ranAgain(p.parts, c.reason)
		w.job.settle(p.number)
		w.spared = time.Now().Add(spareTime)
		attrs := []any{"component", p.first().component, "failed", p.first().new.File, "runs", p.first().old.File, "reason", c.reason,
			"env_step", c.outcome.EnvStep}
		if command := w.job.replays(f.number); command != "" {
			attrs = append(attrs, "replay", command)
		}
		if len(c.outcome.Notes) > 0 {
			attrs = append(attrs, "notes", strings.Join(c.outcome.Notes, "; "))
		}
		w.job.log.Error("a new version has failed on probation; the previous one runs again", attrs...)
	case w.job.over():
	case isRefused(err, control.CodeRolledBack): // it has failed meanwhile in another way, which is the next failure
	case isRefused(err, control.CodeLate): // it may be at a message that its limit of time ends
		w.spared = time.Now().Add(spareTime)
		time.AfterFunc(spareTime, func() { w.job.failed(f) })
		w.job.log.Warn("a version that has failed cannot be taken back yet; it is tried again", "component", f.component, "fault", f.fault, "error", err)
	default:
		w.job.log.Error("a version that has failed could not be taken back", "component", f.component, "fault", f.fault, "error", err)
		w.job.settle(p.number)
	}
}

// isRefused reports whether a change was refused with a code.
func isRefused(err error, code control.Code) bool {
	var e *control.Error
	return errors.As(err, &e) && e.Code == code
}

// aimBefore makes the next graph the one before a watched change, with all later changes of other things.
func (ch *change) aimBefore(p *probation) error {
	g := ch.job.Pipeline.Graph()
	if g == p.after {
		ch.next = p.before
		return nil
	}
	way := previous{undo: p.undo}
	for _, x := range p.parts {
		way.back = append(way.back, x.back...)
	}
	if len(p.parts) == 0 { // wires and other tables: the ones unchanged since
		way.undo = slices.DeleteFunc(slices.Clone(p.undo), func(t runs.Table) bool { return g.Table(t.Name) != p.after.Table(t.Name) })
	}
	return ch.aimText(way.graph(g))
}
