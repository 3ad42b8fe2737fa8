package opponents

import (
	"errors"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// past is the policy that acts with versions.
const past = "past"

func network(hidden int) policy.Network {
	m := policy.MLP{Obs: 3, Actions: 2, Hidden: []int{hidden}, Activation: policy.Tanh, NormalizeObs: true}
	return m.Network()
}

// weightsFor makes up a version, whose parameters differ from any other's.
func weightsFor(n *policy.Network, number uint64) policy.Weights {
	w := policy.Weights{Version: number, Params: make([]float32, n.ParamCount()),
		ObsMean: make([]float32, n.Stats()), ObsScale: make([]float32, n.Stats())}
	for i := range w.Params {
		w.Params[i] = float32(number) + float32(i)/1024
	}
	for i := range w.ObsMean {
		w.ObsMean[i], w.ObsScale[i] = -float32(number), 1+float32(number)
	}
	return w
}

// sameWeights reports whether weights equal weightsFor's.
func sameWeights(w *policy.Weights, n *policy.Network, number uint64) bool {
	want := weightsFor(n, number)
	return w.Version == number && slices.Equal(w.Params, want.Params) && slices.Equal(w.ObsMean, want.ObsMean) && slices.Equal(w.ObsScale, want.ObsScale)
}

// rig is a component of this package, with its published versions.
type rig struct {
	*plugintest.Rig
	network   policy.Network
	learner   *arena.Arena // that versions come from
	versions  *bus.Signal
	published []uint64
}

func newRig(t *testing.T, c component.Component, n policy.Network, o plugintest.RigOptions, configure func(into any) error) *rig {
	t.Helper()
	o.Name, o.Policies = "opponents", map[string]component.Policy{past: &policy.Definition{Network: n, Backend: cpu.New()}}
	return &rig{Rig: plugintest.NewRig(t, c, o, configure), network: n}
}

// listen notes each published version, and checks that its weights match its number.
func (r *rig) listen(t *testing.T) {
	format := r.network.Weights()
	r.From("weights", func(m *hostabi.Message) {
		lease, err := r.Host.Arenas.Lease(m.Handle)
		if err != nil {
			t.Error(err)
			return
		}
		w, err := format.Read(lease.Bytes())
		if err != nil || w.Version != m.PolicyVersion || !sameWeights(&w, &r.network, m.PolicyVersion) {
			t.Errorf("version %d in a message of version %d has not its weights (%v)", w.Version, m.PolicyVersion, err)
		}
		r.published = append(r.published, m.PolicyVersion)
		if err := lease.Release(); err != nil {
			t.Error(err)
		}
	})
}

// pool is a rig with a pool, to which learn gives versions.
func newPool(t *testing.T, o plugintest.RigOptions, restore component.State, change func(*config)) (*rig, *Pool) {
	t.Helper()
	return poolOf(t, network(4), o, restore, change)
}

func poolOf(t *testing.T, n policy.Network, o plugintest.RigOptions, restore component.State, change func(*config)) (*rig, *Pool) {
	t.Helper()
	c := New().(*Pool)
	r := newRig(t, c, n, o, func(into any) error {
		config := into.(*config)
		config.Policy = past
		if change != nil {
			change(config)
		}
		return nil
	})
	if restore.Meta != nil || restore.RawMeta != nil {
		if err := c.Restore(restore); err != nil {
			t.Fatal(err)
		}
	}
	format := n.Weights()
	var err error
	if r.learner, err = r.Host.Arenas.Add(arena.Config{Name: "learner.weights", Blocks: 2, BlockBytes: format.Bytes()}); err != nil {
		t.Fatal(err)
	}
	r.versions = r.To("on_weights")
	r.listen(t)
	r.MustSettle()
	return r, c
}

// learn publishes versions as the learner does.
func (r *rig) learn(t *testing.T, versions ...uint64) {
	t.Helper()
	format := r.network.Weights()
	for _, number := range versions {
		w := weightsFor(&r.network, number)
		plugintest.Give(t, r.versions, hostabi.Message{PolicyVersion: number}, r.learner, func(block []byte) {
			to, err := format.Format(block, number)
			if err != nil {
				t.Fatal(err)
			}
			copy(to.Params, w.Params)
			copy(to.ObsMean, w.ObsMean)
			copy(to.ObsScale, w.ObsScale)
		})
		r.MustSettle()
	}
}

// written returns a state as it comes back from a file.
func written(t *testing.T, c component.Component) component.State {
	t.Helper()
	s, err := c.Snapshot()
	b, err2 := component.EncodeState(s)
	again, err3 := component.DecodeState(b)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	return again
}

// upTo returns the versions from first to last.
func upTo(first, last uint64) (list []uint64) {
	for v := first; v <= last; v++ {
		list = append(list, v)
	}
	return list
}
