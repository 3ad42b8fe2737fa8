package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Graph returns the running graph. A change replaces it.
func (p *Pipeline) Graph() *graph.Graph { return p.running.now().graph }

// Env returns the loaded environment that runs now. It is open until another version of it has been committed and
// settled, or Close.
func (p *Pipeline) Env(name string) (env.Plugin, error) {
	if v := p.running.now().Envs[name]; v != nil {
		return v.Plugin, nil
	}
	return nil, fmt.Errorf("env %q is not declared", name)
}

// Policy returns the policy that Parts.Policy made of a [policy.NAME] table.
func (p *Pipeline) Policy(name string) (component.Policy, error) { return p.running.now().policy(name) }

// Stats returns the metrics of all components.
func (p *Pipeline) Stats() *stat.Registry { return p.running.stats }

// Warnings returns the warnings about the environments that were loaded first.
func (p *Pipeline) Warnings() graph.Problems { return p.warnings }

// Status describes a run at one moment.
type Status struct {
	State control.State // of the whole run: paused if an instance is, stalled if one is
	// Cause says why the run has stalled: the first cause, and the blocked wire. It is empty while the run progresses,
	// and before and after it.
	Cause      string
	Components []control.ComponentStatus // every instance, in the order of the graph
}

// Status describes the run. It reads counters, and may be called at any time, from any goroutine.
func (p *Pipeline) Status() Status {
	s := p.watch.snapshot(time.Now())
	status := Status{State: s.State(), Cause: s.Cause(), Components: make([]control.ComponentStatus, len(s.Instances))}
	for i := range status.Components {
		status.Components[i] = s.describe(i)
	}
	return status
}

// starts wakes goroutines that wait until instances have started.
type starts struct {
	guard sync.Mutex
	next  chan struct{} // closed and replaced when one has; nil if no one waits
}

func (s *starts) tell() {
	s.guard.Lock()
	defer s.guard.Unlock()
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}

// Started returns a channel that is closed when the run begins or the process of an instance gets another state. To wait
// for a status, take the channel before reading Status. Any goroutine.
func (s *starts) Started() <-chan struct{} {
	s.guard.Lock()
	defer s.guard.Unlock()
	if s.next == nil {
		s.next = make(chan struct{})
	}
	return s.next
}

// Wires returns the counters of all wires, in the order of the graph, over all instances at their ends, also replaced
// ones. A message is counted in exactly one of Delivered, Dropped, Coalesced, Queued and Parked. It may be called at any
// time; after Run it returns the counters at its end.
func (p *Pipeline) Wires() []control.WireStatus {
	if last := p.ending.counters.Load(); last != nil {
		return slices.Clone(*last)
	}
	return p.running.readCounters()
}

// Pause pauses the instances that match patterns, all for none, and returns the answer of each, in the order of the graph. A rollout ends
// the trajectories that it has begun. Instances that others need for that pause after them: first requesters, then the instances that answer
// them, and so on downstream. ctx is the common deadline; an instance that has not paused by then runs on, and its answer is TimedOut.
//
// The end of the run lifts the pause, and a change or a checkpoint lifts it for as long as it takes: see lift. Where every
// instance is paused, a change or checkpoint that needs no env step is made without lifting it: see atRest. The pause belongs to
// the place in the graph: an instance that replaces a paused one is paused, and so is an instance added where all are paused.
//
// The error is a *control.Error for patterns that are malformed or name nothing. Any goroutine but a loop's.
func (p *Pipeline) Pause(ctx context.Context, patterns []string) ([]control.Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.changes.ctx, cancel)() // no instance pauses any more
	p.pauses.serial.Lock()                           // from here on no change begins, so that the chosen instances stay
	defer p.pauses.serial.Unlock()
	chosen, err := p.pauses.choose(patterns)
	if err != nil {
		return nil, err
	}
	return p.pauses.pause(ctx, chosen), nil
}

// Resume makes paused instances run on. Errors and answers are the same as Pause's.
func (p *Pipeline) Resume(ctx context.Context, patterns []string) ([]control.Answer, error) {
	p.pauses.serial.Lock()
	defer p.pauses.serial.Unlock()
	chosen, err := p.pauses.choose(patterns)
	if err != nil {
		return nil, err
	}
	p.pauses.wish(chosen, false)
	return p.pauses.resumeAll(ctx, chosen), nil
}

// Tap calls fn with the messages of all signals that a pattern names, as they pass, on a separate goroutine, until
// cancel is called or the run ends. The run never waits for it: messages that come while fn lags are skipped (their
// Sequence shows it). Taps continue when instances are replaced, added or ended.
//
// A pattern has a pattern for components, as control.ParsePattern reads it, a dot, and a pattern for signals:
// rollout.trajectories, rollout[1].*, *.episodes; without a dot it names all signals of the components. With columns fn
// gets only messages whose block is still valid, and stays so during the call: a.Lease works. Else blocks may be gone.
//
// cancel waits for a call of fn that is under way, so it must not be called by fn. fn must return quickly, because the
// end of the run waits for it too. Errors: *control.Error.
func (p *Pipeline) Tap(pattern string, columns bool, fn TapFunc) (cancel func(), err error) {
	t := &tap{run: &p.running, columns: columns, fn: fn, ended: make(chan struct{})}
	if err := t.parse(pattern); err != nil {
		return nil, err
	}
	if err := p.taps.add(t); err != nil {
		return nil, err
	}
	return func() { p.taps.cancel(t) }, nil
}

// Steps counts the env steps of this process's run: they add up at any moment. Trajectories that a component took and neither sent
// on nor settled count as dropped by that component, for the reason "component." and its name. Any goroutine; after Run it returns
// the counts at its end.
func (p *Pipeline) Steps() control.StepCounts { return p.steps.read() }

// ErrNoneSent is wrapped by Newest where no component has sent such a message yet.
var ErrNoneSent = errors.New("none has been sent")

// newestTries is how often Newest looks for a newer message when the found one's block has been reused.
const newestTries = 8

// Newest calls read with the newest message of a payload, such as weights, that a component of a policy has sent, and its
// block, which is claimed during the call; of several such components, with that of the newest policy version. It returns the error of read,
// ErrNoneSent, or ErrEnded after the run, whose end waits for read. Any goroutine.
func (p *Pipeline) Newest(payload, policy string, read func(m *hostabi.Message, block []byte) error) error {
	leave, ok := p.changes.visit()
	if !ok {
		return ErrEnded
	}
	defer leave()
	var err error
	for range newestTries {
		m, ok := p.running.now().newest(payload, policy)
		if !ok {
			return fmt.Errorf("%s: %w", payload, ErrNoneSent)
		}
		if m.Handle == 0 {
			return read(&m, nil)
		}
		var lease arena.Lease
		if lease, err = p.running.arenas.Lease(m.Handle); err != nil {
			continue // there is a newer one by now
		}
		return errors.Join(read(&m, lease.Bytes()), lease.Release())
	}
	return fmt.Errorf("%s: %w", payload, err)
}

// PolicyVersion returns the newest version of the leading policy that a component has published, or 0. Any goroutine.
func (p *Pipeline) PolicyVersion() uint64 { return p.running.PolicyVersion() }

// Trained returns the env steps of this process's run that the learner of a policy has learned from; for the leading policy,
// learners that name no policy count too. Any goroutine.
func (p *Pipeline) Trained(policy string) uint64 { return p.running.Trained(policy) }

// Learners describes the learners, in the order of the graph, without the returns; nil where there is only one. Any goroutine.
func (p *Pipeline) Learners() (list []control.LearnerStatus) {
	a := p.running.now()
	learners := a.learners()
	if len(learners) < 2 {
		return nil
	}
	for _, m := range learners {
		newest, _ := a.newest(component.PayloadWeights, m.of.Policy)
		list = append(list, control.LearnerStatus{Name: m.name, Policy: m.of.Policy, Leads: m.of.Policy == a.run.Policy,
			Version: newest.PolicyVersion, EnvSteps: p.Trained(m.of.Policy)})
	}
	return list
}

// Left returns the newest version of each policy whose learner has gone, by its name. Any goroutine.
func (p *Pipeline) Left() map[string]uint64 { return p.running.Left() }
