package cpu

import (
	"slices"
	"testing"

	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
)

// small is an Atari network over pictures that its convolutions just fit.
func small(kind policy.Kind) policy.Network {
	return policy.Body{Inputs: []policy.Input{{Path: "obs", Shape: []int{36, 44, 4}}},
		Heads: policy.Heads{Policy: []policy.Dist{{Action: "action", Categorical: &head.Categorical{N: 3}}}},
		Nodes: kind.Nodes("trunk", "obs", []int{32}, policy.ReLU)}.Network()
}

// Bytes enter convolutions as their floats, equal in every bit, without a copy before.
func TestConvolutionsReadBytes(t *testing.T) {
	for s := kern.Generic; s <= kern.Detect(); s++ {
		for _, kind := range []policy.Kind{policy.NatureCNN, policy.Impala} {
			n := small(kind)
			l, err := newLayout(n)
			if err != nil {
				t.Fatal(err)
			}
			const rows = 3
			data := make([]byte, rows*l.obs)
			x := make([]float32, len(data))
			for i := range data {
				data[i] = byte(i * i >> 3)
				x[i] = float32(data[i]) * (1.0 / 255)
			}
			params := aligned(l.whole)
			l.importParams(params, policy.Init(&n, 1))
			l.derive(params)
			floats, bytes := newPass(s, l, params), newPass(s, l, params)
			floats.x = matrix{x, l.obs, 1}
			bytes.pixels = pixels{data: data, row: l.obs, scale: 1.0 / 255}
			floats.forward(rows, true)
			bytes.forward(rows, true)
			for i := range floats.out {
				if !slices.Equal(floats.out[i], bytes.out[i]) {
					t.Errorf("%v, %s: operation %d of bytes is not that of floats", s, kind, i)
				}
			}
		}
	}
}

// A pass and its way back allocate nothing.
func TestImagesDoNotAllocate(t *testing.T) {
	for _, kind := range []policy.Kind{policy.NatureCNN, policy.Impala} {
		n := small(kind)
		l, err := newLayout(n)
		if err != nil {
			t.Fatal(err)
		}
		var back [][]float32
		for _, o := range l.ops {
			back = append(back, aligned(o.packed()))
		}
		const rows = 2
		s := newShard(newPass(kern.Detect(), l, aligned(l.whole)), back, &minibatch{})
		s.pixels = pixels{data: make([]byte, rows*l.obs), row: l.obs, scale: 1.0 / 255}
		if count := testing.AllocsPerRun(3, func() {
			s.forward(rows, true)
			s.backward(rows)
		}); count > 0 {
			t.Errorf("%s: %v allocations a pass", kind, count)
		}
	}
}
