package loops

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/place"
	"github.com/rlhost/rlhost/hostabi"
)

// ErrEnded is returned by everything that can only be done during the run.
var ErrEnded = errors.New("the run has ended")

// Loop is an event loop and its end.
type Loop struct {
	*loop.Loop
	Own       *loop.Receiver // for the pipeline's own work there
	instances int            // that live on it; guarded by Set.mu
	cores     string         // that it runs on; guarded by Set.mu
	ended     chan struct{}  // closed when Run has returned, or will not be called
	once      sync.Once
}

// Gone returns a channel that is closed when the loop runs no more slots.
func (l *Loop) Gone() <-chan struct{} { return l.ended }

// Finish says that the loop runs no more slots. It may be called more than once.
func (l *Loop) Finish() { l.once.Do(func() { close(l.ended) }) }

// Try runs fn on the loop and waits for it. If ctx or the loop ends before it has begun, it does not run, and the error
// is the cause of ctx's end or ErrEnded.
func (l *Loop) Try(ctx context.Context, fn func()) error {
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

// work is the running of the loops.
type work struct {
	ctx  context.Context
	all  sync.WaitGroup
	errs []error // guarded by Set.mu
	over bool    // guarded by Set.mu: no loop starts any more

	abandoned chan struct{} // closed by Abandon
	once      sync.Once
}

// Set is the event loops of a run. Its methods may be called from any goroutine.
type Set struct {
	OnError func() // ends the run; set before Run

	mu   sync.Mutex
	list []*Loop
	work *work       // how they are run; nil before that
	all  place.Cores // that the program may use
}

// Join returns the loop of that name for one more instance, and makes it on first use.
func (s *Set) Join(name string) *Loop {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.list, func(l *Loop) bool { return l.Name() == name })
	if i >= 0 {
		s.list[i].instances++
		return s.list[i]
	}
	l := &Loop{Loop: loop.New(name), instances: 1, ended: make(chan struct{})}
	l.Own = l.NewReceiver("pipeline")
	s.list = append(s.list, l)
	s.start(l)
	return l
}

// Place gives each loop for which cores names processors a thread of its own that runs on these alone, and lets the others run anywhere. A
// loop that cannot have them runs anywhere, and failed is called on it. It must not be called on a loop.
func (s *Set) Place(cores func(loop string) string, failed func(loop string, err error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.list {
		was := l.cores
		if l.cores = cores(l.Name()); l.cores == was {
			continue
		}
		if s.all == nil {
			var err error
			if s.all, err = place.Available(); err != nil {
				l.cores = ""
				failed(l.Name(), err)
				continue
			}
		}
		now, name := l.cores, l.Name()
		l.Own.Control(func(*hostabi.Message) {
			if err := s.move(was, now); err != nil {
				failed(name, err)
			}
		}, hostabi.Message{})
	}
}

// move runs on a loop whose processors change.
func (s *Set) move(was, now string) (err error) {
	if was != "" {
		err = s.all.Unpin()
	}
	cores, wrong := place.ParseCores(now)
	if now == "" || wrong != nil {
		return errors.Join(err, wrong)
	}
	return errors.Join(err, cores.Pin())
}

// start runs a loop on a new goroutine, if loops run. The caller must hold mu.
func (s *Set) start(l *Loop) {
	w := s.work
	if w == nil {
		return
	}
	if w.over {
		l.Finish()
		return
	}
	w.all.Go(func() {
		defer l.Finish()
		if err := l.Run(w.ctx); err != nil {
			s.mu.Lock()
			w.errs = append(w.errs, err)
			s.mu.Unlock()
			s.OnError()
		}
	})
}

// Run runs every loop, also loops added later, until all have ended, or until Abandon. The first that fails ends the others.
func (s *Set) Run(ctx context.Context) error {
	w := &work{ctx: ctx, abandoned: make(chan struct{})}
	s.mu.Lock()
	s.work = w
	for _, l := range s.list {
		s.start(l)
	}
	s.mu.Unlock()
	all := make(chan struct{})
	go func() {
		w.all.Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-w.abandoned:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.over = true
	return errors.Join(w.errs...)
}

// Abandon ends Run though loops are still at a message; see Left. They have been ended.
func (s *Set) Abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.work != nil {
		s.work.once.Do(func() { close(s.work.abandoned) })
	}
}

// Left returns the loops that have been run and have not ended.
func (s *Set) Left() []*Loop {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.work == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.list), func(l *Loop) bool {
		select {
		case <-l.ended:
			return true
		default:
			return false
		}
	})
}

// End ends all loops. None starts any more.
func (s *Set) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.work != nil {
		s.work.over = true
	}
	for _, l := range s.list {
		l.Stop()
	}
}

// Leave counts an instance out and ends a loop that has none left.
func (s *Set) Leave(l *Loop) {
	s.mu.Lock()
	l.instances--
	last := l.instances == 0 && len(s.list) > 1
	if last {
		s.list = slices.DeleteFunc(s.list, func(o *Loop) bool { return o == l })
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

// All returns the current loops.
func (s *Set) All() []*Loop {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}
