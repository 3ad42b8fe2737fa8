package main

import (
	"maps"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// normed generates the loops of a layer norm over rows and, within a row, over panels of 16 elements, the last of which may
// be broken. Sums are added up in the order of AVX-512 by both sets: by lanes of a panel, then by halves of the lanes.
type normed struct {
	isa
	mean, inverse reg.VecPhysical
	mask          []reg.VecPhysical // of the parts of a broken panel; K1 with AVX-512
	i             reg.GPPhysical    // offset in a row
	left, moments reg.GPPhysical
}

func newNormed(s isa, name string) normed {
	function(name+s.name, "normArgs")
	n := normed{isa: s, mean: s.v[12], inverse: s.v[13], mask: s.v[14:16], i: reg.RDX, left: reg.RCX, moments: reg.R11}
	load("broken", n.i)
	NEGQ(n.i)
	LEAQ(tail(), reg.RAX)
	for p := range n.parts() {
		VMOVUPS(Mem{Base: reg.RAX, Index: n.i, Scale: 4, Disp: 64 + p*s.bytes}, n.mask[p])
	}
	if s.wide() {
		VPMOVD2M(n.mask[0], reg.K1)
	}
	return n
}

// parts is how many registers hold a panel.
func (n normed) parts() int { return 64 / n.bytes }

// panels runs a body for each part of each panel of a row.
func (n normed) panels(name string, body func(part int, broken bool)) {
	all := func(broken bool) {
		for p := range n.parts() {
			body(p, broken)
		}
	}
	XORQ(n.i, n.i)
	CMPQ(field("bytes"), Imm(0))
	JE(LabelRef(name + "_broken"))
	Label(name)
	all(false)
	ADDQ(Imm(64), n.i)
	CMPQ(n.i, field("bytes"))
	JLT(LabelRef(name))
	Label(name + "_broken")
	CMPQ(field("broken"), Imm(0))
	JE(LabelRef(name + "_end"))
	all(true)
	Label(name + "_end")
}

func (n normed) element(base reg.GPPhysical, part int) Mem {
	return Mem{Base: base, Index: n.i, Scale: 1, Disp: part * n.bytes}
}

// get loads a part of a panel, with zeros after the end of the row.
func (n normed) get(base reg.GPPhysical, part int, broken bool, to reg.VecPhysical) {
	switch m := n.element(base, part); {
	case !broken:
		VMOVUPS(m, to)
	case n.wide():
		VMOVUPS_Z(m, reg.K1, to)
	default:
		VMASKMOVPS(m, n.mask[part], to)
	}
}

// put stores a part of a panel.
func (n normed) put(from reg.VecPhysical, base reg.GPPhysical, part int, broken bool) {
	switch m := n.element(base, part); {
	case !broken:
		VMOVUPS(from, m)
	case n.wide():
		VMOVUPS(from, reg.K1, m)
	default:
		VMASKMOVPS(from, n.mask[part], m)
	}
}

// centred loads x - mean, with zeros after the end of the row.
func (n normed) centred(x reg.GPPhysical, part int, broken bool, to reg.VecPhysical) {
	n.get(x, part, broken, to)
	switch {
	case broken && n.wide():
		VSUBPS_Z(n.mean, to, reg.K1, to)
	case broken:
		VSUBPS(n.mean, to, to)
		VANDPS(n.mask[part], to, to)
	default:
		VSUBPS(n.mean, to, to)
	}
}

// average adds up the lanes of the parts of a sum and divides by the elements of a row, in the lowest lane of the first.
func (n normed) average(sum []reg.VecPhysical, tmp reg.VecPhysical) {
	x, y := sum[0].(reg.Vec).AsX(), sum[0].(reg.Vec).AsY()
	t := tmp.(reg.Vec).AsX()
	if n.wide() {
		VEXTRACTF64X4(Imm(1), sum[0], tmp.(reg.Vec).AsY())
		VADDPS(tmp.(reg.Vec).AsY(), y, y)
	} else {
		VADDPS(sum[1], y, y)
	}
	VEXTRACTF128(Imm(1), y, t)
	VADDPS(t, x, x)
	VPERMILPS(Imm(0x4e), x, t)
	VADDPS(t, x, x)
	VMOVSHDUP(x, t)
	VADDSS(t, x, x)
	VXORPS(t, t, t)
	VCVTSI2SSQ(field("n"), t, t)
	VDIVSS(t, x, x)
}

// rows runs a body for each row; each pointer begins at its field and advances by the field of that name + Row, moments by
// a pair.
func (n normed) rows(name string, pointers map[string]reg.GPPhysical, body func()) {
	names := slices.Sorted(maps.Keys(pointers))
	MOVQ(field("rows"), n.left)
	for _, p := range names {
		MOVQ(field(p), pointers[p])
	}
	Label(name + "_row")
	body()
	for _, p := range names {
		if p == "moments" {
			ADDQ(Imm(8), pointers[p])
			continue
		}
		ADDQ(field(p+"Row"), pointers[p])
	}
	DECQ(n.left)
	JNZ(LabelRef(name + "_row"))
}

// moment loads one of the moments of a row.
func (n normed) moment(i int, to reg.VecPhysical) {
	VBROADCASTSS(Mem{Base: n.moments, Disp: 4 * i}, to)
}

// keep stores one of the moments.
func (n normed) keep(i int, from reg.VecPhysical) {
	VMOVSS(from.(reg.Vec).AsX(), Mem{Base: n.moments, Disp: 4 * i})
}

// norm generates one pass over the rows for their means, one for their variances and one for the results: a row waits long
// for a sum, a root and a quotient, and rows wait side by side only where there is little else between them.
func norm(s isa) {
	n := newNormed(s, "norm")
	x, out, weight, bias := reg.RAX, reg.RBX, reg.R8, reg.R9
	load("weight bias", weight, bias)
	sum, t, w, b := s.v[:2], s.v[2:4], s.v[4:6], s.v[6:8]
	average := func(name string, add func(p int, broken bool)) {
		for p := range n.parts() {
			s.clear(sum[p])
		}
		n.panels(name, add)
		n.average(sum, t[0])
	}
	n.rows("sum", map[string]reg.GPPhysical{"x": x, "moments": n.moments}, func() {
		average("sum", func(p int, broken bool) {
			n.get(x, p, broken, t[p])
			VADDPS(t[p], sum[p], sum[p])
		})
		n.keep(0, sum[0])
	})
	n.rows("squares", map[string]reg.GPPhysical{"x": x, "moments": n.moments}, func() {
		n.moment(0, n.mean)
		average("squares", func(p int, broken bool) {
			n.centred(x, p, broken, t[p])
			VFMADD231PS(t[p], t[p], sum[p])
		})
		variance, one := sum[0].(reg.Vec).AsX(), t[0].(reg.Vec).AsX()
		VADDSS(float(1e-5), variance, variance)
		VSQRTSS(variance, variance, variance)
		VMOVSS(float(1), one)
		VDIVSS(variance, one, variance)
		n.keep(1, sum[0])
	})
	n.rows("out", map[string]reg.GPPhysical{"x": x, "out": out, "moments": n.moments}, func() {
		n.moment(0, n.mean)
		n.moment(1, n.inverse)
		n.panels("out", func(p int, broken bool) {
			n.centred(x, p, broken, t[p])
			n.get(weight, p, broken, w[p])
			n.get(bias, p, broken, b[p])
			VMULPS(n.inverse, t[p], t[p])
			VFMADD213PS(b[p], w[p], t[p])
			n.put(t[p], out, p, broken)
		})
	})
	finish()
}

// normBack generates one pass: a row's part of the gradient of the parameters is added between the waits.
func normBack(s isa) {
	n := newNormed(s, "normBack")
	x, d, dx, weight, dWeight, dBias := reg.RAX, reg.RBX, reg.RSI, reg.R8, reg.R9, reg.R10
	load("weight dWeight dBias", weight, dWeight, dBias)
	sum, along, z, g, t := s.v[:2], s.v[2:4], s.v[4:6], s.v[6:8], s.v[8:10]
	grad, slope := s.v[10], s.v[11]
	normal := func(p int, broken bool) {
		n.centred(x, p, broken, z[p])
		VMULPS(n.inverse, z[p], z[p])
		n.get(d, p, broken, g[p])
	}
	weigh := func(p int, broken bool) {
		n.get(weight, p, broken, t[p])
		VMULPS(t[p], g[p], g[p])
	}
	n.rows("each", map[string]reg.GPPhysical{"x": x, "d": d, "dx": dx, "moments": n.moments}, func() {
		n.moment(0, n.mean)
		n.moment(1, n.inverse)
		for p := range n.parts() {
			s.clear(sum[p])
			s.clear(along[p])
		}
		n.panels("params", func(p int, broken bool) {
			normal(p, broken)
			n.get(dWeight, p, broken, t[p])
			VFMADD231PS(z[p], g[p], t[p])
			n.put(t[p], dWeight, p, broken)
			n.get(dBias, p, broken, t[p])
			VADDPS(g[p], t[p], t[p])
			n.put(t[p], dBias, p, broken)
			weigh(p, broken)
			VADDPS(g[p], sum[p], sum[p])
			VFMADD231PS(z[p], g[p], along[p])
		})
		TESTQ(dx, dx)
		JZ(LabelRef("next"))
		n.average(sum, t[0])
		VBROADCASTSS(sum[0].(reg.Vec).AsX(), grad)
		n.average(along, t[0])
		VBROADCASTSS(along[0].(reg.Vec).AsX(), slope)
		n.panels("below", func(p int, broken bool) {
			normal(p, broken)
			weigh(p, broken)
			VFMADD213PS(grad, slope, z[p])
			VSUBPS(z[p], g[p], g[p])
			n.get(dx, p, broken, t[p])
			VFMADD231PS(n.inverse, g[p], t[p])
			n.put(t[p], dx, p, broken)
		})
		Label("next")
	})
	finish()
}
