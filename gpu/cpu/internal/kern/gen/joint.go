package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// normalWeigh adds log-probabilities and entropies of Gaussian elements, eight rows at a time.
func normalWeigh() {
	function("normalWeigh", "normalArgs")
	s := avx2
	v := s.v
	mean, log, raw, next := normalColumns()
	addTo := func(name string, x reg.VecPhysical) {
		load(name, reg.R15)
		at := Mem{Base: reg.R15, Index: reg.R8, Scale: 1}
		VADDPS(at, x, x)
		VMOVUPS(x, at)
	}
	Label("group")
	s.clear(v[6]) // log-probability
	s.clear(v[7]) // entropy
	normalStart()
	Label("element")
	VMOVUPS(Mem{Base: log}, v[1])
	VXORPS(bits(0x80000000), v[1], v[2])
	s.exp(v[2], v[3], v[4], v[5])
	VMOVUPS(Mem{Base: raw}, v[3])
	VSUBPS(Mem{Base: mean}, v[3], v[4])
	VMULPS(v[2], v[4], v[4]) // z
	VMULPS(float(0.5), v[4], v[5])
	VMULPS(v[4], v[5], v[5])
	VADDPS(float(0.918938533204672742), v[1], v[8])
	VADDPS(v[8], v[5], v[5])
	VSUBPS(v[5], v[6], v[6])
	VADDPS(float(1.418938533204672742), v[1], v[8])
	VADDPS(v[8], v[7], v[7])
	CMPQ(field("tanh"), Imm(0))
	JE(LabelRef("next"))
	VANDPS(bits(0x7fffffff), v[3], v[9])
	VMULPS(float(-2), v[9], v[9])
	s.exp(v[9], v[10], v[11], v[12])
	VADDPS(float(1), v[9], v[9])
	s.log(v[9], v[10], v[11], v[12], v[13])
	VMULPS(float(-2), v[3], v[10])
	VMAXPS(float(0), v[10], v[10])
	VADDPS(v[10], v[9], v[9]) // softplus(-2x)
	VBROADCASTSS(float(0.693147180559945309), v[11])
	VSUBPS(v[3], v[11], v[11])
	VSUBPS(v[9], v[11], v[11])
	VADDPS(v[11], v[11], v[11])
	VSUBPS(v[11], v[6], v[6])
	Label("next")
	next("element")
	CMPQ(field("tanh"), Imm(0))
	JE(LabelRef("add"))
	VXORPS(bits(0x80000000), v[6], v[7])
	Label("add")
	addTo("logProb", v[6])
	addTo("entropy", v[7])
	normalRows("group")
}

// normalDescend replaces means and logarithms by their gradient.
func normalDescend() {
	function("normalDescend", "normalArgs")
	s := avx2
	v := s.v
	mean, log, raw, next := normalColumns()
	load("numbers", reg.R15)
	VBROADCASTSS(Mem{Base: reg.R15}, v[7])
	Label("group")
	load("slope", reg.R15)
	VMOVUPS(Mem{Base: reg.R15, Index: reg.R8, Scale: 1}, v[6])
	load("weight", reg.R15)
	VMOVUPS(Mem{Base: reg.R15, Index: reg.R8, Scale: 1}, v[11])
	normalStart()
	Label("element")
	VMOVUPS(Mem{Base: log}, v[1])
	VXORPS(bits(0x80000000), v[1], v[2])
	s.exp(v[2], v[3], v[4], v[5])
	VMOVUPS(Mem{Base: raw}, v[9])
	VSUBPS(Mem{Base: mean}, v[9], v[10])
	VMULPS(v[2], v[10], v[3]) // z
	VMULPS(v[3], v[6], v[4])
	VMULPS(v[2], v[4], v[4])
	VXORPS(bits(0x80000000), v[4], v[4])
	VMULPS(v[3], v[3], v[5])
	VBROADCASTSS(float(1), v[8])
	VSUBPS(v[5], v[8], v[5])
	VMULPS(v[6], v[5], v[5])
	VMOVAPS(v[7], v[8])
	CMPQ(field("tanh"), Imm(0))
	JE(LabelRef("store"))
	s.tanh(v[9], v[1], v[2], v[3])
	VMULPS(v[11], v[7], v[8])
	VMULPS(v[8], v[9], v[9])
	VADDPS(v[9], v[9], v[9])
	VADDPS(v[9], v[4], v[4])
	VMULPS(v[10], v[9], v[9])
	VADDPS(v[9], v[5], v[5])
	Label("store")
	VMOVUPS(v[4], Mem{Base: mean})
	VSUBPS(v[8], v[5], v[5])
	VMOVUPS(v[5], Mem{Base: log})
	next("element")
	normalRows("group")
}

// normalColumns prepares the loops over groups of rows and elements. R8 is the byte offset of the group in columns.
func normalColumns() (mean, log, raw reg.GPPhysical, next func(label string)) {
	mean, log, raw = reg.RAX, reg.RBX, reg.R9
	load("rows ld rawLD", reg.RCX, reg.RSI, reg.R10)
	XORQ(reg.R8, reg.R8)
	return mean, log, raw, func(label string) {
		ADDQ(reg.RSI, mean)
		ADDQ(reg.RSI, log)
		ADDQ(reg.R10, raw)
		DECQ(reg.RDX)
		JNZ(LabelRef(label))
	}
}

// normalStart aims at the first element of a group of rows.
func normalStart() {
	load("mean log raw n", reg.RAX, reg.RBX, reg.R9, reg.RDX)
	for _, p := range []reg.GPPhysical{reg.RAX, reg.RBX, reg.R9} {
		ADDQ(reg.R8, p)
	}
}

// normalRows ends a group.
func normalRows(label string) {
	ADDQ(Imm(32), reg.R8)
	SUBQ(Imm(8), reg.RCX)
	JG(LabelRef(label))
	finish()
}

// choiceWeigh adds the log-probabilities and entropies of a categorical element, eight rows at a time.
func choiceWeigh() {
	function("choiceWeigh", "choiceArgs")
	s := avx2
	v := s.v
	rows, n, x, e, ld, row := reg.RCX, reg.RDX, reg.RAX, reg.RBX, reg.RSI, reg.R8
	logits, scratch, p := reg.R9, reg.R10, reg.R13
	load("rows logits ld scratch", rows, logits, ld, scratch)
	XORQ(row, row)
	start := func() { MOVQ(logits, x); MOVQ(scratch, e); load("actions", n) }
	column := func(name string) Mem { load(name, p); return Mem{Base: p, Index: row, Scale: 1} }
	Label("group")
	logProbs(s, start, column, x, e, n, ld, false)
	VMOVUPS(v[6], column("own"))
	for _, c := range []struct {
		name string
		x    reg.VecPhysical
	}{{"logProb", v[7]}, {"entropy", v[6]}} {
		VADDPS(column(c.name), c.x, c.x)
		VMOVUPS(c.x, column(c.name))
	}
	choiceRows(row, logits, rows)
}

// choiceDescend replaces log-probabilities by the gradient of the logits.
func choiceDescend() {
	function("choiceDescend", "choiceArgs")
	s := avx2
	v := s.v
	rows, n, x, ld, row := reg.RCX, reg.RDX, reg.RAX, reg.RSI, reg.R8
	logits, p := reg.R9, reg.R13
	load("rows logits ld numbers", rows, logits, ld, p)
	VBROADCASTSS(Mem{Base: p}, v[1])
	XORQ(row, row)
	column := func(name string) Mem { load(name, p); return Mem{Base: p, Index: row, Scale: 1} }
	Label("group")
	VMOVDQU(column("action"), v[9])
	VMOVUPS(column("own"), v[6])
	VMOVUPS(column("slope"), v[14])
	s.clear(v[8])
	MOVQ(logits, x)
	load("actions", n)
	Label("gradient")
	VMOVUPS(Mem{Base: x}, v[3])
	VADDPS(v[3], v[6], v[2])
	s.exp(v[3], v[4], v[5], v[7])
	VMULPS(v[1], v[2], v[2])
	VADDPS(v[14], v[2], v[2])
	VMULPS(v[3], v[2], v[2])
	VPCMPEQD(v[8], v[9], v[3])
	VANDPS(v[14], v[3], v[3])
	VSUBPS(v[3], v[2], v[2])
	VMOVUPS(v[2], Mem{Base: x})
	VPADDD(bits(1), v[8], v[8])
	ADDQ(ld, x)
	DECQ(n)
	JNZ(LabelRef("gradient"))
	choiceRows(row, logits, rows)
}

func choiceRows(row, logits, rows reg.GPPhysical) {
	ADDQ(Imm(32), row)
	ADDQ(Imm(32), logits)
	SUBQ(Imm(8), rows)
	JG(LabelRef("group"))
	finish()
}

// surrogates is loss without the softmax: log-probabilities and entropies are given, the slopes are written and the ratios in
// the place of the entropies.
func surrogates() {
	function("surrogates", "surrogateArgs")
	s := avx2
	v := s.v
	rows, row, sums, numbers, p := reg.RCX, reg.R8, reg.R11, reg.R12, reg.R13
	load("rows sums numbers", rows, sums, numbers)
	XORQ(row, row)
	column := func(name string) Mem { load(name, p); return Mem{Base: p, Index: row, Scale: 1} }
	number := func(name string, to reg.VecPhysical) {
		VBROADCASTSS(Mem{Base: numbers, Disp: 4 * (index("Loss", name) - index("Loss", "Low"))}, to)
	}
	add := func(name string, x reg.VecPhysical) { // x is clobbered
		VANDPS(v[10], x, x)
		VADDPS(sum(name), x, x)
		VMOVUPS(x, sum(name))
	}
	Label("group")
	MOVQ(rows, reg.X10)
	VPBROADCASTD(reg.X10, v[10])
	VPCMPGTD(lanes(), v[10], v[10])
	VMOVUPS(column("newLogProb"), v[7])
	VMOVUPS(column("entropies"), v[6])
	VSUBPS(column("oldLogProb"), v[7], v[11])
	VMOVAPS(v[11], v[12])
	s.exp(v[12], v[1], v[2], v[3])
	VMOVUPS(column("advantage"), v[13])
	surrogate(s, number, add)
	VMOVUPS(v[14], column("slope"))
	number("High", v[1])
	VMINPS(v[12], v[1], v[1])
	VMOVUPS(v[1], column("entropies"))
	valueLoss(s, column, number, add)
	ADDQ(Imm(32), row)
	SUBQ(Imm(8), rows)
	JG(LabelRef("group"))
	finish()
}
