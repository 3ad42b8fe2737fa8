package pipeline

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/loop"
)

// ErrEnded is returned by Run if the pipeline has run before, and by a snapshot that came too late.
var ErrEnded = errors.New("the run has ended")

// runningLoop is an event loop and its end.
type runningLoop struct {
	*loop.Loop
	own       *loop.Receiver // for what the pipeline itself does there
	instances int            // that live on it; guarded by loopSet.mu
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
	errs []error // guarded by loopSet.mu
	over bool    // guarded by loopSet.mu: no loop starts any more
}

// loopSet is the event loops of a run. Its methods may be called from any goroutine.
type loopSet struct {
	onError func() // ends the run

	mu   sync.Mutex
	list []*runningLoop
	work *loopWork // how they are run; nil before that
}

// join returns the loop of that name for one more instance, and makes it on first use.
func (s *loopSet) join(name string) *runningLoop {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.list, func(l *runningLoop) bool { return l.Name() == name })
	if i >= 0 {
		s.list[i].instances++
		return s.list[i]
	}
	l := &runningLoop{Loop: loop.New(name), instances: 1, ended: make(chan struct{})}
	l.own = l.NewReceiver("pipeline")
	s.list = append(s.list, l)
	s.start(l)
	return l
}

// start runs a loop on a goroutine of its own, if loops run. The caller must hold mu.
func (s *loopSet) start(l *runningLoop) {
	w := s.work
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
			s.mu.Lock()
			w.errs = append(w.errs, err)
			s.mu.Unlock()
			s.onError()
		}
	})
}

// run runs every loop until all have ended, also those added later. The first that fails ends the others.
func (s *loopSet) run(ctx context.Context) error {
	w := &loopWork{ctx: ctx}
	s.mu.Lock()
	s.work = w
	for _, l := range s.list {
		s.start(l)
	}
	s.mu.Unlock()
	w.all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	w.over = true
	return errors.Join(w.errs...)
}

// end ends all loops. None starts any more.
func (s *loopSet) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.work != nil {
		s.work.over = true
	}
	for _, l := range s.list {
		l.Stop()
	}
}

// leave counts an instance out and ends a loop that has none left.
func (s *loopSet) leave(l *runningLoop) {
	s.mu.Lock()
	l.instances--
	last := l.instances == 0 && len(s.list) > 1
	if last {
		s.list = slices.DeleteFunc(s.list, func(o *runningLoop) bool { return o == l })
	}
	running := s.work != nil
	s.mu.Unlock()
	if !last {
		return
	}
	l.Stop()
	if running {
		<-l.ended
	}
	_ = l.Close() // it has ended
}

// all returns the current loops.
func (s *loopSet) all() []*runningLoop {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}
