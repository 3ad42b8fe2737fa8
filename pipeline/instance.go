package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/loops"
)

// placement is an instance's share of the run's numbers.
type placement struct {
	id        uint16                  // 0: the next that is free
	name      string                  // empty: as the graph has it
	first     int                     // global index of its first environment
	task      uint16                  // of its environments' episodes
	inherited map[string]*arena.Arena // of its predecessor; nil if it has none
	begun     int                     // see component.Host
	abrupt    bool                    // a predecessor was removed without a pause
	published uint64                  // by learners of its policy before it, where it has no predecessor
	held      bool                    // nothing is handled before Release
	watches   []probation             // that handle its failures, the newest last
}

// view is the assembly that an instance belongs to.
func (x *instance) view() *assembly {
	if a := x.joining.Load(); a != nil {
		return a
	}
	return x.run.now()
}

// env is Host.Env.
func (x *instance) env(name string) (env.Plugin, error) {
	v := x.view().Envs[name]
	if v == nil {
		return nil, fmt.Errorf("env %q is not declared", name)
	}
	x.live.uses(v)
	return v.Plugin, nil
}

// halt pauses an instance and holds it: none of its slots runs, and messages for it stay pending. On an error it continues
// as if it had not been asked. A failed instance is held already. With force, an instance that does not pause in time is
// held as it is, as if it had failed: then forced is true, and a change that is not made has to call resumeForced.
func (x *instance) halt(ctx context.Context, force bool) (forced bool, err error) {
	if x.live.failed() != nil {
		return false, nil
	}
	r := x.host.Receiver
	rested := make(chan struct{})
	pauser, ok := x.component.(component.Pauser)
	err = x.loop.Try(ctx, func() {
		if !ok {
			r.Hold()
			close(rested)
			return
		}
		pauser.Pause(func() {
			r.Hold()
			close(rested)
		})
	})
	if err != nil {
		return false, err
	}
	select {
	case <-rested:
		return false, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
		if force && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			x.stand(fmt.Errorf("forced: %w", err))
			return true, nil
		}
	case <-x.loop.Gone():
		err = ErrEnded
	}
	x.loop.Do(func() {
		select {
		case <-rested:
			r.Release()
		default:
		}
		if ok {
			pauser.Resume()
		}
	})
	return false, err
}

// resumeForced lets an instance run on that was held as it was.
func (x *instance) resumeForced() {
	x.live.mu.Lock()
	x.live.fault = nil
	x.live.mu.Unlock()
	x.resume()
}

// resume resumes an instance.
func (x *instance) resume() {
	if x.live.failed() != nil {
		return
	}
	x.loop.Do(func() {
		if pauser, ok := x.component.(component.Pauser); ok {
			pauser.Resume()
		}
	})
	x.host.Receiver.Release()
}

// stand holds an instance that has failed.
func (x *instance) stand(fault error) {
	x.live.mu.Lock()
	defer x.live.mu.Unlock()
	if x.live.fault == nil {
		x.live.fault = fault
		x.host.Receiver.Hold()
	}
}

// published returns the newest policy version that an instance has published.
func (x *instance) published() uint64 {
	newest := x.host.Published
	for _, port := range x.component.Manifest().Signals {
		if m, ok := x.host.Signal(port.Name).Newest(); ok && component.PayloadOf(port.Payload).Publishes {
			newest = max(newest, m.PolicyVersion)
		}
	}
	return newest
}

// snapshot takes the snapshot of an instance on its own loop, unless ctx ends before that can be; here is the caller's loop.
func (x *instance) snapshot(ctx context.Context, here *loops.Loop) (state component.State, err error) {
	if err := x.live.unsavable(); err != nil {
		return state, err
	}
	if x.loop == here {
		return x.component.Snapshot()
	}
	if ended := x.loop.Try(ctx, func() { state, err = x.component.Snapshot() }); ended != nil {
		return x.snapshotApart(ended)
	}
	return state, err
}

// snapshotApart takes the snapshot of an instance off its loop, which has not handled the request for the given reason, where the
// component allows that.
func (x *instance) snapshotApart(reason error) (component.State, error) {
	if apart, ok := x.component.(component.Apart); ok && x.live.unsavable() == nil {
		if state, ok, err := apart.SnapshotApart(); ok {
			return state, err
		}
	}
	return component.State{}, reason
}

// lastingWithin bounds how long a boundary waits for the lasting state of an instance, which may be in a long step.
const lastingWithin = 500 * time.Millisecond

// lasting returns the state that outlives an instance's episodes, taken on its own loop; here is the caller's loop. A failed
// instance must not be asked.
func (x *instance) lasting(ctx context.Context, here *loops.Loop) (part component.State, ok bool, err error) {
	from, lasts := x.component.(component.Lasting)
	switch {
	case !lasts || x.live.failed() != nil:
		return part, false, nil
	case x.loop == here:
		part, ok = from.Lasting()
		return part, ok, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, lastingWithin, fmt.Errorf("what outlives its episodes was not to be had within %v", lastingWithin))
	defer cancel()
	if ended := x.loop.Try(ctx, func() { part, ok = from.Lasting() }); ended != nil {
		return component.State{}, false, ended
	}
	return part, ok, nil
}

// asked is the member as group requests take it: on its loop, also while its receiver is held.
func (m *member) asked() control.Member {
	return control.Member{Name: m.name, Kind: m.of.Kind, Receiver: m.loop.Own, Gone: m.loop.Gone()}
}

// intake returns how many messages an instance has taken, how many are pending for it, and how much room there is
// for them.
func (m *member) intake() (taken uint64, queued, depth int) {
	for _, c := range m.incoming() {
		s := c.Stats()
		taken += s.Delivered
		queued += s.Queued
		depth += c.Options().Depth
	}
	if len(m.of.Manifest.Slots) == 0 { // it takes no messages: its own show progress
		for _, port := range m.of.Manifest.Signals {
			taken += m.host.Signal(port.Name).Stats().Emitted
		}
	}
	return taken, queued, depth
}

// passes returns how many trajectories an instance that passes them on has taken, and how many it has sent; zero for any other.
func (m *member) passes() (taken, sent uint64) {
	for _, port := range m.of.Manifest.Slots {
		if slot := m.host.BoundSlot(port.Name); slot != nil && component.PayloadOf(port.Payload).Steps {
			for _, c := range slot.Connections() {
				taken += c.Stats().Delivered
			}
		}
	}
	passes := false
	for _, port := range m.of.Manifest.Signals {
		if component.PayloadOf(port.Payload).Steps {
			passes = true
			sent += m.host.Signal(port.Name).Stats().Emitted
		}
	}
	if !passes {
		return 0, 0
	}
	return taken, sent
}

// incoming returns the connections to the slots of an instance.
func (m *member) incoming() (list []*bus.Connection) {
	for _, port := range m.of.Manifest.Slots {
		if slot := m.host.BoundSlot(port.Name); slot != nil {
			list = append(list, slot.Connections()...)
		}
	}
	return list
}

// done returns how much an instance has done, and its unit: the env steps of finished trajectories where it runs environments, else messages.
func (m *member) done(taken uint64) (n uint64, unit string) {
	if m.of.Flow.BlockRows == 0 {
		return taken, "messages"
	}
	return m.handed.Load(), "env steps"
}

// process returns the process that an instance runs in; zero for this one.
func (m *member) process() (p component.Process) {
	if c, ok := m.component.(component.Remote); ok {
		p = c.Process()
	}
	return p
}

// version names the file that an instance or its environments are made from.
func (m *member) version(g *graph.Graph) *control.Version {
	if v := m.live.runs(); v != nil {
		use, _ := v.Table.Locate(g.Dir, nil)
		if v.Table.Plugin != nil {
			use = v.Table.Plugin.Name + ":" + v.Table.Use
		} else if filepath.Base(v.Table.Use) == v.Table.Use {
			use = v.Table.Use
		}
		return &control.Version{File: use, Hash: v.Plugin.Hash()}
	}
	if x := m.of.Module; x != nil {
		return &control.Version{File: x.Path(g.Dir), Hash: x.Digest}
	}
	if x := g.Plugin(m.of.Plugin); x != nil {
		return &control.Version{File: x.Table.Path, Hash: x.Digest}
	}
	return nil
}
