package kernels

import "testing"

func TestPack_MovesParametersThereAndBack(t *testing.T) {
	r := newRig(t)
	count := 700
	canonical := r.floats(count)
	place := make([]int32, count)
	for i, at := range r.random.Perm(899)[:count] {
		place[i] = int32(at)
	}
	place[3] = 899
	own := make([]float32, 900)
	args := Packing{Canonical: put(r, canonical...), Own: put(r, own...), Place: put(r, place...), Count: int32(count)}
	run(r, PackKernel, Blocks(count), args)
	for i, at := range place {
		own[at] = canonical[i]
	}
	same(t, "the device's vector", get[float32](r, args.Own, 900), own)
	runShort(r, PackKernel, Blocks(count), args)
	args.Canonical = room[float32](r, count)
	run(r, UnpackKernel, Blocks(count), args)
	same(t, "the canonical vector", get[float32](r, args.Canonical, count), canonical)
	runShort(r, UnpackKernel, Blocks(count), args)

	// The head of a value: 20 weights from 100 on, the bias after them.
	rescale := Rescale{Own: args.Own, Place: args.Place, Scale: 1.7, Shift: -0.3, Weight: 100, Bias: 120, Count: 20}
	run(r, RescaleKernel, Blocks(21), rescale)
	for i := 100; i < 120; i++ {
		own[place[i]] = float32(float64(own[place[i]]) * 1.7)
	}
	own[place[120]] = float32(float64(own[place[120]])*1.7 + -0.3)
	same(t, "the rescaled vector", get[float32](r, args.Own, 900), own)

	places := make([]int32, 21)
	for i := range places {
		places[i] = int32(i)
	}
	whole := Rescale{Own: put(r, r.floats(21)...), Place: put(r, places...), Scale: 1.7, Shift: -0.3, Bias: 20, Count: 20}
	run(r, RescaleKernel, Blocks(21), whole)
	runShort(r, RescaleKernel, Blocks(21), whole)
}
