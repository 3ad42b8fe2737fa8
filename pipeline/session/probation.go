package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// probation is a version that is watched: the previous one takes over again as soon as it fails.
type probation struct {
	number     uint64
	title      string
	parts      []part
	until      time.Time
	transition *pipeline.Transition
	before     *graph.Graph
	restarts   map[string]uint64 // of processes, when it began
}

// fall tells that a version on probation has failed.
type fall struct {
	number    uint64
	component string
	fault     error
}

// fell is called by the pipeline. What is to be done takes its time and is done elsewhere.
func (j *Commands) fell(f fall) {
	select {
	case j.falls <- f:
	default: // many instances fell at once: the first says enough
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.watched != nil && j.watched.number == f.number && j.current != nil {
		j.current.cancel(errFell) // it goes on from what has just fallen
	}
}

// watchEvery is how often a version on probation is looked at.
const watchEvery = 100 * time.Millisecond

// watch ends probations, and makes the previous version run again where a new one has failed.
func (j *Commands) watch() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	looks := 0
	for {
		select {
		case <-j.life.Done():
			return
		case f := <-j.falls:
			j.fallBack(f)
		case <-tick.C:
			if f, fell := j.look(); fell {
				j.fallBack(f)
			}
			if looks++; looks%10 == 0 {
				j.rewrite()
			}
		}
	}
}

// look ends a probation whose time is over, and finds what the pipeline does not tell by itself: a component that does
// nothing any more, or whose process was started again.
func (j *Commands) look() (f fall, fell bool) {
	j.mu.Lock()
	p := j.watched
	j.mu.Unlock()
	if p == nil || j.over() {
		return f, false
	}
	f.number = p.number
	now := j.restarts(p.parts)
	for name, before := range p.restarts {
		if n := now[name]; n > before {
			f.component, f.fault = name, errors.New("its process died and was started again")
			return f, true
		}
	}
	for _, s := range j.o.Pipeline.Status() {
		for _, part := range p.parts {
			if componentOf(s.Name) == part.component && (s.State == control.Stalled || s.State == control.Failed || s.State == control.Lost) {
				f.component, f.fault = s.Name, fmt.Errorf("it is in state %s: %s", s.State, s.Note)
				return f, true
			}
		}
	}
	if time.Now().After(p.until) && p.transition.Settle() { // else it has just failed, which comes as a fall
		j.settle(nil)
		j.note(runs.Change{Step: runs.StepSettled, Number: p.number, What: whatSwap, Component: p.component(), New: version(p.version())}, itself())
	}
	return f, false
}

// restarts counts how often the processes of components were started again.
func (j *Commands) restarts(parts []part) map[string]uint64 {
	counts := map[string]uint64{}
	for _, p := range parts {
		counts[p.component] = 0
	}
	for _, s := range j.o.Pipeline.Stats().Snapshot() {
		name, ok := strings.CutPrefix(s.Name, "process/restarts/")
		if !ok {
			continue
		}
		if _, wanted := counts[componentOf(name)]; wanted {
			counts[componentOf(name)] += uint64(s.Value)
		}
	}
	return counts
}

func (p *probation) component() string {
	if len(p.parts) == 0 {
		return ""
	}
	return p.parts[0].component
}

func (p *probation) version() control.Version {
	if len(p.parts) == 0 {
		return control.Version{}
	}
	return p.parts[0].new
}

// settle ends the probation under way, if there is one, and makes next the one that is.
func (j *Commands) settle(next *probation) {
	j.mu.Lock()
	old := j.watched
	j.watched = next
	j.tell()
	j.mu.Unlock()
	if old != nil {
		old.transition.Settle()
	}
}

// longestFallback bounds how long the way back may take, once what was under way before it has ended.
const longestFallback = 2 * time.Minute

// fallBack makes the previous version of everything that a change has changed run again.
func (j *Commands) fallBack(f fall) {
	title, watched := j.watchedNow(f.number)
	if !watched {
		return // it has been dealt with
	}
	ctx, w, err := j.beginBehind(j.life, "rollback of "+title)
	if err != nil {
		return // the run ends
	}
	defer j.finish(w)
	ctx, cancel := context.WithTimeout(ctx, longestFallback)
	defer cancel()
	j.mu.Lock()
	p := j.watched
	j.mu.Unlock()
	if p == nil || p.number != f.number {
		return
	}
	a := &ask{
		what: whatFallback, component: p.component(), title: "rollback of " + p.title, next: p.before, who: itself(),
		reason: faultOf(f.component, f.fault), rules: rules{at: component.AtStep},
	}
	m, err := j.make(ctx, w, a, saysNothing)
	switch {
	case errors.Is(err, pipeline.ErrNothing), err == nil:
		j.backAgain(p, m, a.reason)
	case j.over():
	default:
		j.log.Error("a version that has failed could not be taken back", "component", f.component, "fault", f.fault, "error", err)
		j.settle(nil)
	}
}

// watchedNow reports whether a change is on probation, or will be once what is under way has ended: a version may fail
// before the run's folder has been told that it runs.
func (j *Commands) watchedNow(number uint64) (title string, yes bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch p := j.watched; {
	case p != nil && p.number == number:
		return p.title, true
	case j.current != nil && (p == nil || p.number < number):
		return j.current.title, true
	}
	return "", false
}

// backAgain tells that the previous version runs again.
func (j *Commands) backAgain(p *probation, m *made, reason string) {
	j.mu.Lock()
	for _, x := range p.parts {
		j.fallen[x.component] = reason
	}
	j.tell()
	j.mu.Unlock()
	j.settle(nil)
	j.log.Error("a new version has failed on probation; the previous one runs again", "component", p.component(), "failed", p.version().File,
		"runs", p.previousFile(), "reason", reason, "env_step", m.outcome.EnvStep)
}

func (p *probation) previousFile() string {
	if len(p.parts) == 0 {
		return ""
	}
	return p.parts[0].old.File
}
