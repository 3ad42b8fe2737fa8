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
func (m *member) learns() bool {
	for _, port := range m.of.Manifest.Slots {
		if component.PayloadOf(port.Payload).Learned {
			return true
		}
	}
	return false
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

// sources returns the names of the components that what a learner learns from comes from: those that gather datasets for it,
// and those that they have the trajectories of.
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
// comes when the last one has. Those that have learned wait for it: until then a round claims the trajectories that they have
// learned from, so that their rollouts, which have one block for each split, are between two blocks.
type round struct {
	*running

	mu      sync.Mutex
	off     int // callers of suspend that have not called resume
	learned map[*instance]bool
	kept    []hostabi.Handle // claimed trajectories
}

// ends notes that a learner has learned from a dataset, and reports whether all have: then the next round begins. It
// waits for no learner that cannot go on meanwhile: one that has neither a dataset under way nor a rollout of its own.
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
		if !r.learned[m.instance] && a.goesOn(m, stopped) {
			return true
		}
	}
	return false
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
	for i := range a.members {
		m := &a.members[i]
		if !of[m.of.Name] || m.of.Flow.Envs == 0 {
			continue
		}
		for _, own := range m.host.OwnArenas() {
			if _, ok := own.Schema().(*trajectory.Schema); !ok {
				continue
			}
			own.Committed(func(h hostabi.Handle) {
				if own.Retain(h) == nil { // else it has become free meanwhile
					r.kept = append(r.kept, h)
				}
			})
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
	r.kept = r.kept[:0]
}

// keeps reports whether the round claims a trajectory, which has been learned from.
func (r *round) keeps(h hostabi.Handle) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.kept, h)
}

// suspend makes learners wait for each other no more until resume is called: instances are being replaced, which may
// be those that one waits for.
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
