package ptx

import "math/bits"

// integer is a type of integer instructions.
type integer interface {
	int16 | uint16 | int32 | uint32 | int64 | uint64
}

// compileArithmetic compiles add, sub, div, rem, min and max of integers; floats have their own rules.
func compileArithmetic(b *binder) exec {
	t := b.dtype()
	if t.Float() {
		return floatBinary(b, t)
	}
	b.count(3)
	d, x, y := b.dest(0, t), b.source(1, t), b.source(2, t)
	switch op := b.Inst.Mods[0]; {
	case op == "add" && t.Bits == 32:
		return rows2(of32, d, x, y, addRows)
	case op == "add" && t.Bits == 64:
		return rows2(of64, d, x, y, addRows)
	case op == "sub" && t.Bits == 32:
		return rows2(of32, d, x, y, subRows)
	}
	switch t {
	case s16Type:
		return narrow(d, x, y, binaryOf[int16](b))
	case u16Type:
		return narrow(d, x, y, binaryOf[uint16](b))
	case s32Type:
		return typed(of32, d, x, y, binaryOf[int32](b))
	case u32Type:
		return typed(of32, d, x, y, binaryOf[uint32](b))
	case s64Type:
		return typed(of64, d, x, y, binaryOf[int64](b))
	case u64Type:
		return typed(of64, d, x, y, binaryOf[uint64](b))
	}
	b.bad("not for this type")
	return nil
}

// typed makes dest = f(a, b) where f has the sign of the instruction's type.
func typed[T word, S int32 | uint32 | int64 | uint64](of func(*warp) *registers[T], d, x, y int, f func(x, y S) S) exec {
	return mapped2(of, d, x, y, func(x, y T) T { return T(f(S(x), S(y))) })
}

// narrow is typed for 16 bits, of which registers keep zeros above.
func narrow[S int16 | uint16](d, x, y int, f func(x, y S) S) exec {
	return mapped2(of32, d, x, y, func(x, y uint32) uint32 { return uint32(uint16(f(S(x), S(y)))) })
}

func binaryOf[S integer](b *binder) func(x, y S) S {
	switch b.Inst.Mods[0] {
	case "add":
		return func(x, y S) S { return x + y }
	case "sub":
		return func(x, y S) S { return x - y }
	case "div":
		return quotient
	case "rem":
		return remainder
	case "min":
		return func(x, y S) S { return min(x, y) }
	}
	return func(x, y S) S { return max(x, y) }
}

// quotient of a division by zero is all ones, as the hardware gives it; the ISA leaves it open.
func quotient[S integer](x, y S) S {
	if y == 0 {
		return ^S(0)
	}
	return x / y
}

func remainder[S integer](x, y S) S {
	if y == 0 {
		return x
	}
	return x % y
}

// compileMultiply compiles mul.lo, mul.hi and mul.wide.
func compileMultiply(b *binder) exec {
	t := b.dtype()
	if t.Float() {
		return floatBinary(b, t)
	}
	b.count(3)
	part := b.oneOf("lo", "hi", "wide")
	wide := t
	if part == "wide" {
		wide.Bits *= 2
	}
	if part == "" || t.Kind != 'u' && t.Kind != 's' || wide.Bits > 64 || t.Bits == 8 {
		b.bad("not for this type")
	}
	d, x, y := b.dest(0, wide), b.source(1, t), b.source(2, t)
	switch {
	case t == s32Type && part == "wide":
		return wideRows(d, x, y, mulWideSigned)
	case t == u32Type && part == "wide":
		return wideRows(d, x, y, mulWideUnsigned)
	case t.Bits == 32 && part == "lo":
		return rows2(of32, d, x, y, mulRows)
	case t.Bits == 64 && part == "lo":
		return rows2(of64, d, x, y, mulRows)
	}
	f := product(t, part)
	if t.Bits == 64 {
		return mapped2(of64, d, x, y, f)
	}
	return mapped2(of32, d, x, y, func(x, y uint32) uint32 { return uint32(f(uint64(x), uint64(y))) })
}

// product multiplies values of a type whose bits above it are zero, and leaves such a value.
func product(t dtype, part string) func(x, y uint64) uint64 {
	mask := ^uint64(0) >> (64 - t.Bits)
	switch {
	case part == "lo":
		return func(x, y uint64) uint64 { return x * y & mask }
	case part == "wide":
		return func(x, y uint64) uint64 { return t.Extend(x) * t.Extend(y) & (mask<<t.Bits | mask) }
	case t.Bits < 64:
		return func(x, y uint64) uint64 { return t.Extend(x) * t.Extend(y) >> t.Bits & mask }
	case t.Signed():
		return func(x, y uint64) uint64 {
			hi, _ := bits.Mul64(x, y)
			return hi - uint64(int64(x)>>63)&y - uint64(int64(y)>>63)&x
		}
	}
	return func(x, y uint64) uint64 { hi, _ := bits.Mul64(x, y); return hi }
}

// compileMultiplyAdd compiles mad.lo, mad.hi and mad.wide.
func compileMultiplyAdd(b *binder) exec {
	t := b.dtype()
	b.count(4)
	part := b.oneOf("lo", "hi", "wide")
	if part == "" || t.Kind != 'u' && t.Kind != 's' || t.Bits == 8 || t.Bits == 64 && part == "wide" {
		b.bad("not for this type")
	}
	wide := t
	if part == "wide" {
		wide.Bits *= 2
	}
	d, x, y, z := b.dest(0, wide), b.source(1, t), b.source(2, t), b.source(3, wide)
	f := product(t, part)
	switch {
	case t.Bits == 64:
		return mapped3(of64, d, x, y, z, func(x, y, z uint64) uint64 { return f(x, y) + z })
	case wide.Bits == 64:
		return func(w *warp, m uint32) {
			r := &w.r64
			r.defined[d] = r.defined[d]&^m | m&w.r32.defined[x]&w.r32.defined[y]&r.defined[z]
			for ; m != 0; m &= m - 1 {
				l := bits.TrailingZeros32(m) & 31
				r.rows[d][l] = f(uint64(w.r32.rows[x][l]), uint64(w.r32.rows[y][l])) + r.rows[z][l]
			}
		}
	case t == s32Type && part == "lo", t == u32Type && part == "lo":
		return rows3(of32, d, x, y, z, madRows)
	}
	mask := ^uint64(0) >> (64 - wide.Bits)
	return mapped3(of32, d, x, y, z, func(x, y, z uint32) uint32 { return uint32((f(uint64(x), uint64(y)) + uint64(z)) & mask) })
}

// compileSign compiles abs and neg.
func compileSign(b *binder) exec {
	t := b.dtype()
	if t.Float() {
		return floatSign(b, t)
	}
	b.count(2)
	if !t.Signed() || t.Bits == 8 {
		b.bad("not for this type")
	}
	d, x := b.dest(0, t), b.source(1, t)
	negative := b.Inst.Mods[0] == "neg"
	f := func(x uint64) uint64 {
		if v := t.Extend(x); negative || int64(v) < 0 {
			return -v
		}
		return x
	}
	return lane1(b, t, d, x, f)
}

// lane1 makes dest = f(a) of values of a type whose bits above it are zero.
func lane1(b *binder, t dtype, d, x int, f func(uint64) uint64) exec {
	if t.Bits == 64 {
		return mapped1(of64, d, x, f)
	}
	mask := ^uint32(0) >> (32 - t.Bits)
	return mapped1(of32, d, x, func(x uint32) uint32 { return uint32(f(uint64(x))) & mask })
}
