package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// watcher ends probations, and makes the previous version run again where a new one has failed.
type watcher struct {
	*shared
	life context.Context // that of the commands
}

// watchEvery is how often a version on probation is looked at.
const watchEvery = 100 * time.Millisecond

// watch goes on until its life ends.
func (w watcher) watch() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	looks := 0
	for {
		select {
		case <-w.life.Done():
			return
		case f := <-w.failures:
			w.rollBack(f)
		case <-tick.C:
			if f, failed := w.look(); failed {
				w.rollBack(f)
			}
			if looks++; looks%10 == 0 {
				if current, _, _ := w.now(); current == nil {
					w.rewrite()
				}
			}
		}
	}
}

// look ends a probation whose time is over, and finds what the pipeline does not tell by itself: a component that does
// nothing any more, or whose process was started again.
func (w watcher) look() (f failure, failed bool) {
	_, p, _ := w.now()
	if p == nil || w.over() {
		return f, false
	}
	f.number = p.number
	now := w.restarts(p.parts)
	for name, before := range p.restarts {
		if n := now[name]; n > before {
			f.component, f.fault = name, errors.New("its process died and was started again")
			return f, true
		}
	}
	for _, s := range w.Pipeline.Status().Components {
		for _, part := range p.parts {
			if componentOf(s.Name) == part.component && (s.State == control.Stalled || s.State == control.Failed || s.State == control.Lost) {
				f.component, f.fault = s.Name, fmt.Errorf("it is in state %s: %s", s.State, s.Note)
				return f, true
			}
		}
	}
	if time.Now().After(p.until) && p.transition.Settle() { // else it has just failed, which comes as a failure
		w.settle(nil)
		w.note(runs.Change{Step: runs.StepSettled, Number: p.number, What: whatSwap, Component: p.first().component, New: version(p.first().new)}, itself())
	}
	return f, false
}

// rollBack makes the previous version of everything that a change has changed run again.
func (w watcher) rollBack(f failure) {
	title, concerns := w.concerns(f)
	if !concerns {
		return // it has been dealt with
	}
	c := &change{
		shared: w.shared, work: &work{title: "rollback of " + title, say: saysNothing}, what: whatFallback, who: itself(),
		reason: faultOf(f.component, f.fault), rules: rules{at: component.AtStep, force: longestForced},
	}
	ctx, err := w.beginBehind(w.life, c.work)
	if err != nil {
		return // the run ends
	}
	defer w.finish(c.work)
	ctx, cancel := context.WithTimeout(ctx, longestWayBack)
	defer cancel()
	_, p, _ := w.now()
	if p == nil || p.number != f.number {
		return
	}
	c.component, c.next = p.first().component, p.before
	err = c.run(ctx)
	switch {
	case errors.Is(err, pipeline.ErrNothing), err == nil:
		w.ranAgain(p.parts, c.reason)
		w.settle(nil)
		w.log.Error("a new version has failed on probation; the previous one runs again", "component", p.first().component,
			"failed", p.first().new.File, "runs", p.first().old.File, "reason", c.reason, "env_step", c.outcome.EnvStep)
	case w.over():
	default:
		w.log.Error("a version that has failed could not be taken back", "component", f.component, "fault", f.fault, "error", err)
		w.settle(nil)
	}
}
