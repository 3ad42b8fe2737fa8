package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tilesIn spreads tiles, a vector of channels at a time: along columns with four rows in registers, and each result along the row.
func tilesIn(s isa) {
	function("tilesIn"+s.name, "tilesInArgs")
	tiles, runs, bytes, tile, x, v := reg.RCX, reg.RDX, reg.RBX, reg.RAX, reg.RSI, reg.R8
	pixel, pixel3, row, part, part3, p, q := reg.R9, reg.R10, reg.R11, reg.R12, reg.R13, reg.R14, reg.R15
	load("tiles x v pixel row part", tiles, tile, v, pixel, row, part)
	LEAQ(Mem{Base: pixel, Index: pixel, Scale: 2}, pixel3)
	LEAQ(Mem{Base: part, Index: part, Scale: 2}, part3)
	first, second, w, t := s.v[0:], s.v[4:], s.v[8:], s.v[12:]
	// spread stores the parts of a row of w
	spread := func() {
		VSUBPS(w[2], w[0], t[0])
		VADDPS(w[2], w[1], t[1])
		VSUBPS(w[1], w[2], t[2])
		VSUBPS(w[1], w[3], t[3])
		four(q, part, part3, func(j int, m Mem) { VMOVUPS(t[j], m) })
	}
	Label("tile")
	MOVQ(tile, x)
	load("runs", runs)
	Label("run")
	load("bytes", bytes)
	Label("vector")
	LEAQ(Mem{Base: x, Index: row, Scale: 1}, p)
	four(p, pixel, pixel3, func(j int, m Mem) { VMOVUPS(m, first[j]) })
	LEAQ(Mem{Base: x, Index: row, Scale: 2}, p)
	four(p, pixel, pixel3, func(j int, m Mem) { VMOVUPS(m, second[j]) })
	four(x, pixel, pixel3, func(j int, m Mem) {
		VMOVUPS(m, w[j])
		VSUBPS(second[j], w[j], w[j])
	})
	MOVQ(v, q)
	spread()
	LEAQ(Mem{Base: q, Index: part, Scale: 4}, q)
	for j := range 4 {
		VADDPS(second[j], first[j], w[j])
	}
	spread()
	LEAQ(Mem{Base: q, Index: part, Scale: 4}, q)
	for j := range 4 {
		VSUBPS(first[j], second[j], w[j])
	}
	spread()
	LEAQ(Mem{Base: q, Index: part, Scale: 4}, q)
	ADDQ(row, p)
	four(p, pixel, pixel3, func(j int, m Mem) {
		VMOVUPS(m, w[j])
		VSUBPS(first[j], w[j], w[j])
	})
	spread()
	ADDQ(Imm(uint64(s.bytes)), x)
	ADDQ(Imm(uint64(s.bytes)), v)
	SUBQ(Imm(uint64(s.bytes)), bytes)
	JNZ(LabelRef("vector"))
	ADDQ(field("run"), x)
	DECQ(runs)
	JNZ(LabelRef("run"))
	ADDQ(field("step"), tile)
	DECQ(tiles)
	JNZ(LabelRef("tile"))
	finish()
}

// four visits four places, step apart; step3 is three of that.
func four(base, step, step3 reg.GPPhysical, visit func(i int, m Mem)) {
	visit(0, Mem{Base: base})
	visit(1, Mem{Base: base, Index: step, Scale: 1})
	visit(2, Mem{Base: base, Index: step, Scale: 2})
	visit(3, Mem{Base: base, Index: step3, Scale: 1})
}

// tilesOut gathers tiles, a vector of channels at a time: all columns into registers, then along the rows.
func tilesOut(s isa, taps int) {
	function(fmt.Sprintf("tilesOut%s_%d", s.name, taps), "tilesOutArgs")
	tiles, off, bytes, m, part, part4, part12 := reg.RCX, reg.RDX, reg.RBX, reg.RAX, reg.R8, reg.R9, reg.R10
	bias, out, pixel, row, p, q := reg.R11, reg.R12, reg.R13, reg.R14, reg.RSI, reg.R15
	load("tiles bytes m part bias out pixel row floor", tiles, bytes, m, part, bias, out, pixel, row, p)
	side := 5 - taps
	t, sum, floor := s.v[12], s.v[13], s.v[15]
	VBROADCASTSS(Mem{Base: p}, floor)
	MOVQ(part, part4)
	SHLQ(Imm(2), part4)
	LEAQ(Mem{Base: part4, Index: part4, Scale: 2}, part12)
	Label("tile")
	XORQ(off, off)
	Label("vector")
	MOVQ(m, p)
	z := func(i, j int) reg.VecPhysical { return s.v[4*i+j] }
	for j := range 4 {
		second := Mem{Base: p, Index: part4, Scale: 2}
		VMOVUPS(Mem{Base: p, Index: part4, Scale: 1}, t)
		VADDPS(second, t, sum)
		VSUBPS(second, t, z(1, j))
		VADDPS(Mem{Base: p}, sum, z(0, j))
		last := Mem{Base: p, Index: part12, Scale: 1}
		if taps == 2 {
			VADDPS(last, sum, z(2, j))
		} else {
			VADDPS(last, z(1, j), z(1, j))
		}
		if j < 3 {
			ADDQ(part, p)
		}
	}
	MOVQ(out, q)
	for i := range side {
		store := func(j int, y reg.VecPhysical) {
			VADDPS(Mem{Base: bias, Index: off, Scale: 1}, y, y)
			VMAXPS(y, floor, y)
			to := Mem{Base: q, Index: pixel, Scale: uint8(j)}
			if j == 0 {
				to = Mem{Base: q}
			}
			VMOVUPS(y, to)
		}
		VADDPS(z(i, 2), z(i, 1), sum)
		VSUBPS(z(i, 2), z(i, 1), z(i, 1))
		VADDPS(z(i, 0), sum, z(i, 0))
		store(0, z(i, 0))
		if taps == 2 {
			VADDPS(z(i, 3), sum, sum)
			store(1, z(i, 1))
			store(2, sum)
		} else {
			VADDPS(z(i, 3), z(i, 1), z(i, 1))
			store(1, z(i, 1))
		}
		if i < side-1 {
			ADDQ(row, q)
		}
	}
	ADDQ(Imm(uint64(s.bytes)), m)
	ADDQ(Imm(uint64(s.bytes)), out)
	ADDQ(Imm(uint64(s.bytes)), off)
	CMPQ(off, bytes)
	JLT(LabelRef("vector"))
	ADDQ(field("step"), out)
	DECQ(tiles)
	JNZ(LabelRef("tile"))
	finish()
}
