package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// TapFunc gets one message of a tap: signal is "rollout.trajectories", from the instance. m is valid during the call.
type TapFunc func(signal, from string, m *hostabi.Message, a *arena.Set)

// tapDepth is how many messages of one signal may wait for a tap. Messages beyond that are skipped.
const tapDepth = 512

// taps are the taps of a pipeline.
type taps struct {
	*running

	guard sync.Mutex // held while taps are connected, so that they agree with the assembly
	list  []*tap
	over  bool
}

// tap is one call of Tap.
type tap struct {
	run     *running
	parts   control.Pattern // of components
	ports   control.Pattern // of signals
	columns bool
	fn      TapFunc

	loop     *loop.Loop
	receiver *loop.Receiver
	ended    chan struct{} // closed when the loop has
	signals  []*tapped     // guarded by taps.guard
}

// tapped is one signal of a tap. When an instance is replaced, its signals' connections move to the new one's
// signals, this one included: it then comes from another signal, without a message lost or shown twice.
type tapped struct {
	connection *bus.Connection
	name       string                 // component.port
	from       atomic.Pointer[string] // instance; changes with the number of instances
	onLoan     bool
}

// parse reads the pattern.
func (t *tap) parse(pattern string) (err error) {
	parts, ports, dotted := strings.Cut(pattern, ".")
	if !dotted {
		ports = "*"
	}
	if t.parts, err = control.ParsePattern(parts); err == nil && strings.ContainsAny(ports, "[:") {
		err = fmt.Errorf("pattern %q: want a signal after the dot, as in rollout.trajectories", pattern)
	}
	if err == nil {
		t.ports, err = control.ParsePattern(ports)
	}
	if err != nil {
		return control.Errorf(control.CodeBad, "%v", err)
	}
	if !t.matchesAny() {
		e := control.Errorf(control.CodeUnknown, "no signal is called %q", pattern)
		e.Help = "there are " + strings.Join(t.run.now().signals(), ", ")
		return e
	}
	return nil
}

func (t *tap) matchesAny() bool {
	return slices.ContainsFunc(t.run.now().members, func(m member) bool { return len(t.matching(&m)) > 0 })
}

// matching returns the signals of an instance that the pattern names.
func (t *tap) matching(m *member) (list []component.Port) {
	if !t.parts.Match(m.name, m.of.Kind) {
		return nil
	}
	for _, port := range m.of.Manifest.Signals {
		if t.ports.Match(port.Name, "") {
			list = append(list, port)
		}
	}
	return list
}

// add connects a tap and starts its loop.
func (s *taps) add(t *tap) error {
	s.guard.Lock()
	defer s.guard.Unlock()
	if s.over {
		return control.Errorf(control.CodeEnded, "the run has ended")
	}
	t.loop = loop.New("tap")
	t.receiver = t.loop.NewReceiver("tap")
	if err := t.connect(s.now()); err != nil {
		t.disconnect()
		return errors.Join(control.Errorf(control.CodeFailed, "%v", err), t.loop.Close())
	}
	s.list = append(s.list, t)
	go func() {
		defer close(t.ended)
		if err := t.loop.Run(context.Background()); err != nil {
			s.log.Error("a tap failed", "err", err) // the run does not depend on it
		}
	}()
	return nil
}

// cancel ends a tap.
func (s *taps) cancel(t *tap) {
	s.guard.Lock()
	mine := slices.Contains(s.list, t)
	s.list = slices.DeleteFunc(s.list, func(o *tap) bool { return o == t })
	t.disconnect()
	s.guard.Unlock()
	t.loop.Stop()
	<-t.ended
	if mine {
		_ = t.loop.Close() // it has ended
	}
}

// end cancels all, before the arenas go.
func (s *taps) end() {
	s.guard.Lock()
	s.over = true
	list := slices.Clone(s.list)
	s.guard.Unlock()
	for _, t := range list {
		s.cancel(t)
	}
}

// follow connects all taps to the signals of an assembly that will run, or runs now; connections to the running one
// stay. A change calls it when its instances are in place, which records their new names.
func (s *taps) follow(a *assembly) {
	s.guard.Lock()
	defer s.guard.Unlock()
	for _, t := range s.list {
		if err := t.connect(a); err != nil {
			s.log.Warn("a tap could not follow a change", "err", err)
		}
	}
}

// connect connects the tap to all signals of an assembly that match, and disconnects signals that neither it nor
// the running one has. The caller must hold taps.guard.
func (t *tap) connect(a *assembly) error {
	present := map[*bus.Signal]bool{}
	for _, of := range []*assembly{t.run.now(), a} {
		for i := range of.members {
			m := &of.members[i]
			for _, port := range t.matching(m) {
				sig := m.host.Signal(port.Name)
				present[sig] = true
				if err := t.follow(sig, m, port); err != nil {
					return err
				}
			}
		}
	}
	t.signals = slices.DeleteFunc(t.signals, func(x *tapped) bool {
		gone := !present[x.connection.Signal()]
		if gone {
			x.connection.Disconnect()
		}
		return gone
	})
	return nil
}

// follow connects the tap to a signal, or notes the name that its instance has now.
func (t *tap) follow(sig *bus.Signal, m *member, port component.Port) error {
	i := slices.IndexFunc(t.signals, func(x *tapped) bool { return x.connection.Signal() == sig })
	if i >= 0 {
		t.signals[i].from.Store(&m.name)
		return nil
	}
	x := &tapped{name: component.Qualified(m.of.Name, port.Name), onLoan: port.OnLoan}
	x.from.Store(&m.name)
	slot := bus.NewSlot(t.receiver, "tap", port.Payload, func(msg *hostabi.Message) { t.show(x, msg) })
	var err error
	x.connection, err = bus.Connect(sig, slot, bus.Options{Mode: bus.All, Depth: tapDepth, Overflow: bus.DropNewest, Unclaimed: true})
	if err != nil {
		return err
	}
	t.signals = append(t.signals, x)
	return nil
}

// show hands a message on, on the tap's loop.
func (t *tap) show(x *tapped, m *hostabi.Message) {
	if t.columns && m.Handle != 0 && !x.onLoan {
		lease, err := t.run.arenas.Lease(m.Handle)
		if err != nil {
			return // its block was reused: the run does not wait
		}
		defer lease.Release() // this lease has no other user
	}
	t.fn(x.name, *x.from.Load(), m, t.run.arenas)
}

func (t *tap) disconnect() {
	for _, x := range t.signals {
		x.connection.DisconnectNow()
	}
	t.signals = nil
}
