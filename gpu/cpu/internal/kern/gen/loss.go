package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// loss generates the PPO loss and its gradient for eight rows at a time. Rows after the last are computed
// from their memory's contents, and kept out of the sums.
func loss() {
	function("loss", "lossArgs")
	s := avx2
	v := s.v
	rows, n, x, e, ld, row := reg.RCX, reg.RDX, reg.RAX, reg.RBX, reg.RSI, reg.R8
	logits, scratch, sums, numbers := reg.R9, reg.R10, reg.R11, reg.R12
	p := reg.R13
	load("rows logits ld scratch sums numbers", rows, logits, ld, scratch, sums, numbers)
	XORQ(row, row) // byte offset into the columns
	start := func() { MOVQ(logits, x); MOVQ(scratch, e); load("actions", n) }
	column := func(name string) Mem { load(name, p); return Mem{Base: p, Index: row, Scale: 1} }
	number := func(name string, to reg.VecPhysical) {
		VBROADCASTSS(Mem{Base: numbers, Disp: 4 * (index("Loss", name) - index("Loss", "Low"))}, to)
	}
	Label("group")
	logProbs(s, start, column, x, e, n, ld, true)
	VMOVUPS(v[7], column("newLogProb"))
	// v10 rows that count, v11 log ratio, v12 ratio, v13 advantage
	MOVQ(rows, reg.X10)
	VPBROADCASTD(reg.X10, v[10])
	VPCMPGTD(lanes(), v[10], v[10])
	VSUBPS(column("oldLogProb"), v[7], v[11])
	VMOVAPS(v[11], v[12])
	s.exp(v[12], v[1], v[2], v[3])
	VMOVUPS(column("advantage"), v[13])
	add := func(name string, x reg.VecPhysical) { // x is clobbered
		VANDPS(v[10], x, x)
		VADDPS(sum(name), x, x)
		VMOVUPS(x, sum(name))
	}
	surrogate(s, number, add)
	valueLoss(s, column, number, add)
	// the gradient: (entropy coefficient · (log p + H) + slope - [a = j] slope / p) · p; v14 slope
	number("Entropy", v[1])
	s.clear(v[8])
	start()
	Label("gradient")
	VMOVUPS(Mem{Base: e}, v[3])
	VADDPS(Mem{Base: x}, v[6], v[2])
	VMULPS(v[1], v[2], v[2])
	VADDPS(v[14], v[2], v[2])
	VMULPS(v[3], v[2], v[2])
	VPCMPEQD(v[8], v[9], v[3])
	VANDPS(v[14], v[3], v[3])
	VSUBPS(v[3], v[2], v[2])
	VMOVUPS(v[2], Mem{Base: x})
	VPADDD(bits(1), v[8], v[8])
	nextAction("gradient", ld, x, e, n)
	ADDQ(Imm(32), row)
	ADDQ(Imm(32), logits)
	SUBQ(Imm(8), rows)
	JG(LabelRef("group"))
	finish()
}

// sum addresses a field of the LossSums that R11 points to.
func sum(name string) Mem { return Mem{Base: reg.R11, Disp: 32 * index("LossSums", name)} }

// surrogate takes v11 log ratio, v12 ratio, v13 advantage; it leaves the slope over log π(a) in v14.
func surrogate(s isa, number func(string, reg.VecPhysical), add func(string, reg.VecPhysical)) {
	v := s.v
	number("Low", v[1])
	number("High", v[2])
	VMAXPS(v[12], v[1], v[1])
	VMINPS(v[1], v[2], v[1])
	VMULPS(v[13], v[12], v[14]) // free
	VMULPS(v[13], v[1], v[1])   // clipped
	VCMPPS(Imm(2), v[1], v[14], v[2])
	VMINPS(v[1], v[14], v[1])
	number("Mean", v[3])
	VMULPS(v[3], v[14], v[14])
	VANDPS(v[2], v[14], v[14])
	add("Surrogate", v[1])
	VMOVAPS(v[6], v[1])
	add("Entropy", v[1])

	VBROADCASTSS(float(1), v[2])
	VSUBPS(v[2], v[12], v[1]) // ratio - 1
	number("Penalty", v[3])
	VMINPS(float(math.MaxFloat32), v[1], v[4])
	VFNMADD231PS(v[3], v[4], v[14])
	VSUBPS(v[11], v[1], v[3])
	add("KL", v[3])
	add("LogRatio", v[11])
	VANDPS(bits(0x7fffffff), v[1], v[1])
	number("Clip", v[3])
	VCMPPS(Imm(1), v[1], v[3], v[3]) // clip < |ratio - 1|
	VANDPS(v[2], v[3], v[3])
	add("Clipped", v[3])
	VANDPS(v[10], v[1], v[1])
	VMAXPS(sum("Ratio"), v[1], v[1])
	VMOVUPS(v[1], sum("Ratio"))
}

// valueLoss replaces the values by their gradient. It clobbers v1 to v5 and v11 to v13.
func valueLoss(s isa, column func(string) Mem, number func(string, reg.VecPhysical), add func(string, reg.VecPhysical)) {
	v := s.v
	free, old, ret, change, bound, limited := v[1], v[2], v[3], v[4], v[5], v[11]
	VMOVUPS(column("oldValue"), old)
	VMOVUPS(column("ret"), ret)
	VMOVUPS(column("value"), free)
	VSUBPS(old, free, change)
	VSUBPS(ret, free, free)
	number("ValueClip", bound)
	VANDPS(bits(0x7fffffff), change, v[12])
	VCMPPS(Imm(1), v[12], bound, limited) // clip < |change|
	VMINPS(change, bound, v[12])
	VXORPS(bits(0x80000000), bound, bound)
	VMAXPS(v[12], bound, v[12])
	VADDPS(old, v[12], v[12])
	VSUBPS(ret, v[12], v[12])
	VMULPS(v[12], v[12], v[12])
	VMULPS(free, free, v[13])
	VCMPPS(Imm(1), v[12], v[13], change) // square < clipped square
	VANDPS(change, limited, limited)
	VBLENDVPS(limited, v[12], v[13], v[13])
	add("Value", v[13])
	number("ValueCoef", old)
	VMULPS(old, free, free)
	VANDNPS(free, limited, free)
	VMOVUPS(free, column("value"))
}

// logProbs turns the logits at x into log-probabilities, leaves the actions' in v7 and the entropies in v6. If kept,
// the probabilities are written to e.
func logProbs(s isa, start func(), column func(name string) Mem, x, e, n, ld reg.GPPhysical, kept bool) {
	v := s.v
	softmax(s, start, x, e, n, ld)
	s.log(v[0], v[1], v[2], v[3], v[4])
	// v0 log Σ, v6 entropy, v7 log π(a), v8 number of the action, v9 a
	VMOVDQU(column("action"), v[9])
	for _, i := range []int{6, 7, 8} {
		s.clear(v[i])
	}
	start()
	Label("entropy")
	VMOVUPS(Mem{Base: x}, v[1])
	VSUBPS(v[0], v[1], v[1])
	VMOVUPS(v[1], Mem{Base: x})
	VPCMPEQD(v[8], v[9], v[2])
	VBLENDVPS(v[2], v[1], v[7], v[7])
	VMOVAPS(v[1], v[2])
	s.exp(v[2], v[3], v[4], v[5])
	if kept {
		VMOVUPS(v[2], Mem{Base: e})
	}
	VFNMADD231PS(v[2], v[1], v[6])
	VPADDD(bits(1), v[8], v[8])
	nextAction("entropy", ld, x, e, n)
}
