package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// cell generates the loops of a recurrent cell over rows and, within a row, over vectors of each gate. All pointers are at
// the same vector of their rows.
type cell struct {
	isa
	x, s, h, out, d, dh reg.GPPhysical
	one, three          reg.GPPhysical // bytes of a gate and of three
	half, unit          reg.VecPhysical
}

// newCell begins a function over the pointers of the named fields, and runs body for each vector.
func newCell(s isa, name string, pointers string, body func(c cell)) {
	function(name+s.name, "cellArgs")
	c := cell{isa: s, x: reg.RAX, s: reg.RBX, h: reg.RSI, out: reg.R8, d: reg.R9, dh: reg.R10, one: reg.RDX, three: reg.R11,
		half: s.v[14], unit: s.v[15]}
	at := map[string]reg.GPPhysical{"x": c.x, "s": c.s, "h": c.h, "out": c.out, "d": c.d, "dh": c.dh}
	names := strings.Fields(pointers)
	for _, p := range names {
		load(p, at[p])
	}
	load("bytes", c.one)
	LEAQ(Mem{Base: c.one, Index: c.one, Scale: 2}, c.three)
	VBROADCASTSS(float(0.5), c.half)
	VBROADCASTSS(float(1), c.unit)
	rows, left := reg.RCX, reg.R12
	load("rows", rows)
	Label("row")
	MOVQ(c.one, left)
	Label("vector")
	body(c)
	for _, p := range names {
		ADDQ(Imm(uint64(c.bytes)), at[p])
	}
	SUBQ(Imm(uint64(c.bytes)), left)
	JNZ(LabelRef("vector"))
	for _, p := range names {
		ADDQ(field(p+"Next"), at[p])
	}
	DECQ(rows)
	JNZ(LabelRef("row"))
	finish()
}

// gate addresses the vector of gate k by a pointer to the vector of gate 0.
func (c cell) gate(base reg.GPPhysical, k int) Mem {
	switch k {
	case 0:
		return Mem{Base: base}
	case 3:
		return Mem{Base: base, Index: c.three, Scale: 1}
	}
	return Mem{Base: base, Index: c.one, Scale: uint8(k)}
}

// sum loads what input and state add to gate k.
func (c cell) sum(k int, to reg.VecPhysical) {
	VMOVUPS(c.gate(c.x, k), to)
	VADDPS(c.gate(c.s, k), to, to)
}

// without sets out to from - x².
func (c cell) without(from, x, out reg.VecPhysical) {
	VMOVAPS(from, out)
	VFNMADD231PS(x, x, out)
}

// gru generates the forward pass of a gated recurrent unit.
func gru(s isa) {
	newCell(s, "gru", "x s h out", func(c cell) {
		r, z, a, h, tmp := c.v[0], c.v[1], c.v[2], c.v[3], c.v[4:]
		c.sum(0, r)
		c.sum(1, z)
		c.sigmoid(r, c.half, tmp)
		c.sigmoid(z, c.half, tmp)
		VMOVUPS(c.gate(c.x, 2), a)
		VFMADD231PS(c.gate(c.s, 2), r, a)
		c.tanh(a, tmp[0], tmp[1], tmp[2])
		for k, gate := range []reg.VecPhysical{r, z, a} {
			VMOVUPS(gate, c.gate(c.x, k))
		}
		VMOVUPS(c.gate(c.h, 0), h)
		VSUBPS(a, h, h)
		VFMADD213PS(a, z, h)
		VMOVUPS(h, c.gate(c.out, 0))
	})
}

// gruBack generates its backward pass.
func gruBack(s isa) {
	newCell(s, "gruBack", "x s h d dh", func(c cell) {
		r, z, a, h, d, inner, da, t := c.v[0], c.v[1], c.v[2], c.v[3], c.v[4], c.v[5], c.v[6], c.v[7]
		for k, gate := range []reg.VecPhysical{r, z, a} {
			VMOVUPS(c.gate(c.x, k), gate)
		}
		VMOVUPS(c.gate(c.s, 2), inner)
		VMOVUPS(c.gate(c.h, 0), h)
		VMOVUPS(c.gate(c.d, 0), d)
		VMULPS(z, d, t)
		VMOVUPS(t, c.gate(c.dh, 0))
		VSUBPS(z, c.unit, da) // da = d (1 - z) (1 - a²)
		VMULPS(d, da, da)
		c.without(c.unit, a, t)
		VMULPS(t, da, da)
		VMOVUPS(da, c.gate(c.x, 2))
		VSUBPS(a, h, h) // dz = d (h - a) (z - z²)
		VMULPS(d, h, h)
		c.without(z, z, t)
		VMULPS(t, h, h)
		VMULPS(da, inner, inner) // dr = da inner (r - r²)
		c.without(r, r, t)
		VMULPS(t, inner, inner)
		for _, to := range []reg.GPPhysical{c.x, c.s} {
			VMOVUPS(inner, c.gate(to, 0))
			VMOVUPS(h, c.gate(to, 1))
		}
		VMULPS(r, da, da)
		VMOVUPS(da, c.gate(c.s, 2))
	})
}

// lstm generates the forward pass of a long short-term memory. The second part of its state lies in H as a second gate does.
func lstm(s isa) {
	newCell(s, "lstm", "x s h out", func(c cell) {
		i, f, g, o, next, tmp := c.v[0], c.v[1], c.v[2], c.v[3], c.v[4], c.v[5:]
		gates := []reg.VecPhysical{i, f, g, o}
		for k, gate := range gates {
			c.sum(k, gate)
			if k == 2 {
				c.tanh(gate, tmp[0], tmp[1], tmp[2])
			} else {
				c.sigmoid(gate, c.half, tmp)
			}
			VMOVUPS(gate, c.gate(c.x, k))
		}
		VMULPS(g, i, next)
		VFMADD231PS(c.gate(c.h, 1), f, next)
		VMOVUPS(next, c.gate(c.s, 1))
		c.tanh(next, tmp[0], tmp[1], tmp[2])
		VMOVUPS(next, c.gate(c.s, 0))
		VMULPS(next, o, o)
		VMOVUPS(o, c.gate(c.out, 0))
		c.clear(tmp[0])
		VMOVUPS(tmp[0], c.gate(c.s, 2))
	})
}

// lstmBack generates its backward pass.
func lstmBack(s isa) {
	newCell(s, "lstmBack", "x s h d dh", func(c cell) {
		i, f, g, o, d, tanh, own, t, u := c.v[0], c.v[1], c.v[2], c.v[3], c.v[4], c.v[5], c.v[6], c.v[7], c.v[8]
		for k, gate := range []reg.VecPhysical{i, f, g, o} {
			VMOVUPS(c.gate(c.x, k), gate)
		}
		VMOVUPS(c.gate(c.d, 0), d)
		VMOVUPS(c.gate(c.s, 0), tanh)
		c.without(c.unit, tanh, own) // own = later + d o (1 - tanh²)
		VMULPS(o, d, t)
		VFMADD213PS(c.gate(c.s, 2), t, own)
		VMULPS(f, own, t)
		VMOVUPS(t, c.gate(c.dh, 0))
		c.without(i, i, t) // di = own g (i - i²)
		VMULPS(g, own, u)
		VMULPS(t, u, u)
		VMOVUPS(u, c.gate(c.x, 0))
		c.without(f, f, t) // df = own c (f - f²)
		VMULPS(c.gate(c.h, 1), own, u)
		VMULPS(t, u, u)
		VMOVUPS(u, c.gate(c.x, 1))
		c.without(c.unit, g, t) // dg = own i (1 - g²)
		VMULPS(i, own, u)
		VMULPS(t, u, u)
		VMOVUPS(u, c.gate(c.x, 2))
		c.without(o, o, t) // do = d tanh (o - o²)
		VMULPS(tanh, d, u)
		VMULPS(t, u, u)
		VMOVUPS(u, c.gate(c.x, 3))
	})
}
