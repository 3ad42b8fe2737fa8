package ptx

import "math/bits"

// bitType removes a type of bits of some widths from the opcode.
func (b *binder) bitType(widths ...int) dtype {
	t := b.dtype()
	for _, n := range widths {
		if t.Bits == n && t.Kind != 'f' {
			return t
		}
	}
	b.bad("not for this type")
	return t
}

// compileLogic compiles and, or and xor, of predicates too.
func compileLogic(b *binder) exec {
	t := b.bitType(1, 16, 32, 64)
	b.count(3)
	d, x, y := b.dest(0, t), b.source(1, t), b.source(2, t)
	op := b.Inst.Mods[0]
	if t.Kind == 'p' {
		return predicateLogic(op, d, x, y)
	}
	if t.Bits == 64 {
		return rows2(of64, d, x, y, logicRows[uint64](op))
	}
	return rows2(of32, d, x, y, logicRows[uint32](op)) // of 16 bits, too, above which registers are zero
}

// logicRows returns and, or or xor.
func logicRows[T word](op string) func(z, x, y *row[T]) {
	switch op {
	case "and":
		return andRows[T]
	case "or":
		return orRows[T]
	}
	return xorRows[T]
}

// predicateLogic makes dest of predicates. "and" with false and "or" with true are defined whatever the other one is: so
// compilers write conditions of which the second is looked at only after the first.
func predicateLogic(op string, d, a, b int) exec {
	return func(w *warp, m uint32) {
		p := &w.p
		x, y := p.rows[a], p.rows[b]
		dx, dy := p.defined[a], p.defined[b]
		value, defined := x^y, dx&dy
		switch op {
		case "and":
			value, defined = x&y, dx&dy|dx&^x|dy&^y
		case "or":
			value, defined = x|y, dx&dy|dx&x|dy&y
		}
		p.rows[d] = p.rows[d]&^m | value&m
		p.defined[d] = p.defined[d]&^m | defined&m
	}
}

func compileNot(b *binder) exec {
	t := b.bitType(1, 16, 32, 64)
	b.count(2)
	d, x := b.dest(0, t), b.source(1, t)
	if t.Kind == 'p' {
		return func(w *warp, m uint32) {
			w.p.rows[d] = w.p.rows[d]&^m | ^w.p.rows[x]&m
			w.p.defined[d] = w.p.defined[d]&^m | w.p.defined[x]&m
		}
	}
	return lane1(b, t, d, x, func(x uint64) uint64 { return ^x })
}

// compileReverse compiles brev.
func compileReverse(b *binder) exec {
	t := b.bitType(32, 64)
	b.count(2)
	return lane1(b, t, b.dest(0, t), b.source(1, t), func(x uint64) uint64 { return bits.Reverse64(x) >> (64 - t.Bits) })
}

// compileCounting compiles popc and clz, whose results have 32 bits.
func compileCounting(b *binder) exec {
	t := b.bitType(32, 64)
	b.count(2)
	d, x := b.dest(0, u32Type), b.source(1, t)
	f := func(x uint64) uint32 { return uint32(bits.OnesCount64(x)) }
	if b.Inst.Mods[0] == "clz" {
		f = func(x uint64) uint32 { return uint32(bits.LeadingZeros64(x) - (64 - t.Bits)) }
	}
	if t.Bits == 64 {
		return convert(of64, of32, d, x, f)
	}
	return mapped1(of32, d, x, func(x uint32) uint32 { return f(uint64(x)) })
}

// compileShift compiles shl and shr, whose second operand has 32 bits; more than the width shifts everything out.
func compileShift(b *binder) exec {
	t := b.bitType(16, 32, 64)
	b.count(3)
	d, x, y := b.dest(0, t), b.source(1, t), b.source(2, u32Type)
	left := b.Inst.Mods[0] == "shl"
	switch t.Bits {
	case 64:
		return shiftRows(of64, d, x, y, shiftOf[uint64, int64](left, t.Signed()))
	case 32:
		return shiftRows(of32, d, x, y, shiftOf[uint32, int32](left, t.Signed()))
	}
	return shiftRows(of32, d, x, y, func(z, x, y *row[uint32]) {
		for l := range z {
			switch {
			case left:
				z[l] = uint32(uint16(x[l] << y[l]))
			case t.Signed():
				z[l] = uint32(uint16(int16(x[l]) >> y[l]))
			default:
				z[l] = x[l] >> y[l]
			}
		}
	})
}

// shiftOf returns the shift of registers as wide as S.
func shiftOf[T word, S int32 | int64](left, signed bool) func(z, x *row[T], y *row[uint32]) {
	switch {
	case left:
		return shlRows[T]
	case signed:
		return sarRows[T, S]
	}
	return shrRows[T]
}

// compileFunnel compiles shf: 32 of the 64 bits that two registers have together.
func compileFunnel(b *binder) exec {
	t := b.bitType(32)
	b.count(4)
	d, lo, hi, by := b.dest(0, t), b.source(1, t), b.source(2, t), b.source(3, t)
	direction := b.oneOf("l", "r")
	if direction == "" || !b.has("wrap") {
		b.bad("only shf.l.wrap and shf.r.wrap are run")
	}
	return mapped3(of32, d, lo, hi, by, func(lo, hi, by uint32) uint32 {
		both := uint64(hi)<<32 | uint64(lo)
		if direction == "l" {
			return uint32(both << (by & 31) >> 32)
		}
		return uint32(both >> (by & 31))
	})
}

// compileInsert compiles bfi: the low len bits of the first into the second from pos on.
func compileInsert(b *binder) exec {
	t := b.bitType(32)
	b.count(5)
	d, x, into, pos, length := b.dest(0, t), b.source(1, t), b.source(2, t), b.source(3, t), b.source(4, t)
	return func(w *warp, m uint32) {
		r := &w.r32
		r.defined[d] = r.defined[d]&^m | m&r.defined[x]&r.defined[into]&r.defined[pos]&r.defined[length]
		for ; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			at, n := r.rows[pos][l]&255, r.rows[length][l]&255
			mask := (uint32(1)<<n - 1) << at
			r.rows[d][l] = r.rows[into][l]&^mask | r.rows[x][l]<<at&mask
		}
	}
}
