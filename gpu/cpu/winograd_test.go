package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
)

// A convolution computed tile by tile equals its definition by windows, for images with sides that tiles do not divide.
func TestTiledConvolutionsEqualDirectOnes(t *testing.T) {
	for s := kern.Generic; s <= kern.Detect(); s++ {
		for kind, want := range map[policy.Kind]int{policy.NatureCNN: 2, policy.Impala: 14} {
			n := small(kind)
			tiled, direct := passOf(t, s, n), passOf(t, s, n)
			if got := len(tiled.tiled); got != want {
				t.Errorf("%s: %d convolutions are computed tile by tile, want %d", kind, got, want)
			}
			for _, c := range direct.tiled {
				c.tiles = nil
			}
			const rows = 9 // more than are computed together
			for _, p := range []*pass{tiled, direct} {
				r := rand.New(rand.NewPCG(1, 2))
				p.x = matrix{make([]float32, rows*p.obs), p.obs, 1}
				for i := range p.x.data {
					p.x.data[i] = r.Float32()
				}
				p.forward(rows, true)
			}
			for i, o := range tiled.ops {
				got, want, n := tiled.out[i], direct.out[i], o.common()
				if n.row == 0 {
					continue
				}
				for j := range rows * n.row {
					if !(math.Abs(float64(got[j]-want[j])) <= 1e-4*max(1, math.Abs(float64(want[j])))) {
						t.Errorf("%v, %s: element %d of %s is %v, want %v", s, kind, j, n.Name, got[j], want[j])
						break
					}
				}
			}
		}
	}
}

// passOf is a pass with initial parameters.
func passOf(t *testing.T, s kern.Set, n policy.Network) *pass {
	l, err := newLayout(n)
	if err != nil {
		t.Fatal(err)
	}
	params := aligned(l.whole)
	l.importParams(params, policy.Init(&n, 1))
	l.derive(params)
	return newPass(s, l, params)
}
