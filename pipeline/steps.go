package pipeline

import (
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Counters of env steps, each kept where it happens.
const (
	stepsMade    = "rollout/env_steps"      // handed over in trajectories
	stepsFaulty  = "rollout/lost_env_steps" // of trajectories or environments lost to a fault
	stepsSwapped = "swap/dropped_env_steps" // of trajectories that a change did not let end
	stepsTooOld  = "lag/dropped_rows"       // older than the bound on policy lag
	stepsTrained = "learner/env_steps"
)

// Steps are read one after the other while the run goes on, so a step that moves meanwhile may be missed, or counted
// twice: then they are read again, with so much time between, for so long; longer where processes count, which report
// ten times a second.
const (
	stepPause      = time.Millisecond
	stepTime       = 20 * time.Millisecond
	stepTimeRemote = 300 * time.Millisecond
)

// Steps counts the env steps of this process's run. Each number is counted where it happens, and those under way in the
// blocks that hold them. At a dataset boundary of a synchronous run they add up; else Steps reads again, for 20 ms at
// most, until they do. What components in other processes have counted comes up to 100 ms later: with such it goes on
// for 300 ms. What a process had counted and not yet told when it died is known by its being missing ever since, once:
// trained or dropped, it is dropped for the reason "process"; made, it is made all the same. Any goroutine; after Run it
// returns what they were at its end.
func (p *Pipeline) Steps() control.StepCounts {
	if last := p.steps.Load(); last != nil {
		return *last
	}
	if s, yes := p.stepsOfOthers(); yes {
		return s
	}
	settled, deaths := p.settled.Load(), p.deaths()
	s := p.readSteps()
	least, most := missing(&s), missing(&s)
	limit := stepTime
	if p.remote() || deaths > settled {
		limit = stepTimeRemote
	}
	for end := time.Now().Add(limit); missing(&s) != 0 && time.Now().Before(end); {
		<-time.After(stepPause)
		s = p.readSteps()
		least, most = min(least, missing(&s)), max(most, missing(&s))
	}
	if deaths == settled || missing(&s) != 0 && least <= 0 && most >= 0 || !p.settled.CompareAndSwap(settled, deaths) || missing(&s) == 0 {
		return s
	}
	p.untold.Add(uint64(max(least, 0)))
	p.unmade.Add(uint64(max(-most, 0)))
	return p.readSteps()
}

// missing returns how many steps are not accounted for; below 0, how many are twice.
func missing(s *control.StepCounts) int64 { return int64(s.Made - s.Trained - s.Dropped - s.UnderWay) }

// remote reports whether processes count steps.
func (p *Pipeline) remote() bool {
	return slices.ContainsFunc(p.now().members, func(m member) bool { return m.process().State != "" })
}

// deaths returns how many processes of components have died.
func (p *Pipeline) deaths() (n uint64) {
	p.stats.Each(func(name string, c *stat.Counter) {
		if strings.HasPrefix(name, "process/deaths/") {
			n += c.Value()
		}
	}, nil, nil)
	return n
}

func (p *Pipeline) readSteps() control.StepCounts {
	count := func(name string) uint64 { return p.stats.Counter(name).Value() }
	s := control.StepCounts{Trained: count(stepsTrained) + p.uncounted.steps(), Reasons: map[string]uint64{}}
	drop := func(reason string, n uint64) {
		if n > 0 {
			s.Reasons[reason] = n
		}
		s.Dropped += n
	}
	faulty, swapped := count(stepsFaulty), count(stepsSwapped)
	drop("fault", faulty)
	drop("swap", swapped)
	drop("policy_lag", count(stepsTooOld))
	drop("wire", p.stepsLostOnWires())
	drop("process", p.untold.Load())
	s.UnderWay = p.stepsUnderWay()
	s.Made = count(stepsMade) + faulty + swapped + p.unmade.Load()
	return s
}

// stepsUnderWay counts the valid rows of the trajectories that somebody has a claim on: a wire, a batcher, a dataset.
func (p *Pipeline) stepsUnderWay() (n uint64) {
	p.arenas.Each(func(a *arena.Arena) {
		if _, ok := a.Schema().(*trajectory.Schema); !ok {
			return
		}
		a.Committed(func(h hostabi.Handle) {
			tr, lease, err := trajectory.Lease(p.arenas, h)
			if err != nil {
				return // it has become free meanwhile
			}
			shape := tr.Schema.Shape
			n += uint64(min(int(tr.Meta().ValidRows), shape.Steps*shape.Envs))
			_ = lease.Release() // nobody else has this lease
		})
	})
	return n
}

// stepsLostOnWires counts those of trajectories that wires have dropped by their overflow policy, and of those that are
// wired nowhere.
func (p *Pipeline) stepsLostOnWires() (n uint64) {
	a := p.now()
	for _, w := range a.wires {
		if w.wire.Payload == payloadTrajectory {
			c := w.counters()
			n += (c.Dropped + c.Coalesced) * uint64(a.graph.Component(w.wire.From).Flow.BlockRows)
		}
	}
	for i := range a.members {
		m := &a.members[i]
		for _, port := range m.of.Manifest.Signals {
			if port.Payload == payloadTrajectory {
				n += m.host.Signal(port.Name).Stats().Unconnected * uint64(m.of.Flow.BlockRows)
			}
		}
	}
	return n
}
