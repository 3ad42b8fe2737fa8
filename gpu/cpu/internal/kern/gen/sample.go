package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sample generates the choice of an action for eight rows at a time: log-softmax, a uniform number of each row by
// Philox, the inverse of the distribution function.
func sample() {
	function("sample", "sampleArgs")
	s := avx2
	v := s.v
	groups, n, x, e, ld, actions := reg.RCX, reg.RDX, reg.RAX, reg.RBX, reg.RSI, reg.R8
	logits, scratch, action, logProb, env, places := reg.R9, reg.R10, reg.R11, reg.R12, reg.R13, reg.R14
	load("groups actions logits ld scratch action logProb env places", groups, actions, logits, ld, scratch, action, logProb, env, places)
	start := func() { MOVQ(logits, x); MOVQ(scratch, e); MOVQ(actions, n) }
	Label("group")
	softmax(s, start, x, e, n, ld)
	// v0 Σ exp, v1 uniform number, then v1 the target and v0 log Σ
	philox(s, env, places)
	VMULPS(v[0], v[1], v[1])
	s.log(v[0], v[2], v[3], v[4], v[5])
	// v2 cumulated, v3 found, v4 action, v5 its logit, v6 number of the action, v15 all ones where greedy
	for _, i := range []int{2, 3, 6} {
		s.clear(v[i])
	}
	VPBROADCASTD(field("actions"), v[4])
	VPSUBD(bits(1), v[4], v[4])
	VPBROADCASTD(field("greedy"), v[15])
	start()
	Label("pick")
	VMOVUPS(Mem{Base: x}, v[7])
	VADDPS(Mem{Base: e}, v[2], v[2])
	VCMPPS(Imm(1), v[2], v[1], v[8]) // target < cumulated
	s.clear(v[9])
	VCMPPS(Imm(2), v[7], v[9], v[9]) // 0 <= logit less the largest
	VBLENDVPS(v[15], v[9], v[8], v[8])
	VPANDN(v[8], v[3], v[9]) // the first time only
	VPOR(v[8], v[3], v[3])
	VBLENDVPS(v[9], v[6], v[4], v[4])
	VBLENDVPS(v[9], v[7], v[5], v[5])
	VPADDD(bits(1), v[6], v[6])
	nextAction("pick", ld, x, e, n)
	// where nothing was found (logits that are not numbers) the last action stays, with its logit
	VBLENDVPS(v[3], v[5], v[7], v[5])
	VSUBPS(v[0], v[5], v[5])
	VMOVUPS(v[4], Mem{Base: action})
	VMOVUPS(v[5], Mem{Base: logProb})
	for _, p := range []reg.GPPhysical{logits, action, logProb} {
		ADDQ(Imm(32), p)
	}
	ADDQ(field("nextEnv"), env)
	ADDQ(field("nextPlaces"), places)
	DECQ(groups)
	JNZ(LabelRef("group"))
	finish()
}

// softmax subtracts the largest logit of each row, in place, leaves the exponentials in the scratch and their sum
// in v0. It clobbers v1 to v5.
func softmax(s isa, start func(), x, e, n, ld reg.GPPhysical) {
	v := s.v
	start()
	VMOVUPS(Mem{Base: x}, v[1])
	Label("max")
	VMAXPS(Mem{Base: x}, v[1], v[1])
	ADDQ(ld, x)
	DECQ(n)
	JNZ(LabelRef("max"))
	start()
	s.clear(v[0])
	Label("exp")
	VMOVUPS(Mem{Base: x}, v[2])
	VSUBPS(v[1], v[2], v[2])
	VMOVUPS(v[2], Mem{Base: x})
	s.exp(v[2], v[3], v[4], v[5])
	VMOVUPS(v[2], Mem{Base: e})
	VADDPS(v[2], v[0], v[0])
	nextAction("exp", ld, x, e, n)
}

// nextAction continues with the next of n remaining actions: its logits at x, its scratch at e.
func nextAction(label string, ld, x, e, n reg.GPPhysical) {
	ADDQ(ld, x)
	ADDQ(Imm(32), e)
	DECQ(n)
	JNZ(LabelRef(label))
}

// philox leaves in v1 the uniform numbers of the eight environments at places, counted from env. It clobbers v2 to v14.
func philox(s isa, env, places reg.GPPhysical) {
	v := s.v
	c0, c1, c2, c3, k0, k1 := v[2], v[3], v[4], v[5], v[6], v[7]
	m0, m1 := v[8], v[9]
	VPBROADCASTD(at(field("step"), 0), c0)
	VPBROADCASTD(at(field("step"), 4), c1)
	MOVQ(env, reg.X4)
	VPBROADCASTD(reg.X4, c2)
	VPADDD(Mem{Base: places}, c2, c2)
	VPBROADCASTD(at(field("draw"), 0), c3)
	VPBROADCASTD(at(field("seed"), 0), k0)
	VPBROADCASTD(at(field("seed"), 4), k1)
	VPBROADCASTD(bits(0xd2511f53), m0)
	VPBROADCASTD(bits(0xcd9e8d57), m1)
	for round := range 10 {
		if round > 0 {
			VPADDD(bits(0x9e3779b9), k0, k0)
			VPADDD(bits(0xbb67ae85), k1, k1)
		}
		hi0, lo0 := mul32(c0, m0, v[10], v[11], v[12])
		VPXOR(c1, k0, c1)
		VPXOR(c3, k1, c3)
		VMOVDQA(hi0, v[13])
		VMOVDQA(lo0, v[14])
		hi1, lo1 := mul32(c2, m1, v[10], v[11], v[12])
		VPXOR(hi1, c1, c0)
		VMOVDQA(lo1, c1)
		VPXOR(v[13], c3, c2)
		VMOVDQA(v[14], c3)
	}
	VPSRLD(Imm(9), c0, c0)
	VCVTDQ2PS(c0, c0)
	VADDPS(float(0.5), c0, c0)
	VMULPS(float(0x1p-23), c0, v[1])
}

// mul32 multiplies eight pairs of 32-bit numbers and returns registers with the high and low halves.
func mul32(x, y, even, odd, tmp reg.VecPhysical) (hi, lo reg.VecPhysical) {
	VPSRLQ(Imm(32), x, odd)
	VPMULUDQ(y, x, even)
	VPMULUDQ(y, odd, odd)
	VPSRLQ(Imm(32), even, tmp)
	VPBLENDD(Imm(0xaa), odd, tmp, tmp)
	VPSLLQ(Imm(32), odd, odd)
	VPBLENDD(Imm(0xaa), odd, even, even)
	return tmp, even
}
