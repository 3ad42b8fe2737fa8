package diagnosis

import (
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
)

// Run is a run at one moment. Its owner sets all fields, connects the instances and then calls Judge.
type Run struct {
	At        time.Time
	Over      control.State // how it ended; empty while it runs
	Begun     bool
	Instances []*Instance
	Held      Held // blocks that this process holds
}

// Instance is an instance at that moment.
type Instance struct {
	Name      string
	Loop      string // event loop that it lives on
	LoopEnded bool
	Record
	PerSecond float64       // recent work
	Stalled   time.Duration // since when messages wait, if that is too long
	Silent    time.Duration // for how long its loop has been in one slot
	Blocked   bool          // its data lane is paused, and not by a request: for room in a wire
	Paused    bool          // by a request
	Replaced  bool          // a change replaces it, or its environments, now
	Fault     error         // why it failed, or nil
	Debts     []Debt        // answers that it owes
	Learns    bool          // datasets are for it

	State control.State // set by Judge

	out   []*link // full: the instance continues once they are half empty
	links []*link // all outgoing
}

// Debt is an answer that an instance owes.
type Debt struct {
	To     string // who asked
	Signal string // that it asked on
	For    time.Duration
}

// WaitsForRoom reports whether a full connection keeps the instance from sending.
func (x *Instance) WaitsForRoom() bool { return len(x.out) > 0 }

// idleTime is how long an instance has had no messages when status says what it waits for.
const idleTime = time.Second

// Judge sets the states of the instances.
func (s *Run) Judge() {
	for _, x := range s.Instances {
		x.State = s.stateOf(x)
	}
	s.findHolder()
}

func (s *Run) stateOf(x *Instance) control.State {
	switch {
	case s.Over != "":
		return s.Over
	case !s.Begun || x.Process.State == component.ProcessStarting:
		return control.Ready
	case x.Fault != nil || x.Process.State == component.ProcessFailed:
		return control.Failed
	case gone(&x.Process):
		return control.Lost
	case x.Replaced:
		return control.Replacing
	case x.Paused:
		return control.Paused
	case x.Stalled > 0:
		return control.Stalled
	}
	return control.Running
}

// gone reports whether there should be a process and is none.
func gone(p *component.Process) bool { return p.State != "" && p.State != component.ProcessRunning }

// State returns that of the whole run: paused if an instance is, stalled if one is.
func (s *Run) State() control.State {
	if s.Over != "" {
		return s.Over
	}
	state := control.Running
	for _, x := range s.Instances {
		switch x.State {
		case control.Failed, control.Lost, control.Stalled:
			return control.Stalled
		case control.Paused, control.Replacing, control.Ready:
			state = x.State
		}
	}
	return state
}

// Note says why an instance does not work as it should, or which blocks it has held for long; empty if there is nothing to say.
func (s *Run) Note(x *Instance) string {
	switch {
	case x.Fault != nil:
		return x.Fault.Error()
	case gone(&x.Process):
		return "its process is " + x.Process.State
	case x.Stalled > 0 && x.Process.Unfinished > 0:
		return fmt.Sprintf("its process has not finished with a message for %s", seconds(x.Stalled))
	case x.Stalled > 0:
		return fmt.Sprintf("has taken nothing for %s", seconds(x.Stalled))
	case x.State != control.Stalled && x.Held.age(s.At) <= holdTime || len(x.Held.since) == 0:
		return ""
	}
	return "holds " + x.Held.text(s.At)
}

// WaitsFor says what an instance waits for, if anything.
func (s *Run) WaitsFor(x *Instance) string {
	switch {
	case s.Over != "" || x.State != control.Running && x.State != control.Stalled:
		return ""
	case x.WaitsForRoom():
		return "room at " + x.out[0].slot
	case x.Queued+x.Process.Unfinished > 0 || s.At.Sub(x.TookAt) < idleTime:
		return ""
	}
	text := ""
	for _, from := range s.Instances {
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
