package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// overRows generates a loop over rows of x in place, 64 bytes of one row at a time, with h beside it if the
// activation is a derivative. regs are for apply to use.
func overRows(s isa, name string, derivative bool, setup func(),
	apply func(x, h reg.VecPhysical, regs []reg.VecPhysical)) {
	function(name+s.name, "rowsArgs")
	rows, n, x, h, end := reg.RCX, reg.RDX, reg.RAX, reg.RBX, reg.RSI
	xRow, hRow := reg.R8, reg.R9
	load("rows x xRow", rows, x, xRow)
	if derivative {
		load("h hRow", h, hRow)
	}
	if setup != nil {
		setup()
	}
	MOVQ(field("bytes"), end)
	Label("row")
	XORQ(n, n)
	Label("column")
	for v := range 64 / s.bytes {
		regs := s.v[v*4+2:]
		VMOVUPS(Mem{Base: x, Index: n, Scale: 1, Disp: v * s.bytes}, s.v[v])
		if derivative {
			VMOVUPS(Mem{Base: h, Index: n, Scale: 1, Disp: v * s.bytes}, regs[0])
		}
		apply(s.v[v], regs[0], regs)
		VMOVUPS(s.v[v], Mem{Base: x, Index: n, Scale: 1, Disp: v * s.bytes})
	}
	ADDQ(Imm(64), n)
	CMPQ(n, end)
	JLT(LabelRef("column"))
	ADDQ(xRow, x)
	if derivative {
		ADDQ(hRow, h)
	}
	DECQ(rows)
	JNZ(LabelRef("row"))
	finish()
}

func activations(s isa) {
	zero, one := s.v[14], s.v[15]
	setup := func() {
		s.clear(zero)
		VBROADCASTSS(float(1), one)
	}
	overRows(s, "tanh", false, nil, func(x, _ reg.VecPhysical, r []reg.VecPhysical) { s.tanh(x, r[0], r[1], r[2]) })
	overRows(s, "relu", false, setup, func(x, _ reg.VecPhysical, _ []reg.VecPhysical) { VMAXPS(x, zero, x) })
	overRows(s, "elu", false, setup, func(x, _ reg.VecPhysical, r []reg.VecPhysical) {
		VMOVAPS(x, r[3])
		s.exp(x, r[0], r[1], r[2])
		VSUBPS(one, x, x)
		if s.wide() {
			VCMPPS(Imm(1), r[3], zero, reg.K2) // 0 < x
			VMOVAPS(r[3], reg.K2, x)
			return
		}
		VCMPPS(Imm(1), r[3], zero, r[0])
		VBLENDVPS(r[0], r[3], x, x)
	})
	overRows(s, "drelu", true, setup, func(x, h reg.VecPhysical, _ []reg.VecPhysical) {
		if s.wide() {
			VCMPPS(Imm(1), h, zero, reg.K2)
			VMOVAPS_Z(x, reg.K2, x)
			return
		}
		VCMPPS(Imm(1), h, zero, h)
		VANDPS(h, x, x)
	})
	overRows(s, "delu", true, setup, func(x, h reg.VecPhysical, _ []reg.VecPhysical) {
		VMINPS(zero, h, h)
		VADDPS(one, h, h)
		VMULPS(h, x, x)
	})
}
