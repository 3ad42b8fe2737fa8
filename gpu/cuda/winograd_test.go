package cuda

import (
	"bytes"
	"testing"

	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/fake"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
)

// few is a backend that computes the tiles of few images together.
type few struct {
	*Backend
	elems int
}

func (b few) Compile(n *policy.Network) (policy.Program, error) {
	p, err := b.Backend.Compile(n)
	if err == nil {
		p.(*program).layout.tileElems = b.elems
	}
	return p, err
}

func TestTilesOfMoreImagesThanAreComputedTogether(t *testing.T) {
	d := fake.New(fake.Options{Seed: 1})
	b := New(Options{Driver: func() (*driver.Table, error) { return driver.Bind(d.Lookup) }})
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	for name, o := range policytest.Cases {
		if name != "convolutions in tiles" {
			continue
		}
		params := policy.Init(&o.Network, 3)
		o.Steps = 1
		want := policytest.Acted(t, b, params, o).Blocks[0].Mem
		if got := policytest.Acted(t, few{b, 2500}, params, o).Blocks[0].Mem; !bytes.Equal(got, want) { // two images and four
			t.Error("computed in turns: another block")
		}
		return
	}
	t.Error("there is no network in tiles")
}
