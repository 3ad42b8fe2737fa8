package pipeline

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/loop"
)

// runningLoop is an event loop and its end.
type runningLoop struct {
	*loop.Loop
	own       *loop.Receiver // for what the pipeline itself does there
	instances int            // that live on it; guarded by Pipeline.mu
	ended     chan struct{}  // closed when Run has returned, or will not be called
	once      sync.Once
}

// over says that the loop runs no more slots.
func (l *runningLoop) over() { l.once.Do(func() { close(l.ended) }) }

// do runs fn on the loop and waits for it. If ctx or the loop ends before it has begun, it does not run.
func (l *runningLoop) do(ctx context.Context, fn func()) error {
	var taken atomic.Bool
	done := make(chan struct{})
	select {
	case <-l.ended:
		return ErrEnded
	default:
	}
	go l.Do(func() {
		if !taken.Swap(true) {
			defer close(done)
			fn()
		}
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	case <-l.ended:
		if !taken.Swap(true) {
			return ErrEnded
		}
	}
	if !taken.Swap(true) {
		return context.Cause(ctx)
	}
	<-done
	return nil
}

// loopWork is the running of the loops.
type loopWork struct {
	ctx  context.Context
	all  sync.WaitGroup
	errs []error // guarded by Pipeline.mu
	over bool    // guarded by Pipeline.mu: no loop starts any more
}

// loopNamed returns the loop of that name, made when it is first asked for. The caller holds mu.
func (p *Pipeline) loopNamed(name string) *runningLoop {
	i := slices.IndexFunc(p.loops, func(l *runningLoop) bool { return l.Name() == name })
	if i >= 0 {
		return p.loops[i]
	}
	l := &runningLoop{Loop: loop.New(name), ended: make(chan struct{})}
	l.own = l.NewReceiver("pipeline")
	p.loops = append(p.loops, l)
	p.runLoop(l)
	return l
}

// runLoop runs a loop on a goroutine of its own, if loops run. The caller holds mu.
func (p *Pipeline) runLoop(l *runningLoop) {
	w := p.loopWork
	if w == nil {
		return
	}
	if w.over {
		l.over()
		return
	}
	w.all.Go(func() {
		defer l.over()
		if err := l.Run(w.ctx); err != nil {
			p.mu.Lock()
			w.errs = append(w.errs, err)
			p.mu.Unlock()
			p.endLoops()
		}
	})
}

// runLoops runs every loop until all have ended, also those that come later. The first that fails ends the others.
func (p *Pipeline) runLoops(ctx context.Context) error {
	w := &loopWork{ctx: ctx}
	p.mu.Lock()
	p.loopWork = w
	for _, l := range p.loops {
		p.runLoop(l)
	}
	p.mu.Unlock()
	w.all.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	w.over = true
	return errors.Join(w.errs...)
}

// endLoops ends all loops and the run.
func (p *Pipeline) endLoops() {
	p.life.end(ErrEnded)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loopWork != nil {
		p.loopWork.over = true
	}
	for _, l := range p.loops {
		l.Stop()
	}
}

// leaveLoop counts an instance out and ends a loop that has none left.
func (p *Pipeline) leaveLoop(l *runningLoop) {
	p.mu.Lock()
	l.instances--
	last := l.instances == 0 && len(p.loops) > 1
	if last {
		p.loops = slices.DeleteFunc(p.loops, func(o *runningLoop) bool { return o == l })
	}
	running := p.loopWork != nil
	p.mu.Unlock()
	if !last {
		return
	}
	l.Stop()
	if running {
		<-l.ended
	}
	_ = l.Close() // it runs no more
}
