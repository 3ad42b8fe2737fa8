package pipeline

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// What runs a component, as status tells it, besides those that the file names.
const runtimeWasm = "wasm"

// where the parts of a run are, for status.
const hostLocal = "local"

// idleTime is how long an instance without messages has been without them when status says what it waits for.
const idleTime = time.Second

// Status describes every instance, in the order of the graph. It reads counters, and may be called at any time.
func (p *Pipeline) Status() []control.ComponentStatus {
	s := p.look(time.Now())
	list := make([]control.ComponentStatus, len(s.seats))
	for i, x := range s.seats {
		list[i] = s.describe(x)
	}
	return list
}

// State returns that of the whole run: paused if an instance is, stalled if one is. Any goroutine.
func (p *Pipeline) State() control.State {
	s := p.look(time.Now())
	if s.over != "" {
		return s.over
	}
	state := control.Running
	for _, x := range s.seats {
		switch x.state {
		case control.Failed, control.Lost, control.Stalled:
			return control.Stalled
		case control.Paused, control.Replacing, control.Ready:
			state = x.state
		}
	}
	return state
}

// Wires returns the counters of all wires, in the order of the graph.
func (p *Pipeline) Wires() []control.WireStatus {
	wires := p.now().wires
	list := make([]control.WireStatus, len(wires))
	for i, w := range wires {
		n := w.counters()
		list[i] = control.WireStatus{
			Wire: n.Wire, Mode: w.wire.Mode.String(), Delivered: n.Delivered, Dropped: n.Dropped, Coalesced: n.Coalesced,
			Blocked: n.Blocked, Queued: n.Queued, Parked: n.Parked, Depth: n.Depth,
		}
	}
	return list
}

// observed is what status, taps and group requests keep of a run.
type observed struct {
	watch     watch
	taps      taps
	pauses    pauses
	steps     atomic.Pointer[control.StepCounts] // at the end of the run
	untold    atomic.Uint64                      // env steps that processes which died had counted as trained or dropped, and not told
	unmade    atomic.Uint64                      // the same of those made
	uncounted uncounted
	settled   atomic.Uint64 // deaths of processes after which that was found out
}

// observe begins to watch a run, until the function that it returns is called, when its loops have ended.
func (p *Pipeline) observe() (conclude func()) {
	end := p.watch.begin(p)
	return func() {
		end()
		p.taps.end()
		p.steps.Store(new(p.readSteps()))
	}
}

// sight is a run at one moment.
type sight struct {
	p     *Pipeline
	at    time.Time
	over  control.State // how the run ended; empty while it has not
	seats []*seen
	own   held // blocks that this process holds
}

// seen is an instance at that moment.
type seen struct {
	*member
	record
	state     control.State
	perSecond float64
	stalled   time.Duration // since when messages wait, if that is too long
	silent    time.Duration // for how long its loop has been in one slot
	blocked   bool          // its data lane is paused, and not by a request: for room in a wire
	out       []*link       // full: it goes on once there is room again, which is when they are half empty
	links     []*link       // all outgoing
}

// link is a connection at that moment.
type link struct {
	from, to *seen
	name     string // "rollout.trajectories → batcher.on_trajectories"
	slot     string // batcher.on_trajectories
	signal   string // rollout.trajectories
	queued   int
	depth    int
	parked   int
}

// look takes a sight.
func (p *Pipeline) look(now time.Time) *sight {
	p.watch.look(p, now)
	s := &sight{p: p, at: now, over: p.ending.state()}
	changing := p.changing()
	a := p.now()
	p.watch.mu.Lock()
	defer p.watch.mu.Unlock()
	for i := range a.members {
		m := &a.members[i]
		x := &seen{member: m}
		if r := p.watch.seats[seatName{m.of.Name, m.index}]; r != nil {
			x.record, x.perSecond = *r, r.rate.PerSecond(rateWindow)
		}
		if d, yes := x.record.stalled(now); yes {
			x.stalled = d
		}
		x.silent = p.watch.silent(m.loop, now)
		x.blocked = m.host.Receiver.Paused() && !p.pauses.has(m.instance)
		s.seats = append(s.seats, x)
	}
	for _, x := range s.seats {
		x.state = s.stateOf(x, changing[x.instance])
	}
	s.own = p.watch.own
	s.findLinks()
	s.findHolder()
	return s
}

// changing returns the instances that a change which is being committed makes go over, or replaces.
func (p *Pipeline) changing() map[*instance]bool {
	p.life.mu.Lock()
	t := p.life.change
	p.life.mu.Unlock()
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stage != committing {
		return nil
	}
	list := map[*instance]bool{}
	for _, e := range t.envs {
		list[e.x.instance] = true
	}
	for _, r := range t.swaps {
		list[r.old.instance] = true
	}
	return list
}

// state tells how the run ended, or nothing.
func (e *ending) state() control.State {
	if e.counters.Load() == nil {
		return ""
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.err != nil || e.reason == "":
		return control.Failed
	case e.reason == component.StopInterrupted:
		return control.Interrupted
	}
	return control.Completed
}

func (s *sight) stateOf(x *seen, changing bool) control.State {
	switch {
	case s.over != "":
		return s.over
	case !s.p.ending.started.Load() || x.proc.State == component.ProcessStarting:
		return control.Ready
	case x.live.failed() != nil || x.proc.State == component.ProcessFailed:
		return control.Failed
	case gone(&x.proc):
		return control.Lost
	case changing:
		return control.Replacing
	case s.p.pauses.has(x.instance):
		return control.Paused
	case x.stalled > 0:
		return control.Stalled
	}
	return control.Running
}

// process returns the process that an instance runs in; zero for one that runs in this one.
func (m *member) process() (p component.Process) {
	if c, ok := m.component.(component.Remote); ok {
		p = c.Process()
	}
	return p
}

// gone reports whether there should be a process and is none.
func gone(p *component.Process) bool { return p.State != "" && p.State != component.ProcessRunning }

// describe makes the document of one instance.
func (s *sight) describe(x *seen) control.ComponentStatus {
	d := control.ComponentStatus{
		Name: x.name, Kind: x.of.Kind, Runtime: x.of.Runtime, Host: hostLocal, State: x.state,
		Queued: x.queued, Depth: x.depth, IdleSecs: s.at.Sub(x.tookAt).Seconds(), WaitsFor: s.waitsFor(x),
		Version: x.version(s.p.now().graph), Rate: x.perSecond,
	}
	_, d.Unit = x.done(0)
	if v := x.live.runs(); v != nil && x.of.Runtime == graph.RuntimeBuiltin {
		d.Runtime = runtimeWasm
		if v.table.Isolated {
			d.Runtime = graph.RuntimeProcess
		}
	}
	switch {
	case x.proc.PID != 0:
		d.Host = fmt.Sprintf("pid %d", x.proc.PID)
	case x.proc.State != "":
		d.Host = "process"
	}
	if x.state == control.Paused {
		d.Rate = 0 // of before
	}
	switch {
	case x.live.failed() != nil:
		d.Note = x.live.failed().Error()
	case gone(&x.proc):
		d.Note = "its process is " + x.proc.State
	case x.stalled > 0 && x.proc.Unfinished > 0:
		d.Note = fmt.Sprintf("its process has not finished with a message for %s", seconds(x.stalled))
	case x.stalled > 0:
		d.Note = fmt.Sprintf("has taken nothing for %s", seconds(x.stalled))
	default:
		d.Note = s.heldNote(x)
	}
	return d
}

// version names the file that an instance or its environments are made from.
func (m *member) version(g *graph.Graph) *control.Version {
	if v := m.live.runs(); v != nil {
		use, _ := v.table.Locate(g.Dir, nil)
		if v.table.Plugin != nil {
			use = v.table.Plugin.Name + ":" + v.table.Use
		} else if filepath.Base(v.table.Use) == v.table.Use {
			use = v.table.Use
		}
		return &control.Version{File: use, Hash: v.plugin.Hash()}
	}
	if x := g.Plugin(m.of.Plugin); x != nil {
		return &control.Version{File: x.Table.Path, Hash: x.Digest}
	}
	return nil
}

// waitsFor says what keeps an instance from going on, if something does.
func (s *sight) waitsFor(x *seen) string {
	switch {
	case s.over != "" || x.state != control.Running && x.state != control.Stalled:
		return ""
	case len(x.out) > 0:
		return "room at " + x.out[0].slot
	case x.queued+x.proc.Unfinished > 0 || s.at.Sub(x.tookAt) < idleTime:
		return ""
	}
	text := ""
	for _, from := range s.seats {
		for _, l := range from.links {
			if l.to == x && text != l.signal {
				if text != "" {
					return text + " and others"
				}
				text = l.signal
			}
		}
	}
	return text
}

func seconds(d time.Duration) string { return fmt.Sprintf("%d s", int(d.Seconds())) }
