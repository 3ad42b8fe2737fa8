package pipeline

import (
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/component"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// heldNote says what an instance has held for long, or nothing.
func (s *statusSnapshot) heldNote(x *seen) string {
	if x.state != control.Stalled && x.held.age(s.at) <= holdTime || len(x.held.since) == 0 {
		return ""
	}
	return "holds " + x.held.text(s.at)
}

// statusSnapshot is a run at one moment.
type statusSnapshot struct {
	*watch
	at        time.Time
	over      control.State // how the run ended; empty while it runs
	instances []*seen
	heldHere  held // blocks that this process holds
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

// Runtimes in status that the file does not name.
const runtimeWasm = "wasm"

// where the parts of a run are, for status.
const hostLocal = "local"

// idleTime is how long an instance without messages has been without them when status says what it waits for.
const idleTime = time.Second

func (s *statusSnapshot) stateOf(x *seen, changing bool) control.State {
	switch {
	case s.over != "":
		return s.over
	case !s.ending.started.Load() || x.proc.State == component.ProcessStarting:
		return control.Ready
	case x.live.failed() != nil || x.proc.State == component.ProcessFailed:
		return control.Failed
	case gone(&x.proc):
		return control.Lost
	case changing:
		return control.Replacing
	case s.pauses.has(x.instance):
		return control.Paused
	case x.stalled > 0:
		return control.Stalled
	}
	return control.Running
}

// describe makes the status of one instance.
func (s *statusSnapshot) describe(x *seen) control.ComponentStatus {
	d := control.ComponentStatus{
		Name: x.name, Kind: x.of.Kind, Runtime: x.of.Runtime, Host: hostLocal, State: x.state,
		Queued: x.queued, Depth: x.depth, IdleSecs: s.at.Sub(x.tookAt).Seconds(), WaitsFor: s.waitsFor(x),
		Version: x.version(s.now().graph), Rate: x.perSecond,
	}
	_, d.Unit = x.done(0)
	if v := x.live.runs(); v != nil && x.of.Runtime == graph.RuntimeBuiltin {
		d.Runtime = runtimeWasm
		if v.Table.Isolated() {
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
		d.Rate = 0 // a previous rate
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

// waitsFor says what an instance waits for, if anything.
func (s *statusSnapshot) waitsFor(x *seen) string {
	switch {
	case s.over != "" || x.state != control.Running && x.state != control.Stalled:
		return ""
	case len(x.out) > 0:
		return "room at " + x.out[0].slot
	case x.queued+x.proc.Unfinished > 0 || s.at.Sub(x.tookAt) < idleTime:
		return ""
	}
	text := ""
	for _, from := range s.instances {
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
