package component

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
)

// Component is one node of a running pipeline. The host calls Configure, Start, then perhaps Restore, then runs
// the loop; Stop comes last, on any goroutine, after the loop has ended. Snapshot is called on the component's
// loop, at a dataset boundary.
type Component interface {
	// Manifest returns the signals and slots as the component is configured: the same after each Configure of the same
	// table. Before Configure, where the component is only listed, they are the ports of the defaults.
	Manifest() Manifest
	// Configure decodes the component's table into its own struct, fills in defaults and checks it. The error is
	// one or several joined *ConfigError, or decode's. It takes no resources.
	Configure(decode func(into any) error) error
	// Start takes resources, binds every slot of the manifest and posts its first work to the component's own
	// loop, which does not run yet.
	Start(h *Host) error
	// Snapshot returns what Restore needs to continue as if nothing had happened. ErrNoSnapshot says why not.
	Snapshot() (State, error)
	// Restore replaces the state by a snapshot of a component with the same configuration.
	Restore(s State) error
	// Stop releases everything, also after a failed Start. It reports leaks.
	Stop() error
}

// Manifest lists the ports of a component, in the order of their indexes in messages, and the requests that it answers.
type Manifest struct {
	Signals []Port
	Slots   []Port
	// Requests are the questions that the component answers; see Host.Handle.
	Requests []hostabi.Request
	// Asks are the questions that it asks other components, with the arguments that it gives; see Host.Request.
	Asks []hostabi.Request
	// Fixed says why an instance cannot be replaced while it runs; empty if it can.
	Fixed string
}

// Port is a signal or a slot. A signal connects to slots with an equal Payload.
type Port struct {
	Name    string // snake_case
	Payload string // such as trajectory, weights
	Doc     string // one sentence
	// Schema is what sender and receiver of a payload must agree on, such as the beginning of a hash of its description; 0 = that of
	// the host, or of a payload that the host does not know not said, which agrees with all.
	Schema uint64
	// OnLoan: the signal's messages name a block that the sender still has on loan and keeps until it is
	// answered, so they carry no claim on it.
	OnLoan bool
	// Optional: the component does its work without a wire of this port.
	Optional bool
}

// Agreed returns what the other side of a connection must agree on; 0 = whatever it says.
func (p *Port) Agreed() uint64 {
	if p.Schema != 0 {
		return p.Schema
	}
	payload := PayloadOf(p.Payload)
	return payload.Schema()
}

func find(ports []Port, name string) (index int, ok bool) {
	for i := range ports {
		if ports[i].Name == name {
			return i, true
		}
	}
	return 0, false
}

// Signal returns the index of a signal.
func (m *Manifest) Signal(name string) (int, bool) { return find(m.Signals, name) }

// Slot returns the index of a slot.
func (m *Manifest) Slot(name string) (int, bool) { return find(m.Slots, name) }

// WrapperRequests are the payloads of which a component has a slot, and a signal of the answers, where it can be put around
// environments, in the order of their ranks: a component with several is called for the first.
var WrapperRequests = [...]string{PayloadRewards, PayloadRequest, PayloadObserve}

// Wraps returns the indexes of the slot and the signal of the component where it is put around environments, and the payload of the
// requests. ok is false where it has no such pair.
func (m *Manifest) Wraps() (slot, signal int, request string, ok bool) {
	with := func(ports []Port, payload string) int {
		return slices.IndexFunc(ports, func(p Port) bool { return p.Payload == payload })
	}
	for _, request := range WrapperRequests {
		slot, signal := with(m.Slots, request), with(m.Signals, PayloadOf(request).AnsweredBy)
		if slot >= 0 && signal >= 0 {
			return slot, signal, request, true
		}
	}
	return 0, 0, "", false
}

// SamePorts reports whether both have the same ports in the same order, whatever is said about them.
func (m *Manifest) SamePorts(other *Manifest) bool {
	same := func(a, b Port) bool {
		a.Doc, b.Doc = "", ""
		a.Schema, b.Schema = a.Agreed(), b.Agreed()
		return a == b
	}
	return slices.EqualFunc(m.Signals, other.Signals, same) && slices.EqualFunc(m.Slots, other.Slots, same)
}

// ConfigError is an error in one key of a component's table. The pipeline adds file, line and column.
type ConfigError = table.Error

// ErrTwice is wrapped by the error of emitting a trajectory that the component has sent on already.
var ErrTwice = errors.New("this block has been sent on already, and its env steps would count twice")

// ErrNoSnapshot is wrapped by Snapshot where the state cannot be saved; the message says why.
var ErrNoSnapshot = errors.New("state cannot be saved")

// State is a component's saved state: small values as JSON, large ones as named float32 tensors and blobs. It
// never holds anything that runs.
type State struct {
	Meta    any               // a struct that encoding/json can write and read
	Tensors map[string]Tensor // by name, such as actor.0.weight
	Blobs   map[string][]byte // by name, such as split0.instance
	// RawMeta is Meta as read back, for Restore to decode.
	RawMeta []byte
}

// LastingBlob is the name of a State's blob that outlives the running episodes, such as statistics of rewards.
const LastingBlob = "lasting"

// Lasting returns the part of a state that outlives episodes; ok is false where there is none.
func (s State) Lasting() (part State, ok bool) {
	kept, ok := s.Blobs[LastingBlob]
	if !ok {
		return State{}, false
	}
	return State{Blobs: map[string][]byte{LastingBlob: kept}}, true
}

// OnlyLasting reports whether a state is such a part.
func (s State) OnlyLasting() bool {
	_, ok := s.Blobs[LastingBlob]
	return ok && len(s.Blobs) == 1 && len(s.Tensors) == 0 && s.Meta == nil && (s.RawMeta == nil || string(s.RawMeta) == "null")
}

// Decode fills a struct from Meta, read back or as Snapshot returned it.
func (s State) Decode(into any) error {
	raw := s.RawMeta
	if raw == nil {
		var err error
		if raw, err = json.Marshal(s.Meta); err != nil {
			return fmt.Errorf("saved state: %w", err)
		}
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("saved state: %w", err)
	}
	return nil
}

// Frozen returns the state with Meta as read back, so that it does not change with the component.
func (s State) Frozen() (State, error) {
	if s.RawMeta != nil || s.Meta == nil {
		return s, nil
	}
	raw, err := json.Marshal(s.Meta)
	if err != nil {
		return s, fmt.Errorf("saved state: %w", err)
	}
	s.Meta, s.RawMeta = nil, raw
	return s, nil
}

// Tensor is a row-major float32 tensor.
type Tensor struct {
	Shape []int
	Data  []float32
}

// Qualified returns "component.port", the name of a port in the file.
func Qualified(component, port string) string { return component + "." + port }

// SplitQualified is the inverse of Qualified.
func SplitQualified(name string) (component, port string, ok bool) { return strings.Cut(name, ".") }
