package kernels

import (
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/hostabi"
)

// networks are all nodes and all distributions, in shapes that fill no tile.
func networks() map[string]policy.Network {
	dense := func(name, in string, out int) policy.Node {
		return policy.Node{Name: name, In: []string{in}, Dense: &layer.Dense{Out: out, Gain: 1}}
	}
	act := func(name, in string, f layer.Func) policy.Node {
		return policy.Node{Name: name, In: []string{in}, Activation: &layer.Activation{Func: f}}
	}
	vector := policy.Network{Format: policy.Format, Inputs: []policy.Input{{Path: "obs", Shape: []int{5}}}, Nodes: []policy.Node{
		dense("one", "obs", 33), act("tanh", "one", layer.Tanh), {Name: "norm", In: []string{"tanh"}, LayerNorm: &layer.LayerNorm{}},
		dense("two", "norm", 33), act("elu", "two", layer.ELU), {Name: "sum", In: []string{"elu", "tanh"}, Add: &layer.Add{}},
		dense("three", "sum", 20), act("relu", "three", layer.ReLU),
		dense("choices", "relu", 9), dense("means", "relu", 3), {Name: "push", In: []string{"means"}, Append: &layer.Append{N: 3, Init: -0.5}},
		dense("press", "sum", 2), dense("squashed", "relu", 2), dense("value", "elu", 1)},
		Policy: []policy.Dist{{Action: "action", From: "choices", Start: 2, MultiCategorical: &head.MultiCategorical{Counts: []int{3, 2, 4}}},
			{Action: "action/1", From: "push", Gaussian: &head.Gaussian{N: 3, LogStd: head.Range{Min: -0.4, Max: 0.3}}, Bounds: bounds(3)},
			{Action: "action/2", From: "press", Bernoulli: &head.Bernoulli{N: 2}},
			{Action: "action/3", From: "squashed", Gaussian: &head.Gaussian{N: 1, Squash: head.Tanh}, Bounds: bounds(1)}},
		Values: []policy.ValueHead{{Name: "value", From: "value"}}}
	image := policy.Network{Format: policy.Format, Inputs: []policy.Input{{Path: "obs", Shape: []int{9, 10, 3}}}, Nodes: []policy.Node{
		{Name: "conv", In: []string{"obs"}, Conv2D: &layer.Conv2D{Window: layer.Window{Kernel: 3, Stride: 2, Pad: 1}, Out: 7, Gain: 1}},
		act("relu", "conv", layer.ReLU), {Name: "pool", In: []string{"relu"}, MaxPool: &layer.MaxPool{Window: layer.Window{Kernel: 3, Stride: 2, Pad: 1}}},
		{Name: "again", In: []string{"pool"}, Conv2D: &layer.Conv2D{Window: layer.Window{Kernel: 2, Stride: 1}, Out: 17, Gain: 1}},
		{Name: "norm", In: []string{"again"}, LayerNorm: &layer.LayerNorm{}},
		{Name: "flat", In: []string{"norm"}, Flatten: &layer.Flatten{}}, dense("choices", "flat", 4), dense("value", "flat", 1)},
		Policy: []policy.Dist{{Action: "action", From: "choices", Categorical: &head.Categorical{N: 4}}},
		Values: []policy.ValueHead{{Name: "value", From: "value"}}}
	core := policy.Network{Format: policy.Format, Inputs: []policy.Input{{Path: "obs", Shape: []int{6}}}, Nodes: []policy.Node{
		{Name: "gru", In: []string{"obs"}, GRU: &layer.GRU{Size: 20}}, {Name: "lstm", In: []string{"gru"}, LSTM: &layer.LSTM{Size: 18}},
		dense("choices", "lstm", 3), dense("value", "lstm", 1)},
		Policy: []policy.Dist{{Action: "action", From: "choices", Categorical: &head.Categorical{N: 3}}},
		Values: []policy.ValueHead{{Name: "value", From: "value"}}, Chunk: 4}
	return map[string]policy.Network{"vector": vector, "image": image, "core": core}
}

func bounds(n int) *policy.Bounds {
	return &policy.Bounds{Low: filled[float32](n, -1), High: filled[float32](n, 1)}
}

// matrixOf lays out rows for a request.
func matrixOf[E float32 | int32 | byte](d hostabi.DType, rows, elems int, x []E) trajectory.Matrix {
	size := int(unsafe.Sizeof(*new(E)))
	b := make([]byte, 0, len(x)*size)
	for i := range x {
		b = append(b, bytesOf(&x[i])...)
	}
	return trajectory.Matrix{DType: d, Data: b, Rows: rows, Elems: elems, StrideRow: elems * size, StrideElem: size}
}

func TestActing_HasTheProcessorsBits(t *testing.T) {
	backend := cpu.New()
	if backend.Kernels() == "generic" {
		t.Skip("this processor has no fused multiply-add")
	}
	for name, n := range networks() {
		for _, greedy := range []bool{false, true} {
			t.Run(name, func(t *testing.T) { actAlike(t, backend, n, greedy) })
		}
	}
}

// actAlike lets the processor and the kernels act on the same rows.
func actAlike(t *testing.T, backend policy.Backend, n policy.Network, greedy bool) {
	r := newRig(t)
	rows, obs := 37, n.Obs()
	params := policy.Init(&n, 3)
	for i := range params {
		params[i] += 0.1 * float32(r.random.NormFloat64())
	}
	x, state := r.floats(rows*obs), r.floats(rows*n.State())
	x[7*obs], x[9*obs] = float32(math.NaN()), float32(math.Inf(1))
	request := policy.Request{Obs: []trajectory.Matrix{matrixOf(hostabi.F32, rows, obs, x)}, Mask: make([]trajectory.Matrix, len(n.Policy)),
		Age: filled[byte](rows, 7), Action: make([]trajectory.Matrix, len(n.Policy)), Raw: make([]trajectory.Matrix, len(n.Policy)),
		LogProb: make([]float32, rows), Value: make([]float32, rows), Seed: 0x123456789abcdef, Step: 1 << 40, FirstEnv: 17, Greedy: greedy}
	if n.State() > 0 {
		request.State = matrixOf(hostabi.F32, rows, n.State(), state)
		request.StateOut = matrixOf(hostabi.F32, rows, n.State(), make([]float32, rows*n.State()))
	}
	g := newGraph(r, &n, params, x, state, rows)
	heads, drawn := make([]Head, len(n.Policy)), uint32(0)
	for i, d := range n.Dists() {
		h, from := &heads[i], g.out[g.projection(&n.Policy[i])]
		*h = Head{Params: from.Data, Elements: int32(d.Size()), Choices: int32(d.Choices()), Draw: int32(drawn)}
		drawn = policy.Draws(d, 0, 0, 0, drawn, make([]float32, d.Draws()))
		if of := n.Policy[i].Gaussian; of != nil {
			request.Action[i] = matrixOf(hostabi.F32, rows, d.Size(), make([]float32, rows*d.Size()))
			request.Raw[i] = matrixOf(hostabi.F32, rows, d.Size(), make([]float32, rows*d.Size()))
			within := of.LogStdRange()
			h.Kind, h.Raw, h.Low, h.High = Normal, room[float32](r, rows*d.Size()), float32(within.Min), float32(within.Max)
			if of.Squash == head.Tanh {
				h.Kind = TanhNormal
			}
			continue
		}
		if n.Policy[i].Bernoulli != nil {
			h.Kind = Pairs
		}
		var counts []int32
		for _, c := range n.Policy[i].Counts() {
			counts = append(counts, int32(c))
		}
		h.Counts, h.Index = put(r, counts...), room[int32](r, rows*d.Size())
		request.Action[i] = matrixOf(hostabi.I32, rows, d.Size(), make([]int32, rows*d.Size()))
		if i == 0 {
			mask := r.masks(rows, n.Policy[i].Counts())
			request.Mask[i], h.Mask = matrixOf(hostabi.U8, rows, d.Choices(), mask), put(r, mask...)
		}
	}
	actor, err := policy.NewActor(backend, &n, rows)
	if err != nil {
		t.Fatal(err)
	}
	if err := actor.Load(policy.Weights{Params: params}); err != nil {
		t.Fatal(err)
	}
	if err := actor.Act([]policy.Request{request}); err != nil {
		t.Fatal(err)
	}
	keys := make([]Key, rows)
	for i := range keys {
		keys[i] = Key{Seed: request.Seed, Step: request.Step, Env: request.FirstEnv + uint32(i)}
		if greedy {
			keys[i].Greedy = 1
		}
	}
	args := Sample{Heads: put(r, heads...), Keys: put(r, keys...), LogProb: room[float32](r, rows),
		Count: int32(len(heads)), Rows: int32(rows), LD: int32(rows)}
	run(r, SampleKernel, Blocks(rows), args)
	for i, v := range request.Value {
		if v != v { // of logits that are no numbers: the log-probability is anything, the action is not
			view[float32](r, args.LogProb, rows)[i], request.LogProb[i] = 0, 0
		}
	}
	same(t, "log-probabilities", get[float32](r, args.LogProb, rows), request.LogProb)
	same(t, "values", get[float32](r, g.out[n.Values[0].From].Data, rows), request.Value)
	same(t, "states", g.after, request.StateOut.Float32())
	for i, d := range n.Dists() {
		if d.Continuous() {
			same(t, "raw actions", transposed(get[float32](r, heads[i].Raw, rows*d.Size()), rows), request.Raw[i].Float32())
			continue
		}
		got := transposed(get[int32](r, heads[i].Index, rows*d.Size()), rows)
		for k := range got {
			got[k] += n.Policy[i].Start
		}
		if want := request.Action[i].Int32(); !slices.Equal(got, want) {
			t.Errorf("action %d: %v, want %v", i, got, want)
		}
	}
	runShort(r, SampleKernel, Blocks(rows), args, args.Heads)
}

// masks are random masks with a legal choice for each element, and the last one in the last row.
func (r *rig) masks(rows int, counts []int) []byte {
	var mask []byte
	for range rows {
		for _, n := range counts {
			legal := r.random.IntN(n)
			for a := range n {
				mask = append(mask, byte(r.random.IntN(2)))
				if a == legal {
					mask[len(mask)-1] = 1
				}
			}
		}
	}
	mask[len(mask)-1] = 1
	return mask
}

// transposed turns columns of so many rows into rows.
func transposed[E any](x []E, rows int) []E {
	out, elems := make([]E, len(x)), len(x)/rows
	for i := range x {
		out[i%rows*elems+i/rows] = x[i]
	}
	return out
}
