package opponents

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
)

// frozenConfig is the table of a frozen policy's publisher.
type frozenConfig struct {
	Policy string `toml:"policy" doc:"Fixed policy that it publishes." range:"a [policy] table" default:"required"`
}

// Frozen publishes one stored version of a policy, once.
type Frozen struct {
	config frozenConfig
	h      *component.Host
	publisher
	saved   savedFrozen
	weights []byte // as the format lays them out
}

// savedFrozen is the small part of its state.
type savedFrozen struct {
	Source  string         `json:"source"` // that the weights came from, as the session calls it
	Network policy.Network `json:"network"`
	Version uint64         `json:"policy_version"`
}

// weightsBlob is the blob with the weights.
const weightsBlob = "weights"

var _ component.Component = (*Frozen)(nil)

// NewFrozen returns an unconfigured publisher of a frozen policy.
func NewFrozen() component.Component { return &Frozen{} }

// Manifest lists the ports.
func (f *Frozen) Manifest() component.Manifest {
	return component.Manifest{Signals: []component.Port{weightsPort("the frozen version")}}
}

// Configure reads the component's table.
func (f *Frozen) Configure(decode func(into any) error) error {
	f.config = frozenConfig{}
	if err := decode(&f.config); err != nil {
		return err
	}
	if f.config.Policy == "" {
		return noPolicy()
	}
	return nil
}

// Start takes the stored weights, and posts their publication.
func (f *Frozen) Start(h *component.Host) error {
	f.h = h
	d, err := policy.Of(h, f.config.Policy)
	if err != nil {
		return err
	}
	if err := d.Network.Validate(); err != nil {
		return err
	}
	if h.Stored == nil {
		return fmt.Errorf("policy %q: stored weights are found in the host alone: leave out runtime and plugin", f.config.Policy)
	}
	if err := f.start(h, &d.Network); err != nil {
		return err
	}
	state, err := h.Stored(f.config.Policy)
	if err != nil {
		return err
	}
	if err := f.load(state, &d.Network); err != nil {
		return fmt.Errorf("policy %q: %w", f.config.Policy, err)
	}
	h.Receiver.Control(loop.Func(f.first), hostabi.Message{})
	return nil
}

// load takes the weights of a state for a network.
func (f *Frozen) load(state component.State, n *policy.Network) error {
	var s savedFrozen
	if err := state.Decode(&s); err != nil {
		return err
	}
	if err := s.Network.Validate(); err != nil {
		return err
	}
	if err := policy.SameParameters(&s.Network, n); err != nil {
		return err
	}
	if _, err := read(&f.format, state.Blobs[weightsBlob], s.Version); err != nil {
		return err
	}
	f.saved, f.weights = s, slices.Clone(state.Blobs[weightsBlob])
	return nil
}

func (f *Frozen) first(*hostabi.Message) {
	if err := f.publish(f.saved.Version, f.weights); err != nil {
		f.h.Fail(err)
	}
}

// Snapshot saves the weights, so that a resumed run needs nothing else.
func (f *Frozen) Snapshot() (component.State, error) {
	return component.State{Meta: f.saved, Blobs: map[string][]byte{weightsBlob: f.weights}}, nil
}

// Restore has nothing to do: the stored policy that Start has taken is the saved state where there is one.
func (f *Frozen) Restore(component.State) error { return nil }

// Stop releases the published weights.
func (f *Frozen) Stop() error { return f.stop() }

// Freeze returns the state of a frozen policy that acts with these weights; see players.Frozen.
func (*Frozen) Freeze(source string, n policy.Network, w policy.Weights) (component.State, error) {
	if err := n.Validate(); err != nil {
		return component.State{}, err
	}
	format := n.Weights()
	block, err := formatted(&format, &w)
	return component.State{Meta: savedFrozen{source, n, w.Version}, Blobs: map[string][]byte{weightsBlob: block}}, err
}

// Weights returns the weights in a state of a frozen policy; see players.Frozen.
func (*Frozen) Weights(state component.State) (source string, n policy.Network, w policy.Weights, err error) {
	var s savedFrozen
	if err := errors.Join(state.Decode(&s), s.Network.Validate()); err != nil {
		return "", n, w, err
	}
	format := s.Network.Weights()
	w, err = read(&format, state.Blobs[weightsBlob], s.Version)
	return s.Source, s.Network, w, err
}
