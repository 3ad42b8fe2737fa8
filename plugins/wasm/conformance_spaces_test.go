package wasm

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	heads "github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/hostabi"
)

// act has every agent do a trace's actions: for 0 the first value of every element, or its lower bound, for 1 the last, or the
// upper one.
func act(d *env.Driver, actions []int32) {
	tensors := d.Schema().Spec.All(hostabi.RoleAction)
	for i, m := range d.Actions() {
		for row, action := range actions {
			for elem := range m.Elems {
				binary.LittleEndian.PutUint32(m.Data[row*m.StrideRow+elem*m.StrideElem:], outermost(&tensors[i], elem, action != 0))
			}
		}
	}
}

// outermost returns the bits of an element's first or last value. Where a Box has no bound, one of 8 stands for it.
func outermost(t *hostabi.Tensor, elem int, last bool) uint32 {
	const most = 8
	low, high := t.Bounds(elem)
	switch {
	case t.Discrete() && last:
		return uint32(t.Start) + uint32(t.Count(elem)) - 1
	case t.Discrete():
		return uint32(t.Start)
	case last:
		return math.Float32bits(min(high, most))
	}
	return math.Float32bits(max(low, -most))
}

// giveParams writes the reset parameters of environments that take some: the first is 0.25 and the second 4. One case is given none.
func (c *conformanceCase) giveParams(d *env.Driver) {
	tr, _ := d.Acting()
	if c.Name == "reset-param-absent" || !tr.Schema.Has(trajectory.ResetParam) {
		return
	}
	m := tr.Row(trajectory.ResetParam, 0)
	for row := range m.Rows {
		for elem := range m.Elems {
			binary.LittleEndian.PutUint32(m.Data[row*m.StrideRow+elem*m.StrideElem:], math.Float32bits([]float32{0.25, 4}[elem]))
		}
	}
}

// playRaw has a policy draw numbers of every size for a Box, which the guest must get within its bounds: clipped, rescaled and squashed.
func playRaw(t *testing.T, d *env.Driver) {
	ways := []policy.ActionOptions{{}}
	if low, high := d.Schema().Spec.Tensors[0].Bounds(0); !math.IsInf(float64(high-low), 0) {
		ways = append(ways, policy.ActionOptions{Rescale: true}, policy.ActionOptions{Squash: heads.Tanh})
	}
	for _, way := range ways {
		dists, err := policy.DistsOf(&d.Schema().Spec, way)
		must(t, err)
		for _, drawn := range []float64{0, 0.5, -1, 1, 7, -1e9, 1e9, math.MaxFloat32, math.Inf(-1), math.Inf(1), math.NaN()} {
			raw, action := d.RawActions()[0], d.Actions()[0]
			for i := range raw.Float32() {
				raw.Float32()[i] = float32(drawn)
			}
			dists[0].Place(&raw, &action, 0, raw.Rows)
			if _, err := d.Step(); err != nil {
				t.Errorf("%+v: a drawn %v: %v", way, drawn, err)
			}
		}
	}
}

// bytesOf returns a row of bytes.
func bytesOf(m trajectory.Matrix, row int) (list []byte) {
	for elem := range m.Elems {
		list = append(list, byte(m.Value(row, elem)))
	}
	return list
}
