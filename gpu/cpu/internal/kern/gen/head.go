package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// head8 and head1 generate one output of a linear head for every row: eight rows at a time, and one at a time. Both sum
// over k in eight lanes, then ((0+1)+(2+3)) + ((4+5)+(6+7)), then the bias, so that a row does not know its function.
func head8() {
	function("head8", "headArgs")
	s := avx2
	rows, k, x, x7, w, out := reg.RCX, reg.RDX, reg.RAX, reg.RBX, reg.R9, reg.R10
	xs, wk := reg.R12, reg.R13
	row := strides{reg.RSI, reg.R8, reg.R11}
	load("rows x w out", rows, xs, w, out)
	row.load(field("xRow"))
	load("bias", reg.R14)
	VBROADCASTSS(Mem{Base: reg.R14}, s.v[15])
	Label("rows")
	for i := range 8 {
		s.clear(s.v[i])
	}
	MOVQ(xs, x)
	row.seven(x, x7)
	MOVQ(w, wk)
	MOVQ(field("k"), k)
	Label("k")
	VMOVUPS(Mem{Base: wk}, s.v[8])
	for i := range 8 {
		VFMADD231PS(row.row(x, x7, i), s.v[8], s.v[i])
	}
	ADDQ(Imm(32), x)
	ADDQ(Imm(32), x7)
	ADDQ(Imm(32), wk)
	SUBQ(Imm(8), k)
	JNZ(LabelRef("k"))
	for i := 0; i < 8; i += 2 {
		VHADDPS(s.v[i+1], s.v[i], s.v[i])
	}
	VHADDPS(s.v[2], s.v[0], s.v[0])
	VHADDPS(s.v[6], s.v[4], s.v[4])
	VPERM2F128(Imm(0x20), s.v[4], s.v[0], s.v[1])
	VPERM2F128(Imm(0x31), s.v[4], s.v[0], s.v[2])
	VADDPS(s.v[2], s.v[1], s.v[1])
	VADDPS(s.v[15], s.v[1], s.v[1])
	VMOVUPS(s.v[1], Mem{Base: out})
	ADDQ(Imm(32), out)
	LEAQ(Mem{Base: xs, Index: row.one, Scale: 8}, xs)
	SUBQ(Imm(8), rows)
	JNZ(LabelRef("rows"))
	finish()
}

func head1() {
	function("head1", "headArgs")
	s := avx2
	rows, k, x, w, out, xs, xRow := reg.RCX, reg.RDX, reg.RAX, reg.R9, reg.R10, reg.R12, reg.RSI
	load("rows x xRow out bias", rows, xs, xRow, out, reg.R14)
	VMOVSS(Mem{Base: reg.R14}, reg.X3)
	Label("rows")
	s.clear(s.v[0])
	MOVQ(xs, x)
	load("w k", w, k)
	Label("k")
	VMOVUPS(Mem{Base: w}, s.v[1])
	VFMADD231PS(Mem{Base: x}, s.v[1], s.v[0])
	ADDQ(Imm(32), x)
	ADDQ(Imm(32), w)
	SUBQ(Imm(8), k)
	JNZ(LabelRef("k"))
	VHADDPS(s.v[0], s.v[0], s.v[0])
	VHADDPS(s.v[0], s.v[0], s.v[0])
	VEXTRACTF128(Imm(1), s.v[0], reg.X1)
	VADDSS(reg.X1, reg.X0, reg.X0)
	VADDSS(reg.X3, reg.X0, reg.X0)
	VMOVSS(reg.X0, Mem{Base: out})
	ADDQ(Imm(4), out)
	ADDQ(xRow, xs)
	DECQ(rows)
	JNZ(LabelRef("rows"))
	finish()
}
