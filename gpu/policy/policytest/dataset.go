package policytest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
)

// Options describe a dataset of random rows.
type Options struct {
	Network             policy.Network
	Steps, Envs, Blocks int // Envs is the number of environments of one block
	Masked, SoA         bool
	InvalidEvery        int // every n-th row is a phantom; 0 = none
	Seed                uint64
}

// NewDataset makes blocks of random observations, rewards, ends of episodes and masks. The policy's outputs
// (action, log_prob, value, bootstrap_value) are zero until Act; the contents do not depend on how environments
// are split over blocks.
func NewDataset(t testing.TB, o Options) *policy.Dataset {
	t.Helper()
	d := &policy.Dataset{Seed: o.Seed, Index: 3}
	for i := range o.Blocks {
		spec := SpecOf(&o.Network, o.Masked)
		schema, err := trajectory.NewSchema(spec, trajectory.Shape{Steps: o.Steps, Envs: o.Envs, SoA: o.SoA, Memory: o.Network.Memory()})
		if err != nil {
			t.Fatal(err)
		}
		tr := trajectory.Trajectory{Schema: schema, Mem: make([]byte, schema.Bytes)}
		tr.Meta().FirstEnv = uint32(i * o.Envs)
		for e := range o.Envs {
			fillEnv(tr, o, e, rand.New(rand.NewPCG(o.Seed, uint64(i*o.Envs+e))))
		}
		d.Blocks = append(d.Blocks, tr)
	}
	if o.Network.NormalizeObs() {
		z := policy.NewNormalizer(o.Network.Stats())
		if err := z.Update(d, &o.Network); err != nil {
			t.Fatal(err)
		}
		d.ObsMean, d.ObsScale = make([]float32, o.Network.Stats()), make([]float32, o.Network.Stats())
		z.Weights(d.ObsMean, d.ObsScale)
	}
	return d
}

// Spec describes an environment with those sizes.
func Spec(obs, actions int, masked bool) hostabi.EnvSpec {
	tensor := func(role hostabi.Role, dtype hostabi.DType, elems, n int) hostabi.Tensor {
		d := hostabi.Tensor{Role: role, DType: dtype, N: uint32(n)}
		if elems > 1 {
			d.Rank, d.Shape = 1, [hostabi.MaxRank]uint32{uint32(elems)}
		}
		return d
	}
	s := hostabi.EnvSpec{Name: "random@1", ABI: hostabi.EnvABI, Caps: hostabi.CapStrides,
		Autoreset: hostabi.Disabled, Tensors: []hostabi.Tensor{
			tensor(hostabi.RoleAction, hostabi.I32, 1, actions),
			tensor(hostabi.RoleObservation, hostabi.F32, obs, 0),
			tensor(hostabi.RoleReward, hostabi.F32, 1, 0),
			tensor(hostabi.RoleTerminated, hostabi.U8, 1, 0),
			tensor(hostabi.RoleTruncated, hostabi.U8, 1, 0),
		}}
	if masked {
		s.Tensors = append(s.Tensors, tensor(hostabi.RoleActionMask, hostabi.U8, actions, 0))
	}
	return s
}

// SpecOf describes an environment for a network: an action tensor for each of its actions and, if masked, a mask for each
// that is discrete.
func SpecOf(n *policy.Network, masked bool) hostabi.EnvSpec {
	s := Spec(n.Obs(), 2, false)
	if !n.Plain() {
		observe(&s, n)
	}
	rest := s.Tensors[1:]
	s.Tensors = nil
	for i := range n.Policy {
		s.Tensors = append(s.Tensors, actionOf(&n.Policy[i], i))
	}
	s.Tensors = append(s.Tensors, rest...)
	masks := uint16(0)
	for i, d := range n.Dists() {
		if masked && d.Choices() > 0 {
			mask := hostabi.Tensor{Role: hostabi.RoleActionMask, DType: hostabi.U8, Rank: 1, Pair: uint16(i), Index: masks}
			mask.Shape[0] = uint32(d.Choices())
			s.Tensors = append(s.Tensors, mask)
			masks++
		}
	}
	return s
}

func actionOf(d *policy.Dist, index int) hostabi.Tensor {
	of, err := d.Of()
	if err != nil {
		panic(err)
	}
	t := hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.I32, Index: uint16(index), Start: d.Start}
	if n := of.Size(); n > 1 || of.Continuous() {
		t.Rank, t.Shape[0] = 1, uint32(n)
	}
	if of.Continuous() {
		t.DType, t.Lows, t.Highs = hostabi.F32, d.Bounds.Low, d.Bounds.High
		return t
	}
	if d.Bernoulli != nil {
		t.Flags |= hostabi.TensorBinary
	}
	counts := d.Counts()
	if t.N = uint32(counts[0]); d.MultiCategorical != nil {
		t.N = 0
		for _, n := range counts {
			t.Counts = append(t.Counts, uint32(n))
		}
	}
	return t
}

func fillEnv(tr trajectory.Trajectory, o Options, e int, r *rand.Rand) {
	fillPast(tr, o, e, r)
	for t := range o.Steps + 1 {
		for i := range tr.Rows(nil, trajectory.Obs, t) {
			fillObs(tr.Row(trajectory.Obs.At(i), t), observed(&o.Network, i), e, r)
		}
		for i := range o.Network.Policy {
			if tr.Schema.MaskOf(i) != nil {
				fillMask(tr, i, o.Network.Policy[i].Counts(), t, e, r)
			}
		}
		if t == o.Steps {
			break
		}
		at := t*o.Envs + e
		tr.Float32(trajectory.Reward)[at] = float32(r.NormFloat64())
		tr.Bytes(trajectory.Terminated)[at] = byte(r.IntN(10) / 9)
		tr.Bytes(trajectory.Truncated)[at] = byte(r.IntN(8) / 7)
		tr.Bytes(trajectory.Valid)[at] = 1
		if o.InvalidEvery > 0 && r.IntN(o.InvalidEvery) == 0 {
			tr.Bytes(trajectory.Valid)[at] = 0
		}
		if ages := tr.Ages(t + 1); ages != nil && tr.Bytes(trajectory.Valid)[at] != 0 &&
			tr.Bytes(trajectory.Terminated)[at]|tr.Bytes(trajectory.Truncated)[at] == 0 {
			ages[e] = tr.Ages(t)[e] + 1
		}
	}
}

// fillPast fills the rows before row 0.
func fillPast(tr trajectory.Trajectory, o Options, e int, r *rand.Rand) {
	if ages := tr.Ages(0); ages != nil {
		ages[e] = byte(r.IntN(o.Network.Past() + 2))
	}
	if tr.Schema.Shape.State > 0 {
		state := tr.Row(trajectory.CoreState, 0)
		for i := range state.Elems {
			state.Float32()[e*state.Elems+i] = float32(r.NormFloat64() / 2)
		}
	}
	for row := range tr.Schema.Shape.Past {
		for i := range tr.Rows(nil, trajectory.Obs, 0) {
			fillObs(tr.Row(trajectory.PastObs.At(i), row), observed(&o.Network, i), e, r)
		}
		for i := range o.Network.Policy {
			fillPastAction(tr.Row(trajectory.PastAction.At(i), row), &o.Network.Policy[i], e, r)
		}
		tr.Row(trajectory.PastReward, row).Float32()[e] = float32(r.NormFloat64())
	}
}

// fillPastAction draws one environment's action.
func fillPastAction(m trajectory.Matrix, d *policy.Dist, e int, r *rand.Rand) {
	counts := d.Counts()
	for i := range m.Elems {
		at := m.Data[e*m.StrideRow+i*m.StrideElem:]
		if counts == nil {
			binary.LittleEndian.PutUint32(at, math.Float32bits(float32(r.NormFloat64())))
			continue
		}
		binary.LittleEndian.PutUint32(at, uint32(int(d.Start)+r.IntN(counts[i])))
	}
}

// observed returns the input that reads an observation.
func observed(n *policy.Network, i int) *policy.Input {
	for k := range n.Inputs {
		if in := &n.Inputs[k]; in.From == "" {
			if i == 0 {
				return in
			}
			i--
		}
	}
	return nil
}

// observe replaces the observation of a description by the network's.
func observe(s *hostabi.EnvSpec, n *policy.Network) {
	i := slices.IndexFunc(s.Tensors, func(t hostabi.Tensor) bool { return t.Role == hostabi.RoleObservation })
	s.Tensors = slices.Delete(s.Tensors, i, i+1)
	for k := range n.Inputs {
		in := &n.Inputs[k]
		if in.From != "" {
			continue
		}
		t := hostabi.Tensor{Role: hostabi.RoleObservation, DType: in.Type(), Rank: uint8(len(in.Shape)), Path: in.Path, Start: int32(in.Start)}
		for axis, length := range in.Shape {
			t.Shape[axis] = uint32(length)
		}
		if t.Rank == 3 {
			t.Flags = hostabi.TensorImageHWC
		}
		for _, c := range in.Choices {
			t.Counts = append(t.Counts, uint32(c))
		}
		s.Tensors = append(s.Tensors, t)
	}
}

// fillObs draws one environment's observation.
func fillObs(m trajectory.Matrix, in *policy.Input, e int, r *rand.Rand) {
	for i := range m.Elems {
		at := m.Data[e*m.StrideRow+i*m.StrideElem:]
		switch m.DType {
		case hostabi.F32:
			binary.LittleEndian.PutUint32(at, math.Float32bits(float32(r.NormFloat64()*(1+float64(i%3))+float64(i%5))))
		case hostabi.I32:
			binary.LittleEndian.PutUint32(at, uint32(in.Start+r.IntN(in.Choices[i%len(in.Choices)])))
		default:
			at[0] = byte(r.IntN(256))
		}
	}
}

func fillMask(tr trajectory.Trajectory, action int, counts []int, t, e int, r *rand.Rand) {
	l := tr.Schema.MaskOf(action)
	first := 0
	for _, n := range counts {
		legal := r.IntN(n)
		for a := range n {
			at := t*l.StrideT + e*l.StrideEnv + (first+a)*l.StrideElem
			if a == legal || r.IntN(3) > 0 {
				tr.Bytes(l.Column)[at] = 1
			}
		}
		first += n
	}
}

// Act lets an actor act on every row of a dataset, rows environments a request, and fills in bootstrap values.
func Act(t testing.TB, n *policy.Network, a policy.Actor, d *policy.Dataset, rows int) {
	t.Helper()
	for _, b := range d.Blocks {
		for step := range d.Steps() + 1 {
			if err := a.Act(Requests(n, d, b, step, rows)); err != nil {
				t.Fatal(err)
			}
		}
		for i, v := range b.Float32(trajectory.Value)[:len(b.Float32(trajectory.Bootstrap))] {
			b.Float32(trajectory.Bootstrap)[i] = v/2 + 1
		}
	}
}

// Acted makes a dataset that a backend with the given parameters has acted on.
func Acted(t testing.TB, b policy.Backend, params []float32, o Options) *policy.Dataset {
	t.Helper()
	d := NewDataset(t, o)
	a, err := policy.NewActor(b, &o.Network, o.Envs)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Load(policy.Weights{Params: params, ObsMean: d.ObsMean, ObsScale: d.ObsScale}); err != nil {
		t.Fatal(err)
	}
	Act(t, &o.Network, a, d, o.Envs)
	return d
}

// Requests splits the rows of a block at one step into requests. The row after the last step asks for values only.
func Requests(n *policy.Network, d *policy.Dataset, b trajectory.Trajectory, step, rows int) []policy.Request {
	envs := b.Schema.Shape.Envs
	var requests []policy.Request
	at := step * envs
	bound, err := n.Bind(b.Schema)
	if err != nil {
		panic(err)
	}
	all := policy.Request{Obs: bound.Row(nil, b, step), Age: bound.Ages(b, step), Value: b.Float32(trajectory.Value)[at : at+envs],
		Seed: d.Seed, FirstEnv: b.Meta().FirstEnv, Step: uint64(1000 + step)}
	all.State = bound.State(b, step)
	if step < b.Schema.Shape.Steps {
		all.StateOut = bound.State(b, step+1)
		all.Action, all.Mask = b.Rows(nil, trajectory.Action, step), b.Masks(nil, step)
		all.Raw = b.RawActions(nil, step)
		all.LogProb = b.Float32(trajectory.LogProb)[at : at+envs]
	}
	for lo := 0; lo < envs; lo += rows {
		hi := min(lo+rows, envs)
		requests = append(requests, all.Slice(lo, hi, new(policy.Views)))
	}
	return requests
}
