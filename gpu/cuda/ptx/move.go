package ptx

import (
	"math/bits"

	"github.com/rlhost/rlhost/gpu/cuda/ptx/internal/syntax"
)

// compileMove compiles mov: of a register, a number or an address, of a vector into one register, or the other way.
func compileMove(b *binder) exec {
	t := b.dtype()
	b.count(2)
	switch {
	case b.Args[1].Kind == syntax.Vector:
		return joinMove(b, t)
	case b.Args[0].Kind == syntax.Vector:
		return splitMove(b, t)
	case t.Kind == 'p':
		return movePredicate(b)
	case t.Bits == 8:
		b.bad("not for this type")
	}
	d, x := b.dest(0, t), b.source(1, t)
	if t.Bits == 64 {
		return rows1(of64, d, x, copyRow)
	}
	return rows1(of32, d, x, copyRow)
}

func movePredicate(b *binder) exec {
	d, x := b.dest(0, predType), b.source(1, predType)
	return func(w *warp, m uint32) {
		w.p.rows[d] = w.p.rows[d]&^m | w.p.rows[x]&m
		w.p.defined[d] = w.p.defined[d]&^m | w.p.defined[x]&m
	}
}

// parts returns the registers of a vector whose elements together are of a type, and the bits of one.
func (b *binder) parts(o syntax.Operand, t dtype) ([]slot, int) {
	n := len(o.List)
	if n != 2 && n != 4 || t.Bits/n < 16 {
		b.bad("a vector of %d as %d bits", n, t.Bits)
	}
	element := plain(t.Bits / n)
	slots := make([]slot, n)
	for i, e := range o.List {
		slots[i] = b.slot(e, element)
	}
	return slots, element.Bits
}

func joinMove(b *binder, t dtype) exec {
	from, width := b.parts(b.Args[1], t)
	for _, o := range b.Args[1].List {
		if o.Name == "_" {
			b.bad("a part of the value is missing")
		}
	}
	to := b.slot(b.Args[0], t)
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			var value uint64
			all := true
			for i, s := range from {
				part, defined := s.get(w, l)
				value |= part << (i * width)
				all = all && defined
			}
			to.set(w, l, value, all)
		}
	}
}

func splitMove(b *binder, t dtype) exec {
	to, width := b.parts(b.Args[0], t)
	from := b.slot(b.Args[1], t)
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			value, defined := from.get(w, l)
			for i, s := range to {
				s.set(w, l, value>>(i*width)&(1<<width-1), defined)
			}
		}
	}
}

// compileAddress compiles cvta: between addresses of a space and generic ones.
func compileAddress(b *binder) exec {
	t := b.bitType(64)
	b.count(2)
	back := b.has("to")
	name := b.oneOf("global", "const", "shared", "local", "param")
	if name == "shared" {
		b.has("cta")
	}
	if name == "" {
		b.bad("it names no space")
	}
	base := window(spaces[name])
	if back {
		base = -base
	}
	d, x := b.dest(0, t), b.source(1, t)
	if base == 0 {
		return rows1(of64, d, x, copyRow)
	}
	return mapped1(of64, d, x, func(x uint64) uint64 { return x + base })
}
