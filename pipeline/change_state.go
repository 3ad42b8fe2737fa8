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
// A new version is on probation from its first step on until the change is confirmed: at the end of Commit without
// TransitionOptions.Probation, else by Settle. Until then its first fault counts against the change; afterwards it is
// like that of any component, and ends the run.
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
	confirmed bool                 // faults of new versions are like those of any component
	broken    chan struct{}        // closed at the first fault of a new version before that
	faulty    string               // component of that
	err       error                // the fault
	told      bool                 // the owner has been told, or will be
	ends      component.StopReason // why a new version asks for the run to end
}

// advance moves from one stage to another.
func (c *changeState) advance(from, to stage) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stage != from {
		return fmt.Errorf("the change is %s", c.stage)
	}
	c.stage = to
	return nil
}

// close moves to closed, from whatever stage.
func (c *changeState) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stage = closed
}

// complete moves on to committed, and returns why a new version asks for the run to end, or nothing.
func (c *changeState) complete() component.StopReason {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stage = committed
	return c.ends
}

// onFault notes a fault of a new version, and reports whether the previous one replaces it: everywhere, or, once new
// versions are confirmed, nowhere. Commit fails at such a fault.
func (c *changeState) onFault(name string, fault error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && !c.confirmed {
		c.faulty, c.err = name, fault
		close(c.broken)
	}
	return c.err != nil
}

// whileSound returns a context that ends at the first fault of a new version too: others may wait for its answers to come to rest.
func (c *changeState) whileSound(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-c.broken:
			cancel(c.fault())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// confirm makes later faults like those of any component. The error is that of an earlier fault.
func (c *changeState) confirm() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.confirmed = c.err == nil
	return c.failure()
}

// fault returns why the change cannot be completed, or nil.
func (c *changeState) fault() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure()
}

// failure is fault for callers that hold mu.
func (c *changeState) failure() error {
	if c.err == nil {
		return nil
	}
	return &ChangeError{Code: control.CodeRolledBack, Err: c.err,
		Reason: fmt.Sprintf("%s failed while it took over: %v; the previous version runs", c.faulty, c.err)}
}

// untold returns the fault that the owner of a complete change must be told, if any. The caller must hold mu, and sets
// told.
func (c *changeState) untold() (name string, fault error) {
	if c.told || c.stage != committed {
		return "", nil
	}
	return c.faulty, c.err
}

// waits reports whether the end of the run waits for the change to be made.
func (c *changeState) waits(reason component.StopReason) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stage > committing {
		return false
	}
	c.ends = cmp.Or(c.ends, reason)
	return true
}

// sound is probation's.
func (c *changeState) sound() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stage == committed && !c.confirmed && c.err == nil
}

// know changes what others read while the change is being prepared.
func (c *changeState) know(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}
