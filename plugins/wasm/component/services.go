package component

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/bus"
	core "github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/plugins/wasm/guest"

	"github.com/rlhost/rlhost/hostabi"
)

// maxEmits bounds the messages that a guest emits in one call: with on_full = "block" they wait in the host's memory.
const maxEmits = 4096

// services are the imports of a guest.
type services struct{ g *component }

var _ guest.Services = services{}

// Emit sends a message.
func (s services) Emit(signal, message uint32) (int32, error) {
	g := s.g
	b := g.run.View(message, hostabi.ComponentMessageBytes)
	if b == nil || signal >= uint32(len(g.signals)) {
		return int32(hostabi.StatusArgument), nil
	}
	if g.emitted++; g.emitted > maxEmits || g.answering {
		return int32(hostabi.StatusState), nil
	}
	le, on := binary.LittleEndian, g.signals[signal]
	m := hostabi.Message{T: le.Uint32(b[8:]), Split: le.Uint32(b[12:]), PolicyVersion: le.Uint64(b[16:]),
		Inline: [2]uint64{le.Uint64(b[24:]), le.Uint64(b[32:])}, Kind: le.Uint16(b[40:]), Sender: g.host.ID}
	if sender := le.Uint32(b[44:]); sender > math.MaxUint16+1 {
		return int32(hostabi.StatusArgument), nil
	} else if sender > 0 {
		m.Sender = uint16(sender - 1)
	}
	token, x := le.Uint32(b[0:]), g.handling
	if on.answers {
		if x == nil || x.block == 0 || x.block != token || !x.payload.OnLoan || x.emitted {
			return int32(hostabi.StatusState), nil
		}
		m = g.answer(x, m.PolicyVersion)
	}
	k := g.blocks.find(token)
	if (k == nil) != (token == 0) || !on.carries(k) {
		return int32(hostabi.StatusArgument), nil
	}
	if k != nil {
		m.Handle = k.handle
		if x != nil && x.block == token && !x.emitted {
			g.writeBack(x)
			if err := x.retract(g.run, k); err != nil {
				g.host.Fail(err)
				return int32(hostabi.StatusState), nil
			}
			x.emitted = true
		}
	}
	taken, err := on.Offer(m)
	switch {
	case errors.Is(err, bus.ErrFull), errors.Is(err, bus.ErrOverrun):
		g.host.Fail(err)
		return int32(hostabi.OutcomeDropped), nil
	case errors.Is(err, core.ErrTwice):
		return 0, err
	case err != nil:
		return int32(hostabi.StatusState), nil
	case !taken:
		return int32(hostabi.OutcomeDropped), nil
	case g.host.Receiver.Paused():
		return int32(hostabi.OutcomeParked), nil
	}
	return int32(hostabi.OutcomeSent), nil
}

// answer returns the answer to the current request: the request itself, with the policy that acted.
func (g *component) answer(s *slot, version uint64) hostabi.Message {
	m := s.came
	if s.payload.Name == core.PayloadRequest {
		if r, err := g.address(&s.came); err == nil {
			m.Inline = r.Inline
		}
	}
	m.PolicyVersion = version
	return m
}

// signal is a signal of a guest.
type signal struct {
	*bus.Signal
	answers bool   // its messages are answers to requests
	blocks  string // payload that the blocks of its messages come with; empty: any, or no block
}

func newSignal(s *bus.Signal, payload string) signal {
	switch p := core.PayloadOf(payload); {
	case p.Answers:
		return signal{s, true, ""} // a request's block: the block of the message that is handled
	case p.Block, p.OnLoan:
		return signal{s, false, payload}
	}
	return signal{s, false, ""}
}

// carries reports whether a message of the signal may name that block, or none if it is nil: receivers of the host's payloads
// rely on the contents of their blocks.
func (s *signal) carries(k *known) bool { return s.blocks == "" || k != nil && k.payload == s.blocks }

// Lease claims a block.
func (s services) Lease(block uint32) (hostabi.Status, error) { return s.g.blocks.lease(block) }

// Release ends a lease.
func (s services) Release(block uint32) hostabi.Status { return s.g.blocks.release(block) }

// Column binds a column by its name.
func (s services) Column(block uint32, name []byte, access hostabi.ColumnFlags, to uint32) hostabi.Status {
	g := s.g
	k, b := g.blocks.find(block), g.run.View(to, uint32(g.manifest.BindingBytes))
	if k == nil || b == nil || access&^hostabi.ColumnWrite != 0 {
		return hostabi.StatusArgument
	}
	if k.window == nil {
		return hostabi.StatusState
	}
	p, ok := k.window.view.columns[string(name)]
	if !ok {
		return hostabi.StatusUnsupported
	}
	at := k.window.at + p.offset
	if access&hostabi.ColumnWrite != 0 {
		x := g.handling
		if x == nil || x.block != block || x.emitted {
			return hostabi.StatusState
		}
		if at, ok = g.writable(x, string(name), k.window); !ok {
			return hostabi.StatusDenied
		}
	}
	clear(b)
	p.write(b, at, access&hostabi.ColumnWrite != 0)
	return hostabi.StatusOK
}

// Declare makes a metric known.
func (s services) Declare(kind hostabi.MetricKind, name []byte) int32 {
	return s.g.metrics.declare(s.g.host.Stats, kind, name)
}

// Report changes a metric.
func (s services) Report(metric uint32, value float64) { s.g.metrics.report(metric, value) }

// Timer begins a timer.
func (s services) Timer(after, every int64) int32 {
	g := s.g
	if after < 0 || every < 0 || !g.run.Has(hostabi.ExportTimer) {
		return int32(hostabi.StatusArgument)
	}
	return g.timers.begin(g.host.Receiver, time.Duration(after), time.Duration(every), g.fire)
}

// fire gives the guest a timer.
func (g *component) fire(id uint32) {
	if g.dead {
		return
	}
	g.keep()
	g.emitted = 0
	if err := g.run.Timer(id); err != nil {
		g.failed(err)
	}
}

// Cancel ends a timer.
func (s services) Cancel(timer uint32) hostabi.Status { return s.g.timers.cancel(timer) }

// Stop asks the run to end.
func (s services) Stop(reason hostabi.StopReason) hostabi.Status {
	reasons := map[hostabi.StopReason]core.StopReason{
		hostabi.StopForOwn: core.StopOwn, hostabi.StopForReturn: core.StopReturn, hostabi.StopForEnvSteps: core.StopEnvSteps, hostabi.StopForWall: core.StopWallTime,
	}
	word, ok := reasons[reason]
	if !ok {
		return hostabi.StatusArgument
	}
	s.g.host.Stop(word)
	return hostabi.StatusOK
}

// Ask asks another component. The answer comes among the component's messages, so that a component that is paused, or whose own messages
// wait for room, is not called with it.
func (s services) Ask(ask uint32, args []byte, within int64) int32 {
	g := s.g
	switch {
	case !g.asking.begun:
		return int32(hostabi.StatusState)
	case ask >= uint32(len(g.asking.of)) || within < 0:
		return int32(hostabi.StatusArgument)
	}
	number := g.asking.begin(ask)
	if number > 0 {
		g.host.Request(g.asking.of[ask].Name, slices.Clone(json.RawMessage(args)), time.Duration(within), func(reply json.RawMessage, err error) {
			g.await(uint32(number), reply, err)
		})
	}
	return number
}
