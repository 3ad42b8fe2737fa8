package session

import (
	"context"
	"sync"
)

// single is work that one caller does at a time. Callers that ask meanwhile share its result. The zero value is ready.
type single[T any] struct {
	mu    sync.Mutex
	doing *result[T] // nil if none is under way
}

type result[T any] struct {
	done      chan struct{}
	value     T
	err       error
	abandoned bool // the caller that did it has gone
}

// do returns the result of work. If another caller does the work now, its result is shared; if that caller's context ends, another one does it.
func (s *single[T]) do(ctx context.Context, work func(context.Context) (T, error)) (T, error) {
	for {
		s.mu.Lock()
		r := s.doing
		if r == nil {
			r = &result[T]{done: make(chan struct{})}
			s.doing = r
			s.mu.Unlock()
			r.value, r.err = work(ctx)
			s.mu.Lock()
			r.abandoned, s.doing = ctx.Err() != nil, nil
			s.mu.Unlock()
			close(r.done)
			return r.value, r.err
		}
		s.mu.Unlock()
		select {
		case <-r.done:
			if !r.abandoned {
				return r.value, r.err
			}
		case <-ctx.Done():
			var none T
			return none, context.Cause(ctx)
		}
	}
}
