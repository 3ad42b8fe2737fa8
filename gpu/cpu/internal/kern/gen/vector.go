package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func adam() {
	function("adam", "adamArgs")
	s := avx2
	n, params, m, v, grad, numbers, i := reg.RCX, reg.RAX, reg.RBX, reg.RDX, reg.RSI, reg.R8, reg.R9
	load("bytes params m v grad numbers", n, params, m, v, grad, numbers)
	for j := range 8 {
		VBROADCASTSS(Mem{Base: numbers, Disp: 4 * j}, s.v[8+j])
	}
	number := func(name string) reg.VecPhysical { return s.v[8+index("Adam", name)-index("Adam", "Rate")] }
	XORQ(i, i)
	Label("loop")
	for u := range 2 {
		r := s.v[4*u:]
		mem := func(base reg.GPPhysical) Mem { return Mem{Base: base, Index: i, Scale: 1, Disp: 32 * u} }
		VMOVUPS(mem(grad), r[0])
		VMULPS(number("Scale"), r[0], r[0])
		VMULPS(mem(m), number("Beta1"), r[1])
		VFMADD231PS(number("Keep1"), r[0], r[1])
		VMOVUPS(r[1], mem(m))
		VMULPS(r[0], r[0], r[0])
		VMULPS(mem(v), number("Beta2"), r[2])
		VFMADD231PS(number("Keep2"), r[0], r[2])
		VMOVUPS(r[2], mem(v))
		VSQRTPS(r[2], r[2])
		VFMADD213PS(number("Eps"), number("Correct2"), r[2])
		VDIVPS(r[2], r[1], r[1])
		VMOVUPS(mem(params), r[3])
		VFNMADD231PS(number("Rate"), r[1], r[3])
		VMOVUPS(r[3], mem(params))
	}
	ADDQ(Imm(64), i)
	CMPQ(i, n)
	JLT(LabelRef("loop"))
	finish()
}

func sumSquares() {
	function("sumSquares", "sumArgs")
	s := avx2
	n, x := reg.RCX, reg.RAX
	load("bytes x", n, x)
	for i := range 8 {
		s.clear(s.v[i])
	}
	Label("four")
	CMPQ(n, U32(256))
	JLT(LabelRef("one"))
	for i := range 8 {
		VMOVUPS(Mem{Base: x, Disp: 32 * i}, s.v[8+i])
		VFMADD231PS(s.v[8+i], s.v[8+i], s.v[i])
	}
	ADDQ(U32(256), x)
	SUBQ(U32(256), n)
	JMP(LabelRef("four"))
	Label("one")
	TESTQ(n, n)
	JZ(LabelRef("reduce"))
	for i := range 2 {
		VMOVUPS(Mem{Base: x, Disp: 32 * i}, s.v[8+i])
		VFMADD231PS(s.v[8+i], s.v[8+i], s.v[i])
	}
	ADDQ(Imm(64), x)
	SUBQ(Imm(64), n)
	JMP(LabelRef("one"))
	Label("reduce")
	for width := 4; width > 0; width /= 2 {
		for i := range width {
			VADDPS(s.v[i+width], s.v[i], s.v[i])
		}
	}
	VEXTRACTF128(Imm(1), s.v[0], reg.X1)
	VADDPS(reg.X1, reg.X0, reg.X0)
	VHADDPS(reg.X0, reg.X0, reg.X0)
	VHADDPS(reg.X0, reg.X0, reg.X0)
	MOVQ(field("result"), x)
	VMOVSS(reg.X0, Mem{Base: x})
	finish()
}

// columnSums adds the rows to out, 64 bytes of columns at a time and over even and odd rows apart.
func columnSums() {
	function("columnSums", "columnsArgs")
	s := avx2
	rows, n, x, xRow, out, p := reg.RCX, reg.RDX, reg.RAX, reg.RBX, reg.RSI, reg.R8
	load("bytes x xRow out", n, x, xRow, out)
	Label("columns")
	MOVQ(x, p)
	MOVQ(field("rows"), rows)
	for i := range 4 {
		s.clear(s.v[i])
	}
	Label("two")
	CMPQ(rows, Imm(2))
	JLT(LabelRef("one"))
	for i := range 2 {
		VADDPS(Mem{Base: p, Disp: 32 * i}, s.v[i], s.v[i])
		VADDPS(Mem{Base: p, Index: xRow, Scale: 1, Disp: 32 * i}, s.v[2+i], s.v[2+i])
	}
	LEAQ(Mem{Base: p, Index: xRow, Scale: 2}, p)
	SUBQ(Imm(2), rows)
	JMP(LabelRef("two"))
	Label("one")
	TESTQ(rows, rows)
	JZ(LabelRef("store"))
	for i := range 2 {
		VADDPS(Mem{Base: p, Disp: 32 * i}, s.v[i], s.v[i])
	}
	Label("store")
	for i := range 2 {
		VADDPS(s.v[2+i], s.v[i], s.v[i])
		VADDPS(Mem{Base: out, Disp: 32 * i}, s.v[i], s.v[i])
		VMOVUPS(s.v[i], Mem{Base: out, Disp: 32 * i})
	}
	ADDQ(Imm(64), x)
	ADDQ(Imm(64), out)
	SUBQ(Imm(64), n)
	JNZ(LabelRef("columns"))
	finish()
}

// transpose turns blocks of 16×16 floats, each dense, that follow one another in from.
func transpose() {
	function("transpose", "transposeArgs")
	v := avx2.v
	n, from, to, step := reg.RCX, reg.RAX, reg.RBX, reg.RDX
	load("blocks from to toBlock", n, from, to, step)
	Label("block")
	for r := range 2 {
		for c := range 2 {
			transpose8(v, Mem{Base: from, Disp: r*512 + c*32}, Mem{Base: to, Disp: c*512 + r*32})
		}
	}
	ADDQ(U32(1024), from)
	ADDQ(step, to)
	DECQ(n)
	JNZ(LabelRef("block"))
	finish()
}

// transpose8 turns 8×8 floats; rows are 64 bytes apart on both sides.
func transpose8(v []reg.VecPhysical, from, to Mem) {
	for i := range 4 { // rows i and i+4 share a register, by halves of their columns
		VMOVUPS(at(from, 64*i), v[i].(reg.Vec).AsX())
		VINSERTF128(Imm(1), at(from, 64*(i+4)), v[i], v[i])
		VMOVUPS(at(from, 64*i+16), v[4+i].(reg.Vec).AsX())
		VINSERTF128(Imm(1), at(from, 64*(i+4)+16), v[4+i], v[4+i])
	}
	for half := range 2 {
		r := v[4*half:]
		VUNPCKLPS(r[1], r[0], v[8])
		VUNPCKHPS(r[1], r[0], v[9])
		VUNPCKLPS(r[3], r[2], v[10])
		VUNPCKHPS(r[3], r[2], v[11])
		VUNPCKLPD(v[10], v[8], v[12])
		VUNPCKHPD(v[10], v[8], v[13])
		VUNPCKLPD(v[11], v[9], v[14])
		VUNPCKHPD(v[11], v[9], v[15])
		for i := range 4 {
			VMOVUPS(v[12+i], at(to, 64*(4*half+i)))
		}
	}
}
