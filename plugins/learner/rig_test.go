package learner

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// rig is a learner with a batcher of made-up datasets: one block of 8 steps of 4 environments each.
type rig struct {
	*plugintest.Rig
	c        *Learner
	schema   *trajectory.Schema
	blocks   *arena.Arena
	lists    *arena.Arena
	datasets *bus.Signal
	weights  []policy.Weights // published, copied
	reports  []map[string]float64
	kept     []arena.Lease // of reports, if keep is set
	keep     bool
}

type rigOptions struct {
	network   policy.Network // default: plain
	config    func(*config)
	seed      uint64
	restore   component.State
	backend   policy.Backend
	policies  string // that act in the blocks; empty: one
	published uint64 // by the learner before it
}

const (
	steps = 8
	envs  = 4
)

func plain() policy.Network { return plainMLP().Network() }

func plainMLP() policy.MLP {
	return policy.MLP{Obs: plugintest.ObsElems, Actions: 2, Hidden: []int{8}, Activation: policy.Tanh}
}

func newRig(t *testing.T, o rigOptions) *rig {
	t.Helper()
	if o.network.Nodes == nil {
		o.network = plain()
	}
	if o.backend == nil {
		o.backend = cpu.New()
	}
	r := &rig{c: New().(*Learner)}
	r.Rig = plugintest.NewRig(t, r.c, plugintest.RigOptions{Name: "learner", Run: component.Run{Seed: o.seed},
		Policies: map[string]component.Policy{"main": &policy.Definition{Network: o.network, Backend: o.backend}}},
		func(into any) error {
			c := into.(*config)
			c.Policy, c.Minibatch, c.Epochs, c.LearningRate = "main", max(8, o.network.Chunk), 2, 1e-2
			if o.config != nil {
				o.config(c)
			}
			return nil
		})
	if o.restore.Meta != nil || o.restore.RawMeta != nil {
		if err := r.c.Restore(o.restore); err != nil {
			t.Fatal(err)
		}
	}
	r.Host.Published = o.published
	r.makeBlocks(t, o.policies, o.network.Memory())
	r.datasets = r.To("on_dataset")
	r.From("weights", func(m *hostabi.Message) { r.onWeights(t, m, &o.network) })
	r.From("stats", func(m *hostabi.Message) { r.onStats(t, m) })
	t.Cleanup(func() {
		for i := range r.kept {
			if err := r.kept[i].Release(); err != nil {
				t.Error(err)
			}
		}
	})
	return r
}

func (r *rig) makeBlocks(t *testing.T, policies string, m trajectory.Memory) {
	t.Helper()
	var err error
	if r.schema, err = trajectory.NewSchema(plugintest.New(plugintest.Script{}).Spec(), trajectory.Shape{Steps: max(steps, m.Chunk), Envs: envs, Policies: policies, Memory: m}); err != nil {
		t.Fatal(err)
	}
	r.blocks, err = r.Host.Arenas.Add(arena.Config{Name: "blocks", Blocks: 2, BlockBytes: r.schema.Bytes, Schema: r.schema})
	if err != nil {
		t.Fatal(err)
	}
	if r.lists, err = r.Host.Arenas.Add(arena.Config{Name: "lists", Blocks: 2, BlockBytes: trajectory.DatasetBytes(1)}); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) onWeights(t *testing.T, m *hostabi.Message, n *policy.Network) {
	lease, err := r.Host.Arenas.Lease(m.Handle)
	if err != nil {
		t.Error(err)
		return
	}
	format := n.Weights()
	w, err := format.Read(lease.Bytes())
	if err != nil || w.Version != m.PolicyVersion {
		t.Errorf("weights of version %d in a message of version %d: %v", w.Version, m.PolicyVersion, err)
	}
	r.weights = append(r.weights, policy.Weights{Version: w.Version, Params: slices.Clone(w.Params),
		ObsMean: slices.Clone(w.ObsMean), ObsScale: slices.Clone(w.ObsScale)})
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
}

func (r *rig) onStats(t *testing.T, m *hostabi.Message) {
	lease, err := r.Host.Arenas.Lease(m.Handle)
	if err != nil {
		t.Error(err)
		return
	}
	a, _ := r.Host.Arenas.Of(m.Handle)
	report := map[string]float64{}
	for i, name := range a.Schema().(trajectory.Names) {
		report[name] = math.Float64frombits(binary.LittleEndian.Uint64(lease.Bytes()[8*i:]))
	}
	r.reports = append(r.reports, report)
	if r.keep {
		r.kept = append(r.kept, lease)
		return
	}
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
}

// teach sends a dataset, number n of a fixed sequence, of a policy version.
func (r *rig) teach(t *testing.T, n int, version uint64, change func(trajectory.Trajectory)) {
	t.Helper()
	block := plugintest.Commit(t, r.blocks, func(block []byte) {
		tr := trajectory.Trajectory{Schema: r.schema, Mem: block}
		fill(tr, n, version)
		if change != nil {
			change(tr)
		}
	})
	plugintest.Give(t, r.datasets, hostabi.Message{}, r.lists, func(list []byte) {
		if err := trajectory.WriteDataset(list, uint64(n), []trajectory.Member{{Handle: block}}); err != nil {
			t.Fatal(err)
		}
	})
	err := r.Settle()
	if err := errors.Join(err, r.blocks.Release(block)); err != nil {
		t.Fatal(err)
	}
}

// fill makes up a block.
func fill(tr trajectory.Trajectory, n int, version uint64) {
	draw := func(i int, salt uint64) float32 { return policy.Uniform(uint64(n)+1, uint32(i), salt, 0) }
	clear(tr.Mem)
	for i := range tr.Float32(trajectory.Obs) {
		tr.Float32(trajectory.Obs)[i] = 4*draw(i, 1) - 2
	}
	for i := range steps * envs {
		tr.Int32(trajectory.Action)[i] = int32(2 * draw(i, 2))
		tr.Float32(trajectory.Reward)[i] = draw(i, 3)
		tr.Float32(trajectory.LogProb)[i] = -0.7
		tr.Bytes(trajectory.Valid)[i] = 1
		if draw(i, 4) < 0.1 {
			tr.Bytes(trajectory.Terminated)[i] = 1
		}
	}
	for i := range tr.Uint64(trajectory.PolicyVersion) {
		tr.Uint64(trajectory.PolicyVersion)[i] = version
	}
}

// saved returns the learner's state as it comes back from a file.
func (r *rig) saved(t *testing.T) component.State {
	t.Helper()
	s, err := r.c.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(s.Meta)
	if err != nil {
		t.Fatal(err)
	}
	return component.State{RawMeta: raw, Tensors: s.Tensors}
}
