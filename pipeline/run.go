package pipeline

import (
	"context"
	"errors"

	"github.com/rlhost/rlhost/core/component"
)

// observe begins to watch a run, until conclude is called, once its loops have ended.
func (p *Pipeline) observe() (conclude func()) {
	end := p.watch.begin()
	return func() {
		end()
		p.taps.end()
		p.steps.last.Store(new(p.steps.readOnce()))
	}
}

// Run runs the pipeline until a stop rule, an error, or the end of ctx, and stops it: components, connections and
// arenas are gone when it returns, plugins stay until Close; but for what LeftBehind names. It returns why the run ended, or the errors that
// ended it; what leaked is an error too.
//
// When ctx ends the run ends as by Stop. A pipeline runs once.
func (p *Pipeline) Run(ctx context.Context) (component.StopReason, error) {
	if p.ending.started.Swap(true) {
		return "", ErrEnded
	}
	p.starts.tell()
	defer context.AfterFunc(ctx, func() { p.Stop(component.StopInterrupted) })()
	p.ending.begin(p.now().run.Stop.Wall)
	conclude := p.observe()
	err := p.loops.Run(context.WithoutCancel(ctx))
	p.changes.end(ErrEnded)
	conclude()
	p.ending.counters.Store(new(p.readCounters()))
	reason, failure := p.ending.settle()
	return reason, errors.Join(failure, err, p.release())
}

// Stopping returns why the run is about to end, or nothing if it is not.
func (p *Pipeline) Stopping() component.StopReason {
	p.ending.mu.Lock()
	defer p.ending.mu.Unlock()
	return p.ending.reason
}

// fail ends the run with an error; the first counts.
func (p *Pipeline) fail(err error) {
	p.ending.mu.Lock()
	if p.ending.err == nil {
		p.ending.err = err
	}
	p.ending.mu.Unlock()
	p.endLoops()
}

// endLoops ends all loops and the run.
func (p *Pipeline) endLoops() {
	p.changes.end(ErrEnded)
	p.loops.End()
	p.hurry()
}

// StopNow ends the run at once, without another dataset boundary: what is under way is lost. The reason counts if there
// is none yet. It may be called from any goroutine.
func (p *Pipeline) StopNow(reason component.StopReason) {
	p.ending.mu.Lock()
	if p.ending.reason == "" {
		p.ending.reason = reason
	}
	p.ending.mu.Unlock()
	p.endLoops()
}
