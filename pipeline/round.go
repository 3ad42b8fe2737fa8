package pipeline

import (
	"slices"
	"sync"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// learns reports whether a component learns from datasets.
func (m *member) learns() bool { return learns(&m.of.Manifest) }

func learns(m *component.Manifest) bool {
	return slices.ContainsFunc(m.Slots, func(port component.Port) bool { return component.PayloadOf(port.Payload).Learned })
}

// answers reports whether a component answers requests of components with environments.
func answers(m *component.Manifest) bool {
	return slices.ContainsFunc(m.Signals, func(port component.Port) bool { return component.PayloadOf(port.Payload).Answers })
}

// publishes reports whether a component publishes versions of a policy, learned or stored.
func (m *member) publishes() bool {
	return slices.ContainsFunc(m.of.Manifest.Signals, func(port component.Port) bool { return component.PayloadOf(port.Payload).Publishes })
}

// learners returns the members that learn from datasets.
func (a *assembly) learners() (list []*member) {
	for i := range a.members {
		if m := &a.members[i]; m.learns() {
			list = append(list, m)
		}
	}
	return list
}

// sources returns the names of the components that feed a learner: the ones that gather its datasets, and the ones that they
// have the trajectories from.
func (a *assembly) sources(learner *member) map[string]bool {
	found := map[string]bool{learner.of.Name: true}
	for more := true; more; {
		more = false
		for i := range a.graph.Wires {
			w := &a.graph.Wires[i]
			payload := component.PayloadOf(w.Payload)
			if found[w.To] && !found[w.From] && (payload.Learned || payload.Steps) {
				found[w.From], more = true, true
			}
		}
	}
	delete(found, learner.of.Name)
	return found
}

// round keeps the learners of a synchronous run in step: between two boundaries each learns from a dataset, and the boundary
// comes when the last one has. Learners that are done wait for it: until then a round claims the trajectories that they have
// learned from, so that their rollouts, which have one block for each split, are between two blocks.
type round struct {
	*running

	mu      sync.Mutex
	off     int // callers of suspend that have not called resume
	learned map[*instance]bool
	kept    []hostabi.Handle // claimed trajectories
	deaths  uint64           // processes that had ended when the round began
}

// ends notes that a learner has learned from a dataset, and reports whether all have: then the next round begins. It
// waits for no learner that cannot continue meanwhile, because it has neither a dataset under way nor its own rollout.
func (r *round) ends(x *instance) bool {
	a := r.now()
	learners := a.learners()
	if len(learners) < 2 {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.learned == nil {
		r.learned = map[*instance]bool{}
	}
	r.learned[x] = true
	if r.off > 0 || !r.waits(a, learners) {
		r.begin()
		return true
	}
	for i := range learners {
		if learners[i].instance == x {
			r.keep(a, a.sources(learners[i]))
		}
	}
	return false
}

// waits reports whether there is a learner to wait for. The caller must hold mu.
func (r *round) waits(a *assembly, learners []*member) bool {
	stopped := map[string]bool{}
	for _, m := range learners {
		if r.learned[m.instance] {
			for name := range a.sources(m) {
				stopped[name] = true
			}
		}
	}
	for _, m := range learners {
		if !r.learned[m.instance] && (a.goesOn(m, stopped) || r.shares(a, m)) {
			return true
		}
	}
	return false
}

// shares reports whether a learner has yet to learn from a trajectory that others have learned from in this round. Where
// components are processes it may still be on its way to a dataset, which nothing else shows. The caller must hold mu.
func (r *round) shares(a *assembly, learner *member) (found bool) {
	var done []string // policies
	for _, m := range a.learners() {
		if r.learned[m.instance] {
			done = append(done, m.of.Policy)
		}
	}
	a.trajectories(a.sources(learner), func(own *arena.Arena, h hostabi.Handle) {
		found = found || r.awaits(own, h, learner.of.Policy, done)
	})
	return found
}

// awaits reports whether somebody else than the round claims a trajectory that some policies have been learned from, and that one
// has not. The caller must hold mu.
func (r *round) awaits(own *arena.Arena, h hostabi.Handle, policy string, done []string) bool {
	tr, lease, err := trajectory.Lease(r.arenas, h)
	if err != nil {
		return false // it has become free meanwhile
	}
	defer lease.Release()
	settled := uint32(0)
	for fate := range trajectory.Fates {
		settled |= trajectory.Settled(own, h, fate)
	}
	learned := func(policy string) (yes, acts bool) {
		place, acts := tr.Schema.PolicyPlace(policy)
		return settled>>place&1 != 0, acts
	}
	if yes, acts := learned(policy); yes || !acts {
		return false
	}
	others := slices.ContainsFunc(done, func(policy string) bool {
		yes, acts := learned(policy)
		return yes && acts
	})
	mine := 1 // the lease
	if slices.Contains(r.kept, h) {
		mine++
	}
	claims, elsewhere := own.Claims(h)
	return others && (claims > mine || elsewhere)
}

// stalled returns a learner that waits although processes have ended since the round began: their trajectories are lost to every
// learner. nil if there is none.
func (r *round) stalled() *instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.off > 0 || len(r.learned) == 0 || r.deaths == r.processDeaths() {
		return nil
	}
	for x := range r.learned {
		return x
	}
	return nil
}

// waiting reports whether a learner waits for others.
func (r *round) waiting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.learned) > 0
}

// over reports whether learners wait for no other any more: then the next round begins.
func (r *round) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.now()
	if r.off > 0 || len(r.learned) == 0 || r.waits(a, a.learners()) {
		return false
	}
	r.begin()
	return true
}

// goesOn reports whether a learner will learn from a dataset while some components are stopped.
func (a *assembly) goesOn(learner *member, stopped map[string]bool) bool {
	sources := a.sources(learner)
	for i := range a.members {
		m := &a.members[i]
		if sources[m.of.Name] && !stopped[m.of.Name] && (m.of.Flow.Envs > 0 || outstanding(m.datasets())) {
			return true
		}
	}
	return false
}

// datasets returns the arenas of an instance that gathers datasets.
func (m *member) datasets() (list []*arena.Arena) {
	for _, port := range m.of.Manifest.Signals {
		if component.PayloadOf(port.Payload).Learned {
			for _, a := range m.host.OwnArenas() {
				list = append(list, a)
			}
			return list
		}
	}
	return nil
}

// keep claims the trajectories of some components. The caller must hold mu.
func (r *round) keep(a *assembly, of map[string]bool) {
	a.trajectories(of, func(own *arena.Arena, h hostabi.Handle) {
		if own.Retain(h) == nil { // else it has become free meanwhile
			r.kept = append(r.kept, h)
		}
	})
}

// trajectories calls fn with the committed trajectories of some components.
func (a *assembly) trajectories(of map[string]bool, fn func(own *arena.Arena, h hostabi.Handle)) {
	for i := range a.members {
		m := &a.members[i]
		if !of[m.of.Name] || m.of.Flow.Envs == 0 {
			continue
		}
		for _, own := range m.host.OwnArenas() {
			if _, ok := own.Schema().(*trajectory.Schema); ok {
				own.Committed(func(h hostabi.Handle) { fn(own, h) })
			}
		}
	}
}

// begin begins the next round. The caller must hold mu.
func (r *round) begin() {
	for _, h := range r.kept {
		if err := r.arenas.Release(h); err != nil {
			r.log.Warn("release of a block that learners have learned from", "block", h, "err", err)
		}
	}
	clear(r.learned)
	r.kept, r.deaths = r.kept[:0], r.processDeaths()
}

// suspend stops learners from waiting for each other until resume is called: a learner might wait for an instance that is being replaced.
func (r *round) suspend() (resume func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.off++
	r.begin()
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.off--
	}
}

// outstanding reports whether any block is claimed.
func outstanding(list []*arena.Arena) bool {
	for _, a := range list {
		if s := a.Stats(); s.Live+s.Zombie > 0 {
			return true
		}
	}
	return false
}
