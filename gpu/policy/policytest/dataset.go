package policytest

import (
	"math/rand/v2"
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

// NewDataset makes blocks of random observations, rewards, ends of episodes and masks. What the policy writes
// (action, log_prob, value, bootstrap_value) is zero until Act; the contents do not depend on how environments
// are split over blocks.
func NewDataset(t testing.TB, o Options) *policy.Dataset {
	t.Helper()
	d := &policy.Dataset{Seed: o.Seed, Index: 3}
	for i := range o.Blocks {
		spec := SpecOf(&o.Network, o.Masked)
		schema, err := trajectory.NewSchema(spec, trajectory.Shape{Steps: o.Steps, Envs: o.Envs, SoA: o.SoA})
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
		z := policy.NewNormalizer(o.Network.Obs())
		if err := z.Update(d); err != nil {
			t.Fatal(err)
		}
		d.ObsMean, d.ObsScale = make([]float32, o.Network.Obs()), make([]float32, o.Network.Obs())
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
		Autoreset: hostabi.SameStep, Tensors: []hostabi.Tensor{
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
	rest := s.Tensors[1:]
	s.Tensors = nil
	for i := range n.Policy {
		s.Tensors = append(s.Tensors, actionOf(&n.Policy[i], i))
	}
	s.Tensors = append(s.Tensors, rest...)
	for i, d := range n.Dists() {
		if masked && d.Choices() > 0 {
			mask := hostabi.Tensor{Role: hostabi.RoleActionMask, DType: hostabi.U8, Rank: 1, Pair: uint16(i), Index: uint16(i)}
			mask.Shape[0] = uint32(d.Choices())
			s.Tensors = append(s.Tensors, mask)
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
	obs, _ := tr.Schema.Layout(trajectory.Obs)
	for t := range o.Steps + 1 {
		for i := range o.Network.Obs() {
			x := float32(r.NormFloat64()*(1+float64(i%3)) + float64(i%5))
			tr.Float32(trajectory.Obs)[(t*obs.StrideT+e*obs.StrideEnv+i*obs.StrideElem)/4] = x
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
func Act(t testing.TB, a policy.Actor, d *policy.Dataset, rows int) {
	t.Helper()
	for _, b := range d.Blocks {
		for step := range d.Steps() + 1 {
			if err := a.Act(Requests(d, b, step, rows)); err != nil {
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
	Act(t, a, d, o.Envs)
	return d
}

// Requests splits the rows of a block at one step into requests. The row after the last step asks for values only.
func Requests(d *policy.Dataset, b trajectory.Trajectory, step, rows int) []policy.Request {
	envs := b.Schema.Shape.Envs
	var requests []policy.Request
	at := step * envs
	all := policy.Request{Obs: b.Rows(nil, trajectory.Obs, step), Value: b.Float32(trajectory.Value)[at : at+envs],
		Seed: d.Seed, FirstEnv: b.Meta().FirstEnv, Step: uint64(1000 + step)}
	if step < b.Schema.Shape.Steps {
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
