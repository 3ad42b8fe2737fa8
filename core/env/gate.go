package env

import (
	"fmt"
	"sync/atomic"
)

// States of a Gate.
const (
	gateOpen uint32 = iota
	gateTaken
	gatePoisoned
	gateShut
)

// Gate admits one call at a time to an Env, only EnterPoisoned to a poisoned one, and none to a closed one.
// Implementations use it to keep Env's contract; a second concurrent call is an error of its caller, which the Gate
// detects. It never waits and does not allocate unless it refuses. The zero Gate is open; it must not be copied once it
// has been used.
type Gate struct {
	Name   string // of the component, for errors
	Closed error  // wrapped by calls after Shut, with ErrUnsupported; not nil
	state  atomic.Uint32
}

// Enter takes the gate for one call, which ends with Leave. The error wraps ErrPoisoned, or ErrUnsupported after Shut
// and during another call; the gate is then not taken.
func (g *Gate) Enter() error {
	if g.state.CompareAndSwap(gateOpen, gateTaken) {
		return nil
	}
	return g.refusal()
}

// EnterPoisoned is Enter for Renew, Restore and Close, which an Env allows while it is poisoned. poisoned reports that
// it was: a caller that changes nothing must poison it again.
func (g *Gate) EnterPoisoned() (poisoned bool, err error) {
	if g.state.CompareAndSwap(gatePoisoned, gateTaken) {
		return true, nil
	}
	return false, g.Enter()
}

// Leave ends a call. It does nothing if the call has poisoned the Env or shut the gate.
func (g *Gate) Leave() { g.state.CompareAndSwap(gateTaken, gateOpen) }

// Poison rejects all calls but EnterPoisoned. The caller must hold the gate.
func (g *Gate) Poison() { g.state.Store(gatePoisoned) }

// Shut closes the gate for ever, also of a poisoned Env. first is true for the call that did, whose caller frees
// the Env; later calls return false and nil. It is an error, and the gate is as it was, during another call.
func (g *Gate) Shut() (first bool, err error) {
	for _, from := range []uint32{gateOpen, gatePoisoned} {
		if g.state.CompareAndSwap(from, gateShut) {
			return true, nil
		}
	}
	if g.state.Load() == gateShut {
		return false, nil
	}
	return false, g.refusal()
}

// Busy reports whether a call is under way. It may be called from any goroutine.
func (g *Gate) Busy() bool { return g.state.Load() == gateTaken }

func (g *Gate) refusal() error {
	switch g.state.Load() {
	case gatePoisoned:
		return fmt.Errorf("%s: %w", g.Name, ErrPoisoned)
	case gateShut:
		return fmt.Errorf("%w: %s: %w", ErrUnsupported, g.Name, g.Closed)
	}
	return fmt.Errorf("%w: %s is called during another call", ErrUnsupported, g.Name)
}
