package pipeline

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/bus"
)

// Close releases what Run has left: the plugins. Without a Run it releases everything. A change that is prepared is
// given up.
func (p *Pipeline) Close() error {
	return errors.Join(p.release(), p.library.close())
}

// release stops the components and closes the arenas, once; the loops must have ended. What leaked is in the
// error. Order matters: messages that nobody will get are dropped first, so that their blocks are no leaks.
func (p *Pipeline) release() error {
	var errs []error
	p.released.Do(func() {
		p.taps.end()
		for _, l := range p.allLoops() {
			l.over() // those that never ran
		}
		if t := p.life.await(); t != nil {
			errs = append(errs, t.giveUp())
		}
		for _, c := range p.connections() {
			c.DisconnectNow()
		}
		for _, l := range p.allLoops() {
			errs = append(errs, l.Close())
		}
		for _, x := range slices.Backward(p.instancesAlive()) {
			errs = append(errs, p.stop(x))
		}
		errs = append(errs, p.arenas.Close())
	})
	return errors.Join(errs...)
}

// stop stops an instance, whose slots run no more.
func (p *Pipeline) stop(x *instance) error {
	err := x.component.Stop()
	p.forget(x)
	if err != nil {
		return fmt.Errorf("%s: stop: %w", x.host.Name, err)
	}
	return nil
}

// forget takes an instance that has been stopped from the list.
func (p *Pipeline) forget(x *instance) {
	p.mu.Lock()
	p.alive = slices.DeleteFunc(p.alive, func(o *instance) bool { return o == x })
	p.mu.Unlock()
}

func (p *Pipeline) allLoops() []*runningLoop {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.loops)
}

func (p *Pipeline) instancesAlive() []*instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.alive)
}

// connections returns all that may still deliver something.
func (p *Pipeline) connections() []*bus.Connection {
	list := p.draining()
	for _, x := range p.instancesAlive() {
		if x.started() {
			for _, port := range x.component.Manifest().Signals {
				list = append(list, x.host.Signal(port.Name).Connections()...)
			}
		}
	}
	return list
}

// draining returns the connections that are disconnected and may still deliver something.
func (p *Pipeline) draining() (list []*bus.Connection) {
	p.mu.Lock()
	retired := slices.Clone(p.retired)
	p.mu.Unlock()
	for _, l := range retired {
		list = append(list, l.waiting()...)
	}
	for _, w := range p.now().wires {
		list = append(list, w.waiting()...)
	}
	return list
}
