package pipeline

import (
	"context"
	"fmt"
	"sync"

	"github.com/rlhost/rlhost/pipeline/loading"
)

// changeLock says whether the run can be changed, and holds the current change.
type changeLock struct {
	ctx  context.Context // ends with ErrEnded as soon as the run is about to end
	end  context.CancelCauseFunc
	gone chan struct{} // closed when the loops have ended

	mu     sync.Mutex
	quiet  sync.Cond     // working has become 0
	change pendingChange // prepared or under way; one at a time
	work   int           // calls in progress that change something
}

// pendingChange is a change that is prepared or under way.
type pendingChange interface {
	// title describes the change in one line.
	title() string
	// giveUp closes it if it has not been committed.
	giveUp() error
	// replacing returns the instances that it replaces, or whose environments it replaces, while it is being committed.
	replacing() map[*instance]bool
	// uses calls fn with the environments of the graphs before and after it; known is false while it is still loading some.
	uses(fn func(*loading.Env)) (known bool)
}

func newChangeLock() *changeLock {
	l := &changeLock{gone: make(chan struct{})}
	l.ctx, l.end = context.WithCancelCause(context.Background())
	l.quiet.L = &l.mu
	return l
}

// over returns ErrEnded once nothing can be changed.
func (l *changeLock) over() error { return context.Cause(l.ctx) }

// enter makes t the current change. The context ends also with the run; leave must be called.
func (l *changeLock) enter(ctx context.Context, t pendingChange) (_ context.Context, leave func(), err error) {
	l.mu.Lock()
	busy := l.change
	if busy == nil && l.over() == nil {
		l.change = t
	}
	l.mu.Unlock()
	if busy != nil {
		return nil, nil, fmt.Errorf("%w: %s", ErrBusy, busy.title())
	}
	return l.join(ctx)
}

// join counts a call that changes something.
func (l *changeLock) join(ctx context.Context) (_ context.Context, leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.over(); err != nil {
		return nil, nil, err
	}
	l.work++
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(l.ctx, func() { cancel(ErrEnded) })
	return ctx, func() {
		unhook()
		cancel(nil)
		l.leave()
	}, nil
}

// visit keeps the run from releasing its arenas until leave is called; ok is false once it has begun to.
func (l *changeLock) visit() (leave func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.gone:
		return nil, false
	default:
	}
	l.work++
	return l.leave, true
}

func (l *changeLock) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.work--; l.work == 0 {
		l.quiet.Broadcast()
	}
}

// finish ends a change.
func (l *changeLock) finish(t pendingChange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.change == t {
		l.change = nil
	}
}

// await waits until no call is in progress, and returns the change left prepared, if any.
func (l *changeLock) await() pendingChange {
	l.end(ErrEnded)
	close(l.gone)
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.work > 0 {
		l.quiet.Wait()
	}
	return l.change
}

// pending returns the change that is prepared or under way, or nil.
func (l *changeLock) pending() pendingChange {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.change
}

// replacing returns the instances that a change being committed replaces, or whose environments it replaces.
func (l *changeLock) replacing() map[*instance]bool {
	if t := l.pending(); t != nil {
		return t.replacing()
	}
	return nil
}
