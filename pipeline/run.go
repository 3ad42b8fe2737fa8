package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/loop"
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

// Run runs the pipeline until a stop rule, an error, or the end of ctx, and stops it: components, connections and arenas are gone when it
// returns, plugins stay until Close; only the instances that LeftBehind names remain. It returns why the run ended, or the errors that ended
// it; leaks are errors too.
//
// When ctx ends the run ends as by Stop. A pipeline runs once.
func (p *Pipeline) Run(ctx context.Context) (component.StopReason, error) {
	if p.ending.started.Swap(true) {
		return "", ErrEnded
	}
	p.starts.tell()
	defer context.AfterFunc(ctx, func() { p.Stop(component.StopInterrupted) })()
	p.ending.begin(p.running.now().run.Stop.WallTime)
	conclude := p.observe()
	err := p.running.loops.Run(context.WithoutCancel(ctx))
	p.changes.end(ErrEnded)
	conclude()
	p.ending.counters.Store(new(p.running.readCounters()))
	reason, failure := p.ending.settle()
	if failure = errors.Join(failure, err); failure != nil {
		p.saveFailed(failure)
	}
	return reason, errors.Join(failure, p.release())
}

// errFailed is why the state of a run that an error has ended is not exact.
var errFailed = errors.New("an error ended the run within a dataset")

// saveFailed calls AtFailure for a run that an error has ended, once its loops have. State after a panic is not to be relied on.
func (p *Pipeline) saveFailed(failure error) {
	var panicked *loop.PanicError
	if p.options.AtFailure == nil || errors.As(failure, &panicked) {
		return
	}
	err := p.options.AtFailure(func() (map[string]component.State, error) {
		states, errs := map[string]component.State{}, []error{errFailed}
		for _, m := range p.running.now().learners() {
			state, err := m.snapshot(context.Background(), m.loop)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", m.name, err))
				continue
			}
			states[m.name] = state
		}
		return states, errors.Join(errs...)
	})
	if err != nil {
		p.running.log.Warn("the run ends without its newest state", "error", err)
	}
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
	p.running.loops.End()
	p.hurry()
}

// StopNow ends the run at once, without another dataset boundary: work under way is lost. The reason counts if there is
// none yet. It may be called from any goroutine.
func (p *Pipeline) StopNow(reason component.StopReason) {
	p.ending.mu.Lock()
	if p.ending.reason == "" {
		p.ending.reason = reason
	}
	p.ending.mu.Unlock()
	p.endLoops()
}
