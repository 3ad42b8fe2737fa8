package ptx

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// patterns are float32 that rounding is hard for: near ties, denormals, powers of two and their neighbours, and any.
func patterns(r *rand.Rand) float32 {
	switch r.IntN(5) {
	case 0:
		return f32(r.Uint32())
	case 1: // few bits set, so that products and sums come to lie on ties
		return f32(r.Uint32()&0x807fffff>>r.IntN(23)<<r.IntN(23)&^0x7f800000 | uint32(100+r.IntN(56))<<23)
	case 2:
		return f32(r.Uint32() & 0x807fffff)
	case 3:
		return f32(uint32(r.IntN(256))<<23 + uint32(r.IntN(3)) - 1)
	}
	return float32(1+r.IntN(1<<12)) * float32(math.Ldexp(1, r.IntN(60)-30))
}

func finite(x ...float32) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}

func wide(x float32) *big.Float { return new(big.Float).SetPrec(600).SetFloat64(float64(x)) }

func TestFusedMultiplyAdd_RoundsOnce(t *testing.T) {
	t.Parallel()
	// What rounds wrongly where the sum is first a float64: it is then a tie of which the tail was lost.
	hard := [][3]float32{
		{f32(0x3f800001), f32(0x3f800001), f32(0x33800000)},
		{f32(0x3f800001), f32(0x3f7fffff), f32(0x2f800000)},
		{1 + 0x1p-23, 1 + 0x1p-12, -0x1p-60},
		{0x1p-70, 0x1p-79, 0x1.8p-149}, {0x1.000002p-75, 0x1p-75, 0x1p-149}, {0x1.fffffep127, 1, 0x1p103}, {0x1.fffffep127, 1, 0x1.8p102},
	}
	entry := read(t, header+`
.visible .entry one(.param .f32 x, .param .f32 y, .param .f32 z, .param .u64 out) {
	.reg .f32 %f<5>; .reg .b64 %rd<2>;
	ld.param.f32 %f1, [x]; ld.param.f32 %f2, [y]; ld.param.f32 %f3, [z]; ld.param.u64 %rd1, [out];
	fma.rn.f32 %f4, %f1, %f2, %f3;
	st.global.f32 [%rd1], %f4;
	ret;
}`)
	out := entry.memory.Alloc(4)
	random := rand.New(rand.NewPCG(2, 1))
	for i := range 300_000 {
		x, y, z := patterns(random), patterns(random), patterns(random)
		if i < len(hard) {
			x, y, z = hard[i][0], hard[i][1], hard[i][2]
		}
		if !finite(x, y, z) {
			continue
		}
		v := new(big.Float).SetPrec(600).Mul(wide(x), wide(y))
		if v.Add(v, wide(z)); v.Sign() == 0 {
			continue
		}
		want, _ := v.Float32()
		if got := fused32(x, y, z); math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("fma of %x, %x, %x: %x, want %x", x, y, z, got, want)
		}
		if i > 2000 {
			continue
		}
		entry.must("one", line(1, 1), x, y, z, out)
		if got := get[float32](entry, out, 1)[0]; math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("fma.rn.f32 of %x, %x, %x: %x, want %x", x, y, z, got, want)
		}
	}
}

// header begins a PTX text.
const header = ".version 7.8\n.target sm_80\n.address_size 64\n"
