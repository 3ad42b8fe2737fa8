package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// overRows generates a loop over rows of x in place, 64 bytes of one row at a time, with h next to it if the
// activation is a derivative: that is regs[0]. regs are for apply to use, seven of them.
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
	half, zero, one := s.v[13], s.v[14], s.v[15]
	setup := func() {
		VBROADCASTSS(float(0.5), half)
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
	overRows(s, "gelu", false, nil, func(x, _ reg.VecPhysical, r []reg.VecPhysical) {
		s.normal(x, r[0], r[1], r[2], r[3])
		VMULPS(r[0], x, x)
	})
	overRows(s, "dgelu", true, nil, func(x, h reg.VecPhysical, r []reg.VecPhysical) {
		s.normal(h, r[1], r[2], r[3], r[4])
		VMULPS(h, h, r[2])
		s.pick(VMULPS, VMULPS_BCST)(float(-0.5), r[2], r[2])
		s.exp(r[2], r[3], r[4], r[5])
		s.pick(VMULPS, VMULPS_BCST)(float(0.39894228040143268), r[2], r[2])
		VFMADD231PS(h, r[2], r[1])
		VMULPS(r[1], x, x)
	})
	overRows(s, "silu", false, setup, func(x, _ reg.VecPhysical, r []reg.VecPhysical) {
		VMOVAPS(x, r[0])
		s.sigmoid(r[0], half, r[1:])
		VMULPS(r[0], x, x)
	})
	overRows(s, "dsilu", true, setup, func(x, h reg.VecPhysical, r []reg.VecPhysical) {
		VMOVAPS(h, r[1])
		s.sigmoid(r[1], half, r[2:])
		VSUBPS(r[1], one, r[2])
		VFMADD213PS(one, h, r[2])
		VMULPS(r[2], r[1], r[1])
		VMULPS(r[1], x, x)
	})
}
