package component

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/env"
)

// save keeps the state that a fault goes back to.
func (g *guest) save() { g.saved, g.unsaved = g.run.Save(g.contain), false }

// keep saves what Snapshot has left to be saved, before the guest goes on. One that is replaced does not.
func (g *guest) keep() {
	if g.unsaved {
		g.save()
	}
}

// failed handles an error of a call: any but a fault ends the run. It reports whether the guest goes on.
func (g *guest) failed(err error) bool {
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

// faulted reports whether an error is a fault. After one the guest goes on from the state that was saved last; what it had leased
// is released.
func (g *guest) faulted(err error) bool {
	var fault *env.Fault
	if !errors.As(err, &fault) || !fault.Poisons() {
		return false
	}
	g.faults.Inc()
	switch {
	case g.host.Yield(err): // it is being replaced
		g.dead = true
	case g.restarts == g.source.MaxRestarts:
		g.end(fmt.Errorf("%w; restarted %d times already (max_restarts)", err, g.restarts))
	default:
		g.restarts++
		g.host.Log.Warn("component restarted", "error", err, "restart", g.restarts, "max_restarts", g.source.MaxRestarts)
		if err := g.goBack(); err != nil {
			g.end(err)
		}
	}
	return true
}

// end fails the component for good. What it has leased is released when it stops.
func (g *guest) end(err error) {
	g.dead = true
	g.host.Fail(err)
}

// giveBack releases what the guest has leased, and counts it.
func (g *guest) giveBack() error {
	n, err := g.blocks.releaseAll()
	g.returned.Add(uint64(n))
	return err
}

// goBack releases what the guest has leased and restores its saved state.
func (g *guest) goBack() error {
	if err := g.giveBack(); err != nil {
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
	return nil
}
