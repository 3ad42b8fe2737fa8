package author

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	sdk "github.com/rlhost/rlhost/sdk/component"
)

// host is the narrow view of a component.Host.
type host struct {
	wide   *component.Host
	policy string             // whose act requests are answered
	open   map[claim]struct{} // leases and loans
	views  map[uint8]view     // without a block, by the ID of their arena
}

// claim is a lease or a loan.
type claim interface{ end() error }

var _ sdk.Host = (*host)(nil)

func (h *host) Identity() sdk.Identity {
	w := h.wide
	return sdk.Identity{Name: w.Name, Index: w.Index, Count: w.Count, Seed: w.Run.Seed, Synchronous: w.Run.Synchronous}
}

func (h *host) Signal(name string) sdk.Signal { return &signal{host: h, to: h.wide.Signal(name)} }

func (h *host) Slot(name string, fn func(*sdk.Message)) {
	s := &slot{host: h, fn: fn, block: block{host: h, slot: name}}
	s.asked = h.wide.Slot(name, s.run).Payload() == component.PayloadRequest
}

func (h *host) Handle(name string, fn func(args []byte) ([]byte, error)) {
	h.wide.Handle(name, func(_ context.Context, args json.RawMessage, answer func(json.RawMessage, error)) { answer(fn(args)) })
}

func (h *host) Request(ask string, args []byte, within time.Duration, answer func([]byte, error)) {
	h.wide.Request(ask, args, within, func(reply json.RawMessage, err error) { answer(reply, authorError(err)) })
}

// authorError makes the author's error of the host's.
func authorError(err error) error {
	if err == nil {
		return nil
	}
	fault, told := component.FaultOf(err)
	return sdk.NoAnswer(fault, told.Type, told.Text, told.Place)
}

func (h *host) After(d time.Duration, fn func()) sdk.Timer { return h.wide.Receiver.After(d, fn) }
func (h *host) Every(d time.Duration, fn func()) sdk.Timer { return h.wide.Receiver.Every(d, fn) }
func (h *host) Counter(name string) sdk.Counter            { return h.wide.Stats.Counter(name) }
func (h *host) Gauge(name string) sdk.Gauge                { return h.wide.Stats.Gauge(name) }
func (h *host) Histogram(name string) sdk.Histogram        { return h.wide.Stats.Histogram(name) }
func (h *host) Log() *slog.Logger                          { return h.wide.Log }
func (h *host) TryLog() *slog.Logger                       { return h.wide.Log }
func (h *host) Fail(err error)                             { h.wide.Fail(err) }
func (h *host) Stop(reason sdk.StopReason)                 { h.wide.Stop(component.StopReason(reason)) }

func (h *host) Arena(name string, blocks int, columns ...sdk.Tensor) (sdk.Arena, error) {
	const align = 64
	schema := &native.Schema{Kind: native.KindTensors}
	for _, t := range columns {
		c := native.Column{Name: t.Name, DType: t.DType.String(), Rows: 1, Envs: 1, Elems: 1, Shape: t.Shape, Offset: schema.Bytes}
		for _, n := range t.Shape {
			c.Elems *= n
		}
		c.StrideElem = t.DType.Bytes()
		c.StrideEnv = c.Elems * c.StrideElem
		c.StrideT = c.StrideEnv
		schema.Columns = append(schema.Columns, c)
		schema.Bytes += (c.StrideT + align - 1) / align * align
	}
	if err := native.CheckColumns(schema.Columns, schema.Bytes); err != nil {
		return nil, err
	}
	a, err := h.wide.Arena(arena.Config{Name: h.wide.Name + "." + name, Blocks: blocks, BlockBytes: schema.Bytes, Schema: schema})
	return &own{host: h, arena: a}, err
}

// signal is the narrow view of a bus.Signal.
type signal struct {
	host *host
	to   *bus.Signal
}

// Emit fails the component where a wire says so, or where it sends a trajectory on twice; other errors are about the block.
func (s *signal) Emit(m sdk.Message) (sdk.Outcome, error) {
	out := hostabi.Message{Kind: m.Kind, T: m.T, Split: m.Split, PolicyVersion: m.PolicyVersion, Inline: m.Inline, Sender: s.host.wide.ID}
	if m.Sender > 0 {
		out.Sender = uint16(m.Sender - 1)
	}
	if m.Block != nil {
		named, ok := m.Block.(token)
		if !ok || named.handle() == 0 {
			return sdk.Dropped, errSpent
		}
		out.Handle = named.handle()
	}
	taken, err := s.to.Offer(out)
	switch {
	case errors.Is(err, bus.ErrFull), errors.Is(err, bus.ErrOverrun), errors.Is(err, component.ErrTwice):
		s.host.wide.Fail(err)
		return sdk.Dropped, nil
	case err != nil || !taken:
		return sdk.Dropped, err
	case s.host.wide.Receiver.Paused():
		return sdk.Parked, nil
	}
	return sdk.Sent, nil
}

// slot is a slot of the author's, with its view of the message that it handles.
type slot struct {
	host    *host
	fn      func(*sdk.Message)
	asked   bool // it gets act requests
	message sdk.Message
	block   block
}

func (s *slot) run(m *hostabi.Message) {
	s.message = sdk.Message{Kind: m.Kind, T: m.T, Split: m.Split, PolicyVersion: m.PolicyVersion, Inline: m.Inline, Sender: sdk.Sender(m.Sender) + 1}
	if m.Handle != 0 {
		s.block.h = m.Handle
		s.message.Block = &s.block
		defer s.leave()
	}
	if s.asked {
		if err := s.address(m); err != nil {
			s.host.wide.Fail(err)
			return
		}
	}
	s.fn(&s.message)
}

// address says in an act request for which policy it is.
func (s *slot) address(m *hostabi.Message) error {
	tr, err := trajectory.Borrowed(s.host.wide.Arenas, m.Handle)
	if err != nil {
		return err
	}
	r, err := trajectory.ActRequestOf(m).AddressedTo(s.host.policy, tr.Schema)
	s.message.Inline = r.Message().Inline
	return err
}

// leave ends the block of a message. Its receivers have their own claims by then.
func (s *slot) leave() {
	if err := s.block.end(); err != nil {
		s.host.wide.Fail(err)
	}
}
