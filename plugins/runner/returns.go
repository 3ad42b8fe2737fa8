package runner

import (
	"math"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// gaugeMeanLength is the gauge of the window's mean length.
const gaugeMeanLength = "charts/episodic_length"

// returns keeps the episodes of one policy.
type returns struct {
	window  *Window
	task    uint16 // of the episodes in the window
	trained uint64 // env steps that the policy has learned from; 0 without a learner
	// The program reads these: the window's mean, NaN while it is not full, and its mean length.
	meanReturn, meanLength *stat.Gauge
}

// newReturns makes an empty window; named makes the names of the gauges.
func newReturns(size int, stats *stat.Registry, named func(string) string) returns {
	return returns{
		window:     NewWindow(size),
		meanReturn: stats.Gauge(named(component.GaugeMeanReturn)), meanLength: stats.Gauge(named(gaugeMeanLength)),
	}
}

// count adds an episode to the window. The first of a new task restarts it, and count reports that: returns under another
// reward are not comparable. Late ones of an old task and episodes of a trial are left out.
func (r *returns) count(e trajectory.Episode) (anew bool) {
	newer := int16(e.Task - r.task) // task numbers wrap after 65,535
	if e.Task == trajectory.TrialTask || newer < 0 {
		r.window.Pass()
		return false
	}
	if newer > 0 {
		r.task = e.Task
		r.window.Clear()
	}
	r.window.Push(e)
	return newer > 0
}

// learned takes the env steps that the policy has learned from out of a learner's report.
func (r *returns) learned(names []string, values []float64) {
	if i := slices.Index(names, globalStep); i >= 0 && values[i] >= 0 && values[i] < math.MaxInt64 {
		r.trained = uint64(values[i])
	}
}

// publish makes the window's numbers visible to the whole program.
func (r *returns) publish() {
	mean := math.NaN()
	if r.window.Full() {
		mean = r.window.Mean()
	}
	r.meanReturn.Set(mean)
	r.meanLength.Set(r.window.MeanLength())
}

// policies finds the policies of messages.
type policies struct {
	h       *component.Host
	senders map[uint16]string // as they were known last: messages may come from a component that has gone meanwhile
	names   map[uint32]string // by trajectory.PolicyID
}

func newPolicies(h *component.Host) policies {
	return policies{h: h, senders: map[uint16]string{}, names: map[uint32]string{}}
}

// of returns the policy that a message's sender is of, empty for the leading one.
func (p *policies) of(m *hostabi.Message) string {
	if p.h.PolicyOf == nil {
		return ""
	}
	name, ok := p.h.PolicyOf(m.Sender)
	if !ok {
		return p.senders[m.Sender]
	}
	name = p.beside(name)
	if p.senders[m.Sender] != name {
		p.senders[m.Sender] = name
	}
	return name
}

// acted returns the policy that acted in an episode, empty for the leading one. ok is false for a policy that is not declared any more.
func (p *policies) acted(m *hostabi.Message, e trajectory.Episode) (name string, ok bool) {
	if e.Policy == 0 {
		return p.of(m), true
	}
	name, ok = p.names[e.Policy]
	if !ok && p.h.Tables != nil {
		for declared := range p.h.Tables().Policies {
			p.names[trajectory.PolicyID(declared)] = declared
		}
		name, ok = p.names[e.Policy]
	}
	return p.beside(name), ok
}

// beside returns a policy's name, empty for the leading one. Without a leading policy it is empty for all.
func (p *policies) beside(name string) string {
	if leading := p.h.Run.Policy; leading == "" || name == leading {
		return ""
	}
	return name
}

// returnsOf returns a policy's returns; the empty name is the leading one's.
func (rn *Runner) returnsOf(policy string) *returns {
	if policy == "" {
		return &rn.returns
	}
	r := rn.others[policy]
	if r == nil {
		made := newReturns(rn.window.Size(), rn.h.Stats, func(name string) string { return component.OfPolicy(policy, name) })
		r = &made
		rn.others[policy] = r
		made.window.SetEnvs(int(rn.known))
		made.publish()
		rn.syncActing()
	}
	return r
}
