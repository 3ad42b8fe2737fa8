package component

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	core "github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
)

// unanswered is the fault of a guest that returns from rl_slot without having answered the request that it was called with: the asker
// would wait for ever.
func unanswered(use string) error {
	return &env.Fault{Kind: env.FaultOutput, Name: "component", Source: use, Call: hostabi.ExportSlot, Env: -1, Component: true, Err: errUnanswered}
}

var errUnanswered = errors.New("it did not answer the request")

// save keeps the state that a fault goes back to.
func (g *component) save() {
	g.unsaved.Store(false)
	g.saved = g.run.Save(g.contain, g.saved)
	g.asking.save()
}

// recovery is the state that a guest returns to after a fault.
type recovery struct {
	saved   *savedInstance
	unsaved atomic.Bool // the present state must be saved before the next call. Any goroutine sets it
}

// SaveState has the state saved before the guest is called again.
func (r *recovery) SaveState() { r.unsaved.Store(true) }

// keep saves the state that Snapshot and SaveState have asked for, before the guest continues. A replaced guest does not continue. A
// guest that keeps blocks is saved after it has given them back: an earlier state would have tokens that no longer name anything.
func (g *component) keep() {
	if g.unsaved.Load() && g.blocks.leases == 0 {
		g.save()
	}
}

// failed handles an error of a call: any but a fault ends the run. It reports whether the guest continues.
func (g *component) failed(err error) bool {
	if g.faulted(err) {
		return !g.dead
	}
	var status *env.Fault
	if !errors.As(err, &status) { // which names the file
		err = fmt.Errorf("%s: %w", g.source.Use, err)
	}
	g.host.Fail(err)
	return false
}

// faulted reports whether an error is a fault. After a fault the guest continues from the state that was saved last, and its
// leases are released.
func (g *component) faulted(err error) bool {
	var fault *env.Fault
	if !errors.As(err, &fault) || !fault.Poisons() && !errors.Is(err, errUnanswered) && !errors.Is(err, errPositive) {
		return false
	}
	g.faults.Inc()
	switch {
	case g.host.Yield(err): // it is being replaced
		g.dead = true
	case g.restarts.Within(g.source.RestartWindow) >= g.source.MaxRestarts:
		g.end(fmt.Errorf("%w; restarted %d times already (max_restarts)", err, g.restarts.Within(g.source.RestartWindow)))
	default:
		g.restarts.Count()
		g.host.Log.Warn("component restarted", "error", err, "restart", g.restarts.Within(g.source.RestartWindow), "max_restarts", g.source.MaxRestarts)
		if err := g.goBack(); err != nil {
			g.end(err)
		}
	}
	return true
}

// end fails the component for good. Its leases are released when it stops.
func (g *component) end(err error) {
	g.dead = true
	g.host.Fail(err)
}

// goBack releases the guest's leases and restores its saved state.
func (g *component) goBack() error {
	if err := g.blocks.releaseAll(); err != nil {
		return err
	}
	if g.saved == nil {
		return fmt.Errorf("%s: the module can change more than its memory, so it cannot be restored", g.source.Use)
	}
	if err := g.run.Restore(g.saved); err != nil {
		return err
	}
	g.unmapAll()
	for _, s := range g.slots {
		s.forgetMemory(g.run)
	}
	g.answers.forgetMemory(g.run)
	g.loseAnswers()
	return nil
}

// errForgotten is the error of a question whose answer the guest has got and then lost with a fault.
var errForgotten = fmt.Errorf("%w for good: the answer came before a fault of the component that asked, which has gone back to an earlier state", core.ErrLost)

// loseAnswers follows a guest that goes back to its saved state: questions that it does not know any more are forgotten, and the ones whose answers it has
// lost have an error.
func (g *component) loseAnswers() {
	for _, number := range slices.Sorted(maps.Keys(g.asking.saved)) {
		if _, waits := g.asking.open[number]; !waits {
			g.await(number, nil, errForgotten)
		}
	}
	g.asking.open = maps.Clone(g.asking.saved)
}
