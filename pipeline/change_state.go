package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
)

// stage is how far a change is:
//
//	prepared ──Commit──▶ committing ──▶ committed ──Settle──▶ settled
//	   │                     │              │
//	 Close            fault, lateness    fault of a new version: the owner is told, which goes back by another change
//	   ▼                     ▼
//	 closed ◀── all is taken back
//
// A new version is on probation from its first step on until the change is confirmed: at the end of Commit without TransitionOptions.Probation,
// else by Settle. Until then its first fault counts against the change; afterwards a fault ends the run, as any component's does.
type stage uint8

const (
	prepared stage = iota
	committing
	committed
	settled
	closed
)

// String names the stage.
func (s stage) String() string {
	return [...]string{"prepared", "being committed", "committed", "settled", "closed"}[s]
}

// changeState is the state of a change and its first fault. mu also guards the change's contents while it is being
// prepared, since others read them.
type changeState struct {
	mu        sync.Mutex
	stage     stage
	confirmed bool                 // faults of new versions are like any component's
	broken    chan struct{}        // closed at the first fault of a new version before that
	faulty    string               // component of that
	err       error                // the fault
	told      bool                 // RolledBack has been called, or will be
	ends      component.StopReason // why a new version asks for the run to end
}

// advance moves from one stage to another.
func (s *changeState) advance(from, to stage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stage != from {
		return fmt.Errorf("the change is %s", s.stage)
	}
	s.stage = to
	return nil
}

// close moves to closed, from whatever stage.
func (s *changeState) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stage = closed
}

// complete moves on to committed, and returns why a new version asks for the run to end, or nothing.
func (s *changeState) complete() component.StopReason {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stage = committed
	return s.ends
}

// onFault notes a fault of a new version, and reports whether the previous one replaces it: everywhere, or, once new
// versions are confirmed, nowhere. Commit fails at such a fault.
func (s *changeState) onFault(name string, fault error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && !s.confirmed {
		s.faulty, s.err = name, fault
		close(s.broken)
	}
	return s.err != nil
}

// whileSound returns a context that also ends at the first fault of a new version: others may need its answers before they can pause.
func (s *changeState) whileSound(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-s.broken:
			cancel(s.fault())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// confirm makes later faults like any component's. The error is an earlier fault.
func (s *changeState) confirm() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed = s.err == nil
	return s.failure()
}

// fault returns why the change cannot be completed, or nil.
func (s *changeState) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure()
}

// failure is fault for callers that hold mu.
func (s *changeState) failure() error {
	if s.err == nil {
		return nil
	}
	return &ChangeError{Code: control.CodeRolledBack, Err: s.err,
		Reason: fmt.Sprintf("%s failed while it took over: %v; the previous version runs", s.faulty, s.err)}
}

// untold returns the fault that the owner of a complete change has yet to hear of, if any. The caller must hold mu, and sets told.
func (s *changeState) untold() (name string, fault error) {
	if s.told || s.stage != committed {
		return "", nil
	}
	return s.faulty, s.err
}

// waits reports whether the end of the run waits for the change to be made.
func (s *changeState) waits(reason component.StopReason) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stage > committing {
		return false
	}
	s.ends = cmp.Or(s.ends, reason)
	return true
}

// sound is probation's.
func (s *changeState) sound() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stage == committed && !s.confirmed && s.err == nil
}

// know changes fields that others read while the change is being prepared.
func (s *changeState) know(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}
