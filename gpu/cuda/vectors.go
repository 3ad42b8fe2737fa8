package cuda

import "github.com/rlhost/rlhost/gpu/cuda/kernels"

// vectors takes vectors of parameters between the host, where they are canonical, and the device.
type vectors struct {
	staged
	*layout
	places       kernels.Address
	whole        section
	pack, unpack call[kernels.Packing]
}

func newVectors(o *owner, l *layout) *vectors {
	v := &vectors{staged: staged{work: o.work}, layout: l, pack: prepare(o, kernels.PackKernel), unpack: prepare(o, kernels.UnpackKernel)}
	v.whole = v.section(4 * l.canonical)
	v.fit()
	if v.err != nil {
		return v
	}
	v.places = o.floats(l.canonical)
	copy(view[int32](&v.staged, v.whole), l.place())
	v.copy(v.places, v.host.Address, v.whole.bytes)
	v.wait()
	return v
}

// put writes a canonical vector to one of the device's. It waits for the vector before.
func (v *vectors) put(own kernels.Address, canonical []float32) {
	if v.wait(); v.err != nil {
		return
	}
	copy(view[float32](&v.staged, v.whole), canonical)
	v.send(0)
	*v.pack.args = kernels.Packing{Canonical: v.address(v.whole), Own: own, Place: v.places, Count: int32(v.canonical)}
	v.launch(v.pack.Launch, kernels.Blocks(v.canonical))
}

// get waits for one of the device's vectors and writes it to a canonical one.
func (v *vectors) get(canonical []float32, own kernels.Address) {
	*v.unpack.args = kernels.Packing{Canonical: v.address(v.whole), Own: own, Place: v.places, Count: int32(v.canonical)}
	v.launch(v.unpack.Launch, kernels.Blocks(v.canonical))
	v.fetch()
	if v.wait(); v.err == nil {
		copy(canonical, view[float32](&v.staged, v.whole))
	}
}
