package pipeline

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/loops"
)

// started reports whether the instance has ports.
func (x *instance) started() bool { return x.bound.Load() }

// running has the present parts of a run: status, taps, pauses and counts read it, changes replace it.
type running struct {
	log    *slog.Logger
	arenas *arena.Set
	stats  *stat.Registry
	loops  loops.Set
	begun  atomic.Int64 // instances that were made during the run
	ledger *ledger

	// state is the running assembly; it is replaced when a change has been made.
	state    atomic.Pointer[assembly]
	assigned atomic.Pointer[assigned] // of the assembly of the last call

	mu       sync.Mutex // guards what follows
	alive    []*instance
	retired  []*totals         // of wires that have ended
	leftover []*arena.Arena    // without an owner, and still claimed
	left     map[string]uint64 // by policies whose learners have gone, the newest version
}

// now returns the running assembly.
func (r *running) now() *assembly { return r.state.Load() }

// soa is Host.SoA.
func (r *running) soa(name string) (soa, known bool) {
	a := r.now()
	if a == nil {
		return false, false
	}
	for i := range a.members {
		if a.members[i].of.Name != name || !a.members[i].started() {
			continue
		}
		for _, own := range a.members[i].host.OwnArenas() {
			if schema, ok := own.Schema().(*trajectory.Schema); ok {
				return schema.Shape.SoA, true
			}
		}
	}
	return false, false
}

// again is Host.Again.
func (r *running) again() int { return int(r.begun.Add(1)) }

// enroll gives an instance its loop, its receiver and its ID.
func (r *running) enroll(x *instance, loopName string, held bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x.loop = r.loops.Join(loopName)
	x.host.Receiver = x.loop.NewReceiver(x.host.Name)
	if held {
		x.host.Receiver.Hold()
	}
	if x.host.ID == 0 {
		x.host.ID = r.freeID()
	}
	r.alive = append(r.alive, x)
}

// freeID returns the lowest ID that no instance has. The caller must hold mu.
func (r *running) freeID() uint16 {
	taken := map[uint16]bool{}
	for _, x := range r.alive {
		taken[x.host.ID] = true
	}
	id := uint16(1)
	for taken[id] {
		id++
	}
	return id
}

func (r *running) instancesAlive() []*instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.alive)
}

// connections returns all that may still deliver something.
func (r *running) connections() []*bus.Connection {
	list := r.draining()
	for _, x := range r.instancesAlive() {
		if x.started() {
			for _, port := range x.component.Manifest().Signals {
				list = append(list, x.host.Signal(port.Name).Connections()...)
			}
		}
	}
	return list
}

// draining returns the connections that are disconnected and may still deliver something.
func (r *running) draining() (list []*bus.Connection) {
	r.mu.Lock()
	retired := slices.Clone(r.retired)
	r.mu.Unlock()
	for _, l := range retired {
		list = append(list, l.waiting()...)
	}
	for _, w := range r.now().wires {
		list = append(list, w.waiting()...)
	}
	return list
}

func (r *running) readCounters() []control.WireStatus {
	wires := r.now().wires
	list := make([]control.WireStatus, len(wires))
	for i, w := range wires {
		list[i] = w.counters()
	}
	return list
}

// unlessStopped calls fn if the component has not been stopped; it is not stopped meanwhile. fn must not wait. Any goroutine.
func (x *instance) unlessStopped(fn func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.stopped {
		fn()
	}
}

// owed returns the requests that the component has not got all answers to. Any goroutine.
func (x *instance) owed() []component.Owed {
	asking, ok := x.component.(component.Asking)
	if !ok {
		return nil
	}
	var list []component.Owed
	x.unlessStopped(func() {
		asking.Owed(func(o component.Owed) { list = append(list, o) })
	})
	return list
}

// stop stops an instance, whose slots no longer run.
func (r *running) stop(x *instance) error {
	x.mu.Lock()
	x.stopped = true
	x.mu.Unlock()
	err := x.component.Stop()
	r.forget(x)
	if err != nil {
		return fmt.Errorf("%s: stop: %w", x.host.Name, err)
	}
	return nil
}

// forget takes an instance that has been stopped from the list.
func (r *running) forget(x *instance) {
	r.mu.Lock()
	r.alive = slices.DeleteFunc(r.alive, func(o *instance) bool { return o == x })
	r.mu.Unlock()
}

// retire takes an instance off its loop and stops it. successor is its replacement, or nil. The arenas that the
// successor has not taken are removed when their last claim is released.
func (r *running) retire(x, successor *instance) error {
	x.live.leave()
	x.host.Receiver.Close()
	err := r.stop(x)
	r.loops.Leave(x.loop)
	var kept map[string]*arena.Arena
	if successor != nil {
		kept = successor.host.OwnArenas()
	}
	r.abandon(x, kept)
	return err
}

// discard removes an instance that never ran.
func (r *running) discard(x *instance) error {
	x.host.Receiver.Close()
	err := r.stop(x)
	r.loops.Leave(x.loop)
	r.abandon(x, x.host.Inherited)
	return err
}

// abandon removes the arenas of an instance but the kept ones, at once or when they are no longer claimed.
func (r *running) abandon(x *instance, kept map[string]*arena.Arena) {
	if !x.started() {
		return
	}
	r.mu.Lock()
	for name, a := range x.host.OwnArenas() {
		if kept[name] != a {
			r.leftover = append(r.leftover, a)
		}
	}
	r.mu.Unlock()
	r.tidy()
}

// leave notes that a learner leaves: if its policy is learned again, versions continue from the ones it has published.
func (r *running) leave(m *member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left == nil {
		r.left = map[string]uint64{}
	}
	r.left[m.of.Policy] = max(r.left[m.of.Policy], m.published())
}

// Left is Pipeline.Left.
func (r *running) Left() map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.left)
}

// publishedOf returns the newest version that learners of a component's policy have published, former ones included; 0 for a component
// that does not learn.
func (r *running) publishedOf(of *graph.Component) (newest uint64) {
	if !of.Learns() {
		return 0
	}
	newest = r.Left()[of.Policy]
	for _, m := range r.now().learners() {
		if m.of.Policy == of.Policy && m.started() {
			newest = max(newest, m.published())
		}
	}
	return newest
}

// tidy removes arenas without owner and claims, and forgets wires that have delivered everything.
func (r *running) tidy() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leftover = slices.DeleteFunc(r.leftover, func(a *arena.Arena) bool {
		if outstanding([]*arena.Arena{a}) {
			return false
		}
		r.ledger.close(a)
		return !errors.Is(r.arenas.Remove(a.ID()), arena.ErrOpen)
	})
	r.retired = slices.DeleteFunc(r.retired, func(l *totals) bool { return len(l.waiting()) == 0 })
}

// feed runs the slots of an instance for messages that its predecessor had taken. It runs on the instance's loop.
func (r *running) feed(x *instance, waiting []component.Waiting) {
	for i := range waiting {
		w := &waiting[i]
		if slot := x.host.BoundSlot(w.Slot); slot != nil {
			slot.Run(&w.Message)
		}
		r.unclaim(w)
	}
}

// unclaim releases a message's claims.
func (r *running) unclaim(w *component.Waiting) {
	if !w.Claimed {
		return
	}
	if err := r.arenas.Release(w.Message.Handle); err != nil {
		r.log.Warn("release of a block that was handed over", "block", w.Message.Handle, "err", err)
	}
}

// catchUp delivers the messages that instances in processes have emitted: a learner there releases blocks after it
// sends the weights, but in shared memory, which is faster.
func (r *running) catchUp() {
	for _, x := range r.instancesAlive() {
		if c, ok := x.component.(component.Remote); ok {
			c.CatchUp()
		}
	}
}

// trajectories calls fn with every arena of trajectories.
func (r *running) trajectories(fn func(a *arena.Arena)) {
	r.arenas.Each(func(a *arena.Arena) {
		if _, ok := a.Schema().(*trajectory.Schema); ok {
			fn(a)
		}
	})
}

// heldBy returns the blocks of trajectories that a process has claims on; see arena.HeldBy.
func (r *running) heldBy(holder int) func(fn func(a *arena.Arena, h hostabi.Handle)) {
	return func(fn func(a *arena.Arena, h hostabi.Handle)) {
		r.trajectories(func(a *arena.Arena) { a.HeldBy(holder, func(h hostabi.Handle) { fn(a, h) }) })
	}
}

// place gives the event loops of an assembly the processors that its graph says.
func (r *running) place(a *assembly) {
	cores := map[string]string{}
	for i := range a.members {
		m := &a.members[i]
		if at := a.graph.PlaceOf(m.of); at.Cores != "" && m.of.Runtime != graph.RuntimeProcess {
			cores[m.loop.Name()] = at.Cores
		}
	}
	r.loops.Place(func(loop string) string { return cores[loop] }, func(loop string, err error) {
		r.log.Warn("an event loop runs on any processor, not on its own", "loop", loop, "err", err)
	})
}

// room returns the lowest index from which n environments fit between all running and planned ones.
func (r *running) room(n int, except *instance) int {
	first := 0
	for moved := true; moved; {
		moved = false
		for _, x := range r.instancesAlive() {
			from, to := x.host.FirstEnv, x.host.FirstEnv+x.envs
			if x != except && x.envs > 0 && first < to && from < first+n {
				first, moved = to, true
			}
		}
	}
	return first
}

// PolicyVersion is Pipeline.PolicyVersion.
func (r *running) PolicyVersion() uint64 {
	a := r.now()
	m, _ := a.newest(component.PayloadWeights, a.run.Policy)
	return m.PolicyVersion
}

// Trained is Pipeline.Trained.
func (r *running) Trained(policy string) uint64 {
	if policy != r.now().run.Policy {
		n := r.stats.Counter(component.OfPolicy(policy, component.CounterTrained)).Value()
		return n - min(r.ledger.lostOf(policy), n)
	}
	all, others := r.stats.Counter(component.CounterTrained).Value(), uint64(0)
	r.stats.Each(func(name string, c *stat.Counter) {
		if strings.HasSuffix(name, component.OfPolicy("", component.CounterTrained)) {
			others += c.Value()
		}
	}, nil, nil)
	others += r.ledger.lostOf(policy)
	if policy != "" {
		others += r.ledger.lostOf("")
	}
	return all - min(others, all)
}

// assigned says which policies the instances of an assembly are of.
type assigned struct {
	to      *assembly
	senders map[uint16]string   // by their IDs
	learned map[string]bool     // names of learners
	onWay   map[string]bool     // components that trajectories pass on their way to a learner, learners included
	ids     map[string][]uint16 // of the instances of each component, by the reason for which it drops
}

func (r *running) policies() *assigned {
	p := r.assigned.Load()
	if a := r.now(); p == nil || p.to != a {
		p = &assigned{to: a, senders: a.policies(), learned: map[string]bool{}, onWay: map[string]bool{}, ids: map[string][]uint16{}}
		for _, m := range a.learners() {
			p.learned[m.of.Policy], p.onWay[m.of.Name] = true, true
			maps.Copy(p.onWay, a.sources(m))
		}
		for i := range a.members {
			reason := reasonComponent + a.members[i].of.Name
			p.ids[reason] = append(p.ids[reason], a.members[i].host.ID)
		}
		r.assigned.Store(p)
	}
	return p
}

// policyOf is Host.PolicyOf.
func (r *running) policyOf(sender uint16) (name string, ok bool) {
	name, ok = r.policies().senders[sender]
	return name, ok
}
