package opponents

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
)

// publisher emits versions of a policy's weights, each in a block of its own arena.
type publisher struct {
	format    policy.WeightsFormat
	signal    *bus.Signal
	arena     *arena.Arena
	published hostabi.Handle // newest; the publisher keeps a claim on it
}

// weightsPort is the signal of both components.
func weightsPort(doc string) component.Port {
	return component.Port{Name: "weights", Payload: component.PayloadWeights, Doc: doc}
}

// start makes the arena for versions of a network.
func (p *publisher) start(h *component.Host, n *policy.Network) (err error) {
	p.signal, p.format = h.Signal("weights"), n.Weights()
	p.arena, err = h.Arena(arena.Config{
		Name: h.Name + ".weights", BlockBytes: p.format.Bytes(), Blocks: component.WeightBlocks(h.Readers("weights")), ReadOnly: true,
	})
	return err
}

// publish copies a version, as the format laid it out, into a block and emits that. It releases the previous one, which
// lives as long as its readers.
func (p *publisher) publish(version uint64, weights []byte) error {
	loan, err := p.arena.Loan()
	if err != nil {
		return fmt.Errorf("weights: %w", err)
	}
	copy(loan.Bytes(), weights)
	handle, err := loan.Commit()
	if err != nil {
		return err
	}
	if err := p.stop(); err != nil {
		return err
	}
	p.published = handle
	return p.signal.Emit(hostabi.Message{Handle: handle, PolicyVersion: version})
}

// stop releases the published version.
func (p *publisher) stop() error {
	if p.published == 0 {
		return nil
	}
	handle := p.published
	p.published = 0
	return p.arena.Release(handle)
}

// formatted returns weights as a format lays them out.
func formatted(f *policy.WeightsFormat, w *policy.Weights) ([]byte, error) {
	if err := f.Check(w); err != nil {
		return nil, err
	}
	block := make([]byte, f.Bytes())
	to, err := f.Format(block, w.Version)
	if err != nil {
		return nil, err
	}
	copy(to.Params, w.Params)
	copy(to.ObsMean, w.ObsMean)
	copy(to.ObsScale, w.ObsScale)
	return block, nil
}

// read returns the weights in saved bytes, which must be the whole of a version of that network, and its number.
func read(f *policy.WeightsFormat, saved []byte, version uint64) (policy.Weights, error) {
	if len(saved) != f.Bytes() {
		return policy.Weights{}, fmt.Errorf("saved weights of version %d have %d bytes, the network's %d", version, len(saved), f.Bytes())
	}
	w, err := f.Read(saved)
	if err == nil && w.Version != version {
		err = errors.New("they say that they are another one")
	}
	if err != nil {
		return policy.Weights{}, fmt.Errorf("saved weights of version %d: %w", version, err)
	}
	return w, nil
}
