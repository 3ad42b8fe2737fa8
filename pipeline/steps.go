package pipeline

import (
	"strings"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// stepCounter counts the env steps of a run; see Pipeline.Steps.
type stepCounter struct {
	*running
	elsewhere Elsewhere                          // or nil
	stop      func(component.StopReason)         // Pipeline.Stop
	last      atomic.Pointer[control.StepCounts] // at the end of the run
}

// Counters of env steps that never were in a trajectory that was handed over, each kept where it happens.
const (
	stepsFaulty  = "rollout/lost_env_steps" // of trajectories or environments lost to a fault
	stepsSwapped = "swap/dropped_env_steps" // of trajectories that a change cut short
)

func (c *stepCounter) read() control.StepCounts {
	if last := c.last.Load(); last != nil {
		return *last
	}
	return c.readOnce()
}

func (c *stepCounter) readOnce() control.StepCounts {
	faulty, swapped, cut := c.stats.Counter(stepsFaulty).Value(), c.stats.Counter(stepsSwapped).Value(), c.stats.Counter(component.CounterCutEnvs).Value()
	r := c.ledger.read()
	elsewhere := uint64(0)
	if c.elsewhere != nil {
		elsewhere = c.elsewhere.LostSteps()
	}
	s := control.StepCounts{Made: r.made + faulty + swapped + cut + elsewhere, Trained: r.settled[trajectory.Trained], UnderWay: r.underWay, Reasons: r.dropped}
	add := func(why string, n uint64) {
		if n > 0 {
			s.Reasons[why] = n
		}
	}
	add(reasonFault, faulty)
	add(reasonSwap, swapped)
	add(reasonHost, elsewhere)
	add(reasonTooOld, r.settled[trajectory.TooOld])
	add(reasonCut, cut+r.settled[trajectory.Cut])
	for _, n := range s.Reasons {
		s.Dropped += n
	}
	return s
}

// tell is Host.Steps.
func (c *stepCounter) tell(to func(name string, n uint64)) {
	s := c.read()
	to(component.CounterMade, s.Made-s.Reasons[reasonFault]-s.Reasons[reasonSwap]-c.stats.Counter(component.CounterCutEnvs).Value())
	to(component.CounterTrained, s.Trained)
	to("steps/made", s.Made)
	to("steps/trained", s.Trained)
	to("steps/dropped", s.Dropped)
	to("steps/underway", s.UnderWay)
	for why, n := range s.Reasons {
		to("steps/dropped/"+why, n)
	}
}

// processDeaths returns how many processes of components have ended.
func (r *running) processDeaths() (n uint64) {
	r.stats.Each(func(name string, deaths *stat.Counter) {
		if strings.HasPrefix(name, "process/deaths/") {
			n += deaths.Value()
		}
	}, nil, nil)
	return n
}

// of returns the arena of a trajectory, or nil: the run is over, or the block holds none.
func (c *stepCounter) of(h hostabi.Handle) *arena.Arena {
	a, err := c.arenas.Of(h)
	if err != nil {
		return nil
	}
	if _, ok := a.Schema().(*trajectory.Schema); !ok {
		return nil
	}
	return a
}

// sends notes each trajectory that an instance sends on the signal at that place.
func (c *stepCounter) sends(x *instance, place int, signal *bus.Signal) {
	signal.OnLoss(func(h hostabi.Handle) {
		if a := c.of(h); a != nil {
			c.ledger.lose(a, h)
		}
	})
	_, remote := x.component.(component.Remote)
	signal.OnEmit(func(m hostabi.Message) error {
		tr, lease, err := trajectory.Lease(c.arenas, m.Handle)
		if err != nil {
			return nil // the receivers see that
		}
		defer lease.Release() // this lease has no other user
		n, err := c.ledger.send(x.host.ID, place, c.of(m.Handle), tr, m.Handle)
		if remote || x.away() { // whose steps nobody here counts
			c.stats.Counter(component.CounterMade).Add(uint64(n))
		}
		x.handed.Add(uint64(n))
		c.enough()
		return err
	})
}

// cuts notes the parts of trajectories in each dataset that an instance sends.
func (c *stepCounter) cuts(x *instance, signal *bus.Signal) {
	var list []trajectory.Member
	signal.OnEmit(func(m hostabi.Message) error {
		list = c.dataset(m.Handle, list[:0])
		for _, t := range list {
			if !t.Part.Whole() {
				c.cut(x.of.Policy, t)
			}
		}
		return nil
	})
}

// cut notes the part of a trajectory that a dataset has; a part that its block does not have is an error of the learner's.
func (c *stepCounter) cut(policy string, t trajectory.Member) {
	tr, lease, err := trajectory.Lease(c.arenas, t.Handle)
	if err != nil {
		return // the receivers see that
	}
	defer lease.Release() // this lease has no other user
	if t.Part.Check(tr.Schema) == nil {
		c.ledger.cut(policy, c.of(t.Handle), t, tr)
	}
}

// enough ends a run that learns nothing once it has made the env steps of its stop rule. Where something is learned, what has been learned
// from counts.
func (c *stepCounter) enough() {
	if rule := c.now().run.Stop.EnvSteps; rule > 0 && len(c.policies().learned) == 0 && c.ledger.handed() >= rule {
		c.stop(component.StopEnvSteps)
	}
}

// takes is Host.Takes.
func (x *instance) takes(p *Pipeline, port *component.Port) func(m *hostabi.Message) {
	c, payload := &p.steps, component.PayloadOf(port.Payload)
	switch {
	case payload.OnLoan && !payload.Answers && x.live.owes != nil:
		name := port.Name
		return func(m *hostabi.Message) { x.live.owes.take(name, m) }
	case payload.Steps:
		return func(m *hostabi.Message) {
			c.take(by{id: x.host.ID, name: x.of.Name}, trajectory.Member{Handle: m.Handle})
		}
	case payload.Learned:
		var list []trajectory.Member
		return func(m *hostabi.Message) {
			list = c.dataset(m.Handle, list[:0])
			for _, t := range list {
				c.take(by{id: x.host.ID, name: x.of.Name, learns: true, policy: x.of.Policy, foreign: x.of.Plugin != ""}, t)
			}
		}
	}
	return nil
}

// dataset appends the trajectories of a dataset; none if its block has become free, which the learner sees.
func (c *stepCounter) dataset(h hostabi.Handle, list []trajectory.Member) []trajectory.Member {
	lease, err := c.arenas.Lease(h)
	if err != nil {
		return list
	}
	defer lease.Release()                                    // this lease has no other user
	_, list, _ = trajectory.ReadDataset(lease.Bytes(), list) // none if it is no dataset
	return list
}

// keeps is Host.Keeps.
func (c *stepCounter) keeps(x *instance, of *graph.Component) func(again []hostabi.Message) {
	if !learns(&of.Manifest) {
		return func([]hostabi.Message) {}
	}
	kept := c.ledger.learned(x.host.ID)
	return func(again []hostabi.Message) {
		var list []trajectory.Member
		for i := range again {
			if again[i].Handle != 0 {
				list = c.dataset(again[i].Handle, list)
			}
		}
		for _, t := range list {
			if a := c.of(t.Handle); a != nil {
				c.ledger.again(x.host.ID, a, t)
			}
		}
		c.ledger.goesBack(x.host.ID, of.Name, of.Policy, kept)
	}
}

// sent reports whether an instance, or one whose place it has, has sent a trajectory on.
func (c *stepCounter) sent(x *instance, h hostabi.Handle) bool {
	a := c.of(h)
	return a != nil && c.ledger.sentBy(x.host.ID, a, h)
}

func (c *stepCounter) take(who by, t trajectory.Member) {
	if a := c.of(t.Handle); a != nil {
		c.ledger.take(who, a, t)
	}
}
