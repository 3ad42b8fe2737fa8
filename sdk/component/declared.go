package component

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/hostabi"
)

// Declared is a component that is put together from its parts:
//
//	type clipper struct {
//		Limit  float32 `toml:"limit"`
//		out    component.Signal
//		reward component.Column
//	}
//
//	func New() component.Component {
//		c := &clipper{Limit: 1}
//		return &component.Declared{
//			Config:  c,
//			Signals: []component.Output{{Name: "trajectories", Payload: "trajectory", Doc: "with clipped rewards", Bind: &c.out}},
//			Slots: []component.Input{{Name: "on_trajectories", Payload: "trajectory", Doc: "full blocks", Handle: c.onTrajectory,
//				Columns: []component.Want{{Name: "reward", Into: &c.reward, Write: true}}}},
//		}
//	}
//
//	func (c *clipper) onTrajectory(m *component.Message) error {
//		for i, r := range c.reward.Float32() {
//			c.reward.Float32()[i] = max(-c.Limit, min(c.Limit, r))
//		}
//		return component.Pass(c.out, m)
//	}
//
// A Declared is for one instance. A component whose Start can fail implements Component itself.
type Declared struct {
	Config   any          // points to a struct as Configure decodes into, with the defaults; nil: the table has no keys
	Check    func() error // optional: checks the decoded Config; see Require
	Signals  []Output     // in the order of the manifest
	Slots    []Input      // in the order of the manifest
	Requests []Question   // that it answers; see Asked
	Asks     []Request    // that it asks other components; see Asking
	OnStart  func(h Host) // optional: called before the first message, to make metrics and timers
	// OnPause, OnResume and OnStop are optional: as Pause and Resume of a Pauser, and Stop of a Component.
	OnPause, OnResume, OnStop func() error
	State                     any // points to the state to save, of fixed size: numbers, arrays and structs of them, exported; nil: none
}

// Output is a signal of a Declared component.
type Output struct {
	Name, Payload, Doc string
	Schema             uint64  // see Port
	Bind               *Signal // set when the component starts; nil where OnStart takes the signal from the host
}

// Input is a slot of a Declared component.
type Input struct {
	Name, Payload, Doc string
	Schema             uint64 // see Port
	Columns            []Want // of the block of each message
	// Handle handles a message. An error ends the run.
	Handle func(m *Message) error
}

// Want is a column that a slot looks at.
type Want struct {
	Name     string
	DType    hostabi.DType // the required type; 0: any
	Into     *Column       // set before Handle is called, and valid until it returns
	Write    bool          // to be written in place, which the wire must grant
	Optional bool          // a block may lack it, and Into is the zero Column then, which has no Bytes; else the run ends with an error
}

var (
	_ Component = (*Declared)(nil)
	_ Pauser    = (*Declared)(nil)
)

// Manifest returns the ports and requests.
func (d *Declared) Manifest() Manifest {
	var m Manifest
	for _, s := range d.Signals {
		m.Signals = append(m.Signals, Port{Name: s.Name, Payload: s.Payload, Doc: s.Doc, Schema: s.Schema})
	}
	for _, s := range d.Slots {
		m.Slots = append(m.Slots, Port{Name: s.Name, Payload: s.Payload, Doc: s.Doc, Schema: s.Schema})
	}
	for _, q := range d.Requests {
		m.Requests = append(m.Requests, q.Request)
	}
	m.Asks = d.Asks
	return m
}

// Configure decodes into Config and calls Check.
func (d *Declared) Configure(decode func(into any) error) error {
	config := d.Config
	if config == nil {
		config = &struct{}{}
	}
	if err := decode(config); err != nil || d.Check == nil {
		return err
	}
	return d.Check()
}

// Start binds signals and slots and calls OnStart.
func (d *Declared) Start(h Host) error {
	for _, s := range d.Signals {
		if s.Bind != nil {
			*s.Bind = h.Signal(s.Name)
		}
	}
	for _, s := range d.Slots {
		h.Slot(s.Name, func(m *Message) {
			if err := s.handle(m); err != nil {
				h.Fail(err)
			}
		})
	}
	for _, q := range d.Requests {
		h.Handle(q.Name, q.Handle)
	}
	if d.OnStart != nil {
		d.OnStart(h)
	}
	return nil
}

// handle looks the columns up and calls Handle.
func (s *Input) handle(m *Message) error {
	if m.Block == nil && len(s.Columns) > 0 {
		return fmt.Errorf("a message of the slot %s names no block, whose columns it wants", s.Name)
	}
	for i := range s.Columns {
		if err := s.Columns[i].look(m.Block); err != nil {
			return err
		}
	}
	return s.Handle(m)
}

func (w *Want) look(b Block) (err error) {
	if w.Write {
		*w.Into, err = b.Writable(w.Name)
	} else {
		*w.Into, err = b.Column(w.Name)
	}
	if w.Optional && err != nil {
		*w.Into = Column{}
		return nil
	}
	if err == nil && w.DType != 0 && w.Into.DType != w.DType {
		return fmt.Errorf("the column %s is %v, want %v", w.Name, w.Into.DType, w.DType)
	}
	return err
}

// Snapshot returns State as bytes, little-endian.
func (d *Declared) Snapshot() ([]byte, error) {
	if d.State == nil {
		return nil, nil
	}
	return binary.Append(nil, binary.LittleEndian, d.State)
}

// Restore replaces State. If the bytes are not as many as Snapshot's it fails and leaves State alone.
func (d *Declared) Restore(state []byte) error {
	if d.State == nil {
		return nil
	}
	if want := binary.Size(d.State); len(state) != want {
		return fmt.Errorf("a state of %d bytes, want %d: it is that of another version of the component", len(state), want)
	}
	_, err := binary.Decode(state, binary.LittleEndian, d.State)
	return err
}

// Pause calls OnPause.
func (d *Declared) Pause() error { return perhaps(d.OnPause) }

// Resume calls OnResume.
func (d *Declared) Resume() error { return perhaps(d.OnResume) }

// Stop calls OnStop.
func (d *Declared) Stop() error { return perhaps(d.OnStop) }

// perhaps calls a function, if there is one.
func perhaps(fn func() error) error {
	if fn == nil {
		return nil
	}
	return fn()
}

// Require returns nil if ok, else a *ConfigError with a key of the table and the reason, such as "is missing".
func Require(ok bool, key, reason string) error {
	if ok {
		return nil
	}
	return &ConfigError{Key: key, Reason: reason}
}

// Pass sends a message with its block on: to the next component, or as the answer to a request. A message dropped by a full
// wire is no error; the errors are Signal.Emit's.
func Pass(to Signal, m *Message) error {
	_, err := to.Emit(*m)
	return err
}

// Kept is a message whose block is kept beyond the slot that it came to.
type Kept struct {
	Message Message // its Block is the lease
	lease   Lease
}

// Keep leases the block of a message that names one, while its slot runs. The Kept ends with Send or Release.
func Keep(m *Message) (Kept, error) {
	lease, err := m.Block.Lease()
	if err != nil {
		return Kept{}, err
	}
	k := Kept{*m, lease}
	k.Message.Block = lease
	return k, nil
}

// Send passes the message on and releases the block.
func (k *Kept) Send(to Signal) error { return errors.Join(Pass(to, &k.Message), k.Release()) }

// Release ends the lease. It fails if it has ended.
func (k *Kept) Release() error { return k.lease.Release() }
