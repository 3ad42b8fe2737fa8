package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// widen turns bytes into floats, eight at a time.
func widen() {
	function("widen", "widenArgs")
	v := avx2.v
	rows, n, from, fromRow, to, toRow, i := reg.RCX, reg.RDX, reg.RAX, reg.RBX, reg.RSI, reg.R8, reg.R9
	load("rows n from fromRow to toRow scale", rows, n, from, fromRow, to, toRow, i)
	VBROADCASTSS(Mem{Base: i}, v[1])
	Label("row")
	XORQ(i, i)
	Label("column")
	VPMOVZXBD(Mem{Base: from, Index: i, Scale: 1}, v[0])
	VCVTDQ2PS(v[0], v[0])
	VMULPS(v[1], v[0], v[0])
	VMOVUPS(v[0], Mem{Base: to, Index: i, Scale: 4})
	ADDQ(Imm(8), i)
	CMPQ(i, n)
	JLT(LabelRef("column"))
	ADDQ(fromRow, from)
	ADDQ(toRow, to)
	DECQ(rows)
	JNZ(LabelRef("row"))
	finish()
}

// windows generates a loop over the places of a pool, eight channels at a time: begin, then element for each of the
// window with its place from x on, then end.
func windows(name string, begin func(out Mem), element func(x reg.GPPhysical), end func(out Mem), more ...reg.GPPhysical) {
	function(name, "poolArgs")
	places, channel, x, out, a, b, row, at := reg.RCX, reg.RDX, reg.RAX, reg.RBX, reg.R8, reg.R9, reg.R10, reg.R11
	bytes, xRow := reg.R12, reg.R13
	load("places x out bytes xRow", places, x, out, bytes, xRow)
	if len(more) > 0 {
		load("d dx", more...)
		SUBQ(out, more[0]) // from Out to D
		SUBQ(x, more[1])   // from X to DX
	}
	Label("place")
	XORQ(channel, channel)
	Label("channel")
	begin(Mem{Base: out})
	LEAQ(Mem{Base: x, Index: channel, Scale: 1}, row)
	MOVQ(field("high"), a)
	Label("high")
	MOVQ(row, at)
	MOVQ(field("wide"), b)
	Label("wide")
	element(at)
	ADDQ(bytes, at)
	DECQ(b)
	JNZ(LabelRef("wide"))
	ADDQ(xRow, row)
	DECQ(a)
	JNZ(LabelRef("high"))
	end(Mem{Base: out})
	ADDQ(Imm(32), out)
	ADDQ(Imm(32), channel)
	CMPQ(channel, bytes)
	JLT(LabelRef("channel"))
	ADDQ(field("step"), x)
	DECQ(places)
	JNZ(LabelRef("place"))
	finish()
}

// pool keeps the largest element in v0 and NaN in v1.
func pool() {
	v := avx2.v
	windows("pool", func(Mem) {
		VBROADCASTSS(float(math.Inf(-1)), v[0])
		avx2.clear(v[1])
	}, func(x reg.GPPhysical) {
		VMOVUPS(Mem{Base: x}, v[2])
		VMAXPS(v[2], v[0], v[0])
		VCMPPS(Imm(3), v[2], v[2], v[2]) // unordered
		VORPS(v[2], v[1], v[1])
	}, func(out Mem) {
		VORPS(v[1], v[0], v[0])
		VMOVUPS(v[0], out)
	})
}

// poolBack has the output in v0, its gradient in v1 and in v2 the windows whose largest element has not been found.
func poolBack() {
	v := avx2.v
	d, dx := reg.R14, reg.R15
	windows("poolBack", func(out Mem) {
		VMOVUPS(out, v[0])
		VMOVUPS(Mem{Base: out.Base, Index: d, Scale: 1}, v[1])
		VPCMPEQD(v[2], v[2], v[2])
	}, func(x reg.GPPhysical) {
		VCMPPS(Imm(0), Mem{Base: x}, v[0], v[3])
		VANDPS(v[2], v[3], v[4])
		VPANDN(v[2], v[3], v[2])
		VANDPS(v[1], v[4], v[4])
		to := Mem{Base: x, Index: dx, Scale: 1}
		VADDPS(to, v[4], v[4])
		VMOVUPS(v[4], to)
	}, func(Mem) {}, d, dx)
}
