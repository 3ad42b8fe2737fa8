package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// say reports the progress of a change to the client. It never fails: a disconnected client ends its context.
type say func(format string, args ...any)

func sayTo(notice control.Notice) say {
	return func(format string, args ...any) { _ = notice(fmt.Sprintf(format, args...)) }
}

func saysNothing(string, ...any) {}

// work is a change as others see it while it is under way.
type work struct {
	title  string
	say    say
	stage  atomic.Pointer[string] // written by the change, read by status and by the second of two
	cancel context.CancelCauseFunc
}

// at notes how far a change is, for status and for the second of two.
func (w *work) at(format string, args ...any) {
	stage := fmt.Sprintf(format, args...)
	w.stage.Store(&stage)
}

// progress returns a function that reports the progress of a part of the change: to status always, to the client at every tenth.
func (w *work) progress(what string) func(share float64) {
	said := -1
	return func(share float64) {
		percent := int(100 * share)
		w.at("%s %d %%", what, percent)
		if percent/10 > said {
			said = percent / 10
			w.say("%s %d %%", what, percent)
		}
	}
}

// waitEvery is how often the processes that a change waits for are checked.
const waitEvery = time.Second

// tellWaits tells the client, until end is called, which processes of plugins have long not answered: a change may wait for one.
func (w *work) tellWaits(waits func() []string) (end func()) {
	if waits == nil {
		return func() {}
	}
	over := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		told := map[string]bool{}
		tick := time.NewTicker(waitEvery)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			for _, text := range waits() {
				if !told[text] {
					told[text] = true
					w.say("waiting: %s", text)
				}
			}
		}
	})
	return func() {
		close(over)
		running.Wait()
	}
}

func (w *work) text() string {
	if stage := w.stage.Load(); stage != nil {
		return w.title + " (" + *stage + ")"
	}
	return w.title
}

// probation is a change whose versions are watched: the previous ones take over again as soon as one fails.
type probation struct {
	number        uint64
	title         string
	parts         []part // that are watched still
	transition    *pipeline.Transition
	before, after *graph.Graph
	undo          []runs.Table      // how the tables were that it changed, where some came or went
	restarts      map[string]uint64 // of processes, when it began
	trained       uint64            // env steps, when it was made
	brief         bool              // its environments have yet to be checked in full

	// Guarded by underWay:
	stood  bool              // the run stood still when it was made, and has learned nothing since
	left   time.Duration     // for which it is watched, while nothing is paused
	idle   map[string]uint64 // components that have done nothing since, and their work until then
	paused bool              // its clock is stopped
	found  map[string]string // by environment: what the checks afterwards have found
}

// first is the part that messages name.
func (p *probation) first() part {
	if len(p.parts) == 0 {
		return part{}
	}
	return p.parts[0]
}

// failure is the failure of a version on probation.
type failure struct {
	number    uint64 // of the change that it came with
	component string
	fault     error
	still     bool // nothing has failed: the run has stalled
}

// underWay is the change under way and the probations after changes: one change at a time.
type underWay struct {
	ended    chan struct{} // closed when the run has ended
	failures chan failure

	mu      sync.Mutex
	changed chan struct{} // closed and replaced whenever what follows changes
	current *work         // or nil
	watched []*probation  // oldest first
}

func newUnderWay() *underWay {
	return &underWay{ended: make(chan struct{}), failures: make(chan failure, 64), changed: make(chan struct{})}
}

// end says that the run has ended: nothing begins any more.
func (u *underWay) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.over() {
		close(u.ended)
	}
}

// over reports whether the run has ended.
func (u *underWay) over() bool {
	select {
	case <-u.ended:
		return true
	default:
		return false
	}
}

// tell wakes goroutines that wait for something to change. mu is held.
func (u *underWay) tell() {
	close(u.changed)
	u.changed = make(chan struct{})
}

// begin makes a change the one under way. If there is one already, the error names it. ctx also ends when the change is cancelled.
func (u *underWay) begin(ctx context.Context, w *work) (context.Context, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over() {
		return nil, control.Errorf(control.CodeEnded, "the run has ended")
	}
	if u.current != nil {
		e := control.Errorf(control.CodeBusy, "another change is under way: %s", u.current.text())
		e.Help = "wait for it: rlhost status --wait"
		return nil, e
	}
	ctx, w.cancel = context.WithCancelCause(ctx)
	u.current = w
	u.tell()
	return ctx, nil
}

// beginBehind is begin that waits for the change under way to end.
func (u *underWay) beginBehind(ctx context.Context, w *work) (context.Context, error) {
	for {
		_, _, changed := u.now()
		inner, err := u.begin(ctx, w)
		var e *control.Error
		if !errors.As(err, &e) || e.Code != control.CodeBusy {
			return inner, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// finish ends a change.
func (u *underWay) finish(w *work) {
	u.mu.Lock()
	defer u.mu.Unlock()
	w.cancel(nil)
	if u.current == w {
		u.current = nil
	}
	u.tell()
}

// now returns the change under way, or nil, and the probations, oldest first; changed is closed when either changes.
func (u *underWay) now() (current *work, watched []*probation, changed <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.current, slices.Clone(u.watched), u.changed
}

// begins adds a probation.
func (u *underWay) begins(p *probation) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.watched = append(u.watched, p)
	u.tell()
}

// settle ends the probation of a change.
func (u *underWay) settle(number uint64) {
	u.mu.Lock()
	p := u.numbered(number)
	u.watched = slices.DeleteFunc(u.watched, func(w *probation) bool { return w == p })
	u.tell()
	u.mu.Unlock()
	if p != nil {
		p.transition.Settle()
	}
}

// superseded removes parts that are gone from the probations, and returns the probations that this ends.
func (u *underWay) superseded(gone func(part) bool) (ended []*probation) {
	u.mu.Lock()
	defer u.mu.Unlock()
	var kept []*probation
	for _, p := range u.watched {
		left := slices.DeleteFunc(slices.Clone(p.parts), gone)
		switch {
		case len(left) == len(p.parts):
			kept = append(kept, p)
		case len(left) == 0 || p.undo != nil:
			ended = append(ended, p)
		default:
			rest := *p
			rest.parts = left
			kept = append(kept, &rest)
		}
	}
	u.watched = kept
	u.tell()
	return ended
}

// checked notes what the checks of an environment have found that were made after its change.
func (u *underWay) checked(number uint64, env, text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if p := u.numbered(number); p != nil {
		found := map[string]string{env: text}
		maps.Copy(found, p.found)
		p.found = found
	}
}

// learned notes how many env steps have been learned from in a run that has not stalled.
func (u *underWay) learned(trained uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, p := range u.watched {
		p.stood = p.stood && trained <= p.trained
	}
}

// newestMoving returns the newest change on probation, or nil. Changes made during a stall that has lasted since do not count.
func (u *underWay) newestMoving() *probation {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, p := range slices.Backward(u.watched) {
		if !p.stood {
			return p
		}
	}
	return nil
}

// find returns the probation of a change, or nil.
func (u *underWay) find(number uint64) *probation {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.numbered(number)
}

// numbered is find for callers that hold mu.
func (u *underWay) numbered(number uint64) *probation {
	if i := slices.IndexFunc(u.watched, func(p *probation) bool { return p.number == number }); i >= 0 {
		return u.watched[i]
	}
	return nil
}

// pass lets time pass for a probation, and reports whether it is over: it has been watched for its whole time, and each of its
// components has done something.
func (u *underWay) pass(p *probation, d time.Duration, paused bool, done map[string]uint64) (over bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for name, before := range p.idle {
		switch n := done[name]; {
		case n > before:
			delete(p.idle, name)
		case n < before: // an instance has gone
			p.idle[name] = n
		}
	}
	if p.paused = paused; !paused {
		p.left -= d
	}
	return p.left <= 0 && len(p.idle) == 0
}

// probations describes the probations.
func (u *underWay) probations() (list []control.Probation) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, p := range u.watched {
		for _, part := range p.parts {
			x := control.Probation{Component: part.component, Version: part.new, Left: max(0, p.left.Seconds()), Paused: p.paused}
			_, x.Idle = p.idle[part.component]
			x.Checked = p.found[part.env]
			list = append(list, x)
		}
	}
	return list
}

// failed is called by the pipeline. It returns at once: the rollback is made elsewhere.
func (u *underWay) failed(f failure) {
	select {
	case u.failures <- f:
	default: // many instances failed at once: the first says enough
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.numbered(f.number) != nil && u.current != nil {
		u.current.cancel(errRollingBack) // it starts from the version that has just failed
	}
}

// concerns reports whether a change is on probation, or will be once the change under way has ended: a version may
// fail before the run's folder records that it runs.
func (u *underWay) concerns(f failure) (title string, yes bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	newest := uint64(0)
	for _, p := range u.watched {
		if p.number == f.number {
			return p.title, true
		}
		newest = max(newest, p.number)
	}
	if u.current != nil && newest < f.number {
		return u.current.title, true
	}
	return "", false
}
