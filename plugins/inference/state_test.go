package inference

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// keeping is a network for scripted environments with one core.
func keeping(gru *layer.GRU, lstm *layer.LSTM) policy.Network {
	return policy.Network{Format: policy.Format, Inputs: []policy.Input{{Path: "obs", Shape: []int{plugintest.ObsElems}}}, Chunk: 1,
		Nodes: []policy.Node{{Name: "core", In: []string{"obs"}, GRU: gru, LSTM: lstm},
			{Name: "actor", In: []string{"core"}, Dense: &layer.Dense{Out: actions, Gain: 2}}, {Name: "critic", In: []string{"core"}, Dense: &layer.Dense{Out: 1}}},
		Policy: []policy.Dist{{Action: "action", From: "actor", Categorical: &head.Categorical{N: actions}}},
		Values: []policy.ValueHead{{Name: "value", From: "critic"}}}
}

// episodes begins blocks in which some environments are at an episode's beginning, and one is truncated in row 1. Nothing is
// stored for a beginning.
func (r *rig) episodes() {
	random := rand.New(rand.NewPCG(3, 0))
	for _, tr := range r.blocks {
		state := tr.Row(trajectory.CoreState, 0).Float32()
		for i := range state {
			state[i] = float32(random.NormFloat64())
		}
		for i, age := range []byte{0, 3, 200, 255, 0} {
			if age == 0 {
				tr.Row(trajectory.CoreState, 0).Float32()[i*r.network.State()] = float32(math.NaN())
			}
			for row := range steps + 1 {
				tr.Ages(row)[i] = age
				age = trajectory.Older(age)
			}
		}
		copy(tr.Row(trajectory.FinalObs, 0).Float32(), tr.Row(trajectory.Obs, 0).Float32())
		tr.Bytes(trajectory.Truncated)[1*envs+2] = 1
		tr.Ages(2)[2], tr.Ages(3)[2] = 0, 1
	}
}

// valueOf returns the reference's value of an observation, and its state after it.
func valueOf(n *policy.Network, params []float32, obs trajectory.Matrix, env int, state []float32) (value float64, behind []float32) {
	g := policy.NewGraph(n, params)
	g.State = state
	_, v := g.Forward(obs.Float32()[env*obs.StrideRow/4:][:obs.Elems], 1)
	return v[0], g.StateOut
}

// Every row is acted on with the state kept after the previous one, from zero where an episode begins. The value of a last
// observation uses the state after the row in which it was made, though its environment has been reset. Batching changes no bit.
func TestS19InferenceStartsAndBootstraps(t *testing.T) {
	for name, n := range map[string]policy.Network{"gru": keeping(&layer.GRU{Size: 6}, nil), "lstm": keeping(nil, &layer.LSTM{Size: 5})} {
		t.Run(name, func(t *testing.T) {
			var want [][]byte
			for _, maxRows := range []int{1024, 1, 2, 7} {
				r := newRigOf(t, New(), n, 2, maxRows)
				r.episodes()
				r.publish(t, n, 1)
				for row := range steps + 1 {
					for block := range r.blocks {
						r.ask(t, block, row, func(q *trajectory.ActRequest) { q.ValueOnly, q.Bootstrap = row == steps, row == 2 })
					}
					r.MustSettle()
				}
				var got [][]byte
				for _, tr := range r.blocks {
					got = append(got, slices.Clone(tr.Mem))
					wantValues(t, &n, policy.Init(&n, 1), tr)
				}
				if want == nil {
					want = got
				}
				for i := range want {
					if !slices.Equal(got[i], want[i]) {
						t.Errorf("max_rows = %d: block %d is another one", maxRows, i)
					}
				}
			}
		})
	}
}

// wantValues holds the values and the states of a block to the reference.
func wantValues(t *testing.T, n *policy.Network, params []float32, tr trajectory.Trajectory) {
	t.Helper()
	value, bootstrap := tr.Float32(trajectory.Value), tr.Float32(trajectory.Bootstrap)
	near := func(a float32, b float64) bool { return math.Abs(float64(a)-b) < 1e-5 }
	for env := range envs {
		state := slices.Clone(tr.Row(trajectory.CoreState, 0).Float32()[env*n.State():][:n.State()])
		for row := range steps + 1 {
			if row == 2 && env == 2 {
				if v, _ := valueOf(n, params, tr.Row(trajectory.FinalObs, 0), env, state); !near(bootstrap[1*envs+env], v) {
					t.Errorf("bootstrap value %v, want %v", bootstrap[1*envs+env], v)
				}
			}
			if tr.Ages(row)[env] == 0 {
				clear(state)
			}
			v, behind := valueOf(n, params, tr.Row(trajectory.Obs, row), env, state)
			if !near(value[row*envs+env], v) {
				t.Errorf("environment %d row %d: value %v, want %v", env, row, value[row*envs+env], v)
			}
			if row == steps {
				break
			}
			state = behind
			for i, x := range tr.Row(trajectory.CoreState, tr.Schema.StateRow(row+1)).Float32()[env*n.State():][:n.State()] {
				if !near(x, float64(state[i])) {
					t.Fatalf("environment %d behind row %d: element %d of the state is %v, want %v", env, row, i, x, state[i])
				}
			}
		}
	}
}

// Blocks whose rows a policy shares with others may keep more state than it needs; blocks that keep less are refused.
func TestS19InferenceNeedsBlocksWithItsState(t *testing.T) {
	r := newRigOf(t, New(), keeping(&layer.GRU{Size: 6}, nil), 1, 1024)
	s := r.blocks[0].Schema
	small, large := keeping(&layer.GRU{Size: 4}, nil), keeping(nil, &layer.LSTM{Size: 4})
	if b, err := small.Bind(s); err != nil || b.State(r.blocks[0], 1).Elems != 4 {
		t.Errorf("a state of 4 in blocks with 6: %v", err)
	}
	if _, err := large.Bind(s); err == nil || err.Error() != "dataset does not fit the network: blocks keep 6 elements of state, the network's cores 8" {
		t.Errorf("a state of 8 in blocks with 6: %v", err)
	}
}
