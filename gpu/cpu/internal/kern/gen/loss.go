package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Fields of lossArgs in package kern.
const (
	lossRows = iota
	lossActions
	lossLogits
	lossLD
	lossScratch
	lossAction
	lossOldLogProb
	lossOldValue
	lossAdvantage
	lossReturn
	lossNewLogProb
	lossValue
	lossSums    // *LossSums
	lossNumbers // *Loss.Low and the numbers behind it
)

// Numbers of Loss, in order.
const (
	numberLow = iota
	numberHigh
	numberClip
	numberMean
	numberEntropy
	numberValueCoef
	numberValueClip
)

// Sums of LossSums, in order.
const (
	sumSurrogate = iota
	sumValue
	sumEntropy
	sumKL
	sumLogRatio
	sumClipped
	sumRatio
)

// loss generates the PPO loss and its gradient for eight rows at a time. Rows behind the last one are computed
// with what lies there, and kept out of the sums.
func loss() {
	function("loss")
	s := avx2
	v := s.v
	rows, n, x, e, ld, row := reg.RCX, reg.RDX, reg.RAX, reg.RBX, reg.RSI, reg.R8
	logits, scratch, sums, numbers := reg.R9, reg.R10, reg.R11, reg.R12
	p := reg.R13
	MOVQ(field(lossRows), rows)
	MOVQ(field(lossLogits), logits)
	MOVQ(field(lossLD), ld)
	MOVQ(field(lossScratch), scratch)
	MOVQ(field(lossSums), sums)
	MOVQ(field(lossNumbers), numbers)
	XORQ(row, row) // byte offset into the columns
	start := func() { MOVQ(logits, x); MOVQ(scratch, e); MOVQ(field(lossActions), n) }
	column := func(i int) Mem { MOVQ(field(i), p); return Mem{Base: p, Index: row, Scale: 1} }
	number := func(i int, to reg.VecPhysical) { VBROADCASTSS(Mem{Base: numbers, Disp: 4 * i}, to) }
	Label("group")
	softmax(s, start, x, e, n, ld)
	s.log(v[0], v[1], v[2], v[3], v[4])
	// v0 log Σ, v6 entropy, v7 log π(a), v8 number of the action, v9 a
	VMOVDQU(column(lossAction), v[9])
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
	VMOVUPS(v[2], Mem{Base: e})
	VFNMADD231PS(v[2], v[1], v[6])
	VPADDD(bits(1), v[8], v[8])
	ADDQ(ld, x)
	ADDQ(Imm(32), e)
	DECQ(n)
	JNZ(LabelRef("entropy"))
	VMOVUPS(v[7], column(lossNewLogProb))
	// v10 rows that count, v11 log ratio, v12 ratio, v13 advantage
	MOVQ(rows, reg.X10)
	VPBROADCASTD(reg.X10, v[10])
	VPCMPGTD(lanes(), v[10], v[10])
	VSUBPS(column(lossOldLogProb), v[7], v[11])
	VMOVAPS(v[11], v[12])
	s.exp(v[12], v[1], v[2], v[3])
	VMOVUPS(column(lossAdvantage), v[13])
	add := func(i int, x reg.VecPhysical) { // x is clobbered
		VANDPS(v[10], x, x)
		VADDPS(Mem{Base: sums, Disp: 32 * i}, x, x)
		VMOVUPS(x, Mem{Base: sums, Disp: 32 * i})
	}
	surrogate(s, number, add)
	valueLoss(s, column, number, add)
	// the gradient: (entropy coefficient · (log p + H) + slope - [a = j] slope / p) · p; v14 slope
	number(numberEntropy, v[1])
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
	ADDQ(ld, x)
	ADDQ(Imm(32), e)
	DECQ(n)
	JNZ(LabelRef("gradient"))
	ADDQ(Imm(32), row)
	ADDQ(Imm(32), logits)
	SUBQ(Imm(8), rows)
	JG(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// surrogate takes v11 log ratio, v12 ratio, v13 advantage; it leaves the slope over log π(a) in v14.
func surrogate(s isa, number func(int, reg.VecPhysical), add func(int, reg.VecPhysical)) {
	v := s.v
	number(numberLow, v[1])
	number(numberHigh, v[2])
	VMAXPS(v[12], v[1], v[1])
	VMINPS(v[1], v[2], v[1])
	VMULPS(v[13], v[12], v[14]) // free
	VMULPS(v[13], v[1], v[1])   // clipped
	VCMPPS(Imm(2), v[1], v[14], v[2])
	VMINPS(v[1], v[14], v[1])
	number(numberMean, v[3])
	VMULPS(v[3], v[14], v[14])
	VANDPS(v[2], v[14], v[14])
	add(sumSurrogate, v[1])
	VMOVAPS(v[6], v[1])
	add(sumEntropy, v[1])

	VMOVUPS(float(1), v[2])
	VSUBPS(v[2], v[12], v[1]) // ratio - 1
	VSUBPS(v[11], v[1], v[3])
	add(sumKL, v[3])
	add(sumLogRatio, v[11])
	VANDPS(bits(0x7fffffff), v[1], v[1])
	number(numberClip, v[3])
	VCMPPS(Imm(1), v[1], v[3], v[3]) // clip < |ratio - 1|
	VANDPS(v[2], v[3], v[3])
	add(sumClipped, v[3])
	VANDPS(v[10], v[1], v[1])
	VMAXPS(Mem{Base: reg.R11, Disp: 32 * sumRatio}, v[1], v[1])
	VMOVUPS(v[1], Mem{Base: reg.R11, Disp: 32 * sumRatio})
}

// valueLoss replaces the values by their gradient. It clobbers v1 to v5 and v11 to v13.
func valueLoss(s isa, column func(int) Mem, number func(int, reg.VecPhysical), add func(int, reg.VecPhysical)) {
	v := s.v
	free, old, ret, change, bound, limited := v[1], v[2], v[3], v[4], v[5], v[11]
	VMOVUPS(column(lossOldValue), old)
	VMOVUPS(column(lossReturn), ret)
	VMOVUPS(column(lossValue), free)
	VSUBPS(old, free, change)
	VSUBPS(ret, free, free)
	number(numberValueClip, bound)
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
	add(sumValue, v[13])
	number(numberValueCoef, old)
	VMULPS(old, free, free)
	VANDNPS(free, limited, free)
	VMOVUPS(free, column(lossValue))
}
