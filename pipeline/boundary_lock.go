package pipeline

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/component"
)

// Snapshot returns the state of instances by name. In synchronous mode it has all of them. In asynchronous mode only the leading learner waits
// at its boundary, so it has the instances that publish policy versions, each between two of its messages, and the instances without signals,
// because no other depends on them. Of all others, and of any that cannot be saved, it has the state that outlives episodes. State that cannot
// be saved is missing, and the error joins the reasons. It may only be called during the call that it was passed to: later it returns ErrEnded.
type Snapshot = func() (map[string]component.State, error)

// boundaryLock excludes boundaries and changes from each other: the holder of its token sees no instance half
// replaced.
type boundaryLock struct {
	token    chan struct{}
	changing atomic.Bool // set by the token's holder while it replaces instances

	mu    sync.Mutex
	asked []*request // of AtNextBoundary
}

// take waits for the token.
func (s *boundaryLock) take(ctx context.Context) error {
	select {
	case <-s.token:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// try takes the token if it is free.
func (s *boundaryLock) try() bool {
	select {
	case <-s.token:
		return true
	default:
		return false
	}
}

func (s *boundaryLock) put() { s.token <- struct{}{} }

// answer calls the pending requests.
func (s *boundaryLock) answer(snapshot Snapshot) {
	s.mu.Lock()
	asked := s.asked
	s.asked = nil
	s.mu.Unlock()
	for _, r := range asked {
		r.answer(snapshot)
	}
}

// request is a call of AtNextBoundary.
type request struct {
	fn   func(Snapshot) error
	done chan error // takes one
}

// answer calls the function and wakes the waiting caller, also if it panics.
func (r *request) answer(snapshot Snapshot) {
	err := ErrEnded
	defer func() { r.done <- err }()
	err = r.fn(snapshot)
}

func newBoundaryLock() *boundaryLock {
	s := &boundaryLock{token: make(chan struct{}, 1)}
	s.token <- struct{}{}
	return s
}
