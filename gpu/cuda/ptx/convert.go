package ptx

import (
	"math"
	"math/bits"
)

// compileConvert compiles cvt. A value goes through one of two wide forms: 64 bits, extended by the sign of the type it has, or a
// float64, which holds every f32 and f64 exactly.
func compileConvert(b *binder) exec {
	if b.has("bf16x2") {
		return packed(b)
	}
	from, to := b.dtype(), b.dtype()
	b.count(2)
	if from.Kind == 'p' || to.Kind == 'p' || from.Kind == 'b' || to.Kind == 'b' {
		b.bad("not for this type")
	}
	d, x := b.slot(b.Args[0], width(to)), b.slot(b.Args[1], width(from))
	if integers := (from.Kind == 'u' || from.Kind == 's') && (to.Kind == 'u' || to.Kind == 's'); integers && len(b.mods) == 0 && d.row >= 0 {
		switch {
		case from.Bits == 32 && to.Bits == 64 && x.file == file32:
			return widen(d.row, x.row, from.Signed())
		case from.Bits == 64 && to.Bits == 32 && d.file == file32:
			return truncate(d.row, x.row)
		}
	}
	f := conversion(b, from, to)
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			value, defined := x.get(w, l)
			d.set(w, l, f(value), defined)
		}
	}
}

// widen makes 64 bits of 32.
func widen(d, x int, signed bool) exec {
	return convertRows(of32, of64, d, x, func(z *row[uint64], x *row[uint32]) {
		if !signed {
			for l := range z {
				z[l] = uint64(x[l])
			}
			return
		}
		for l := range z {
			z[l] = uint64(int64(int32(x[l])))
		}
	})
}

// truncate makes 32 bits of 64.
func truncate(d, x int) exec {
	return convertRows(of64, of32, d, x, func(z *row[uint32], x *row[uint64]) {
		for l := range z {
			z[l] = uint32(x[l])
		}
	})
}

// width is a type as wide as t.
func width(t dtype) dtype { return plain(t.Bits) }

// conversion returns how the bits of a value of one type become those of another, extended to 64.
func conversion(b *binder, from, to dtype) func(uint64) uint64 {
	floats := func(t dtype) bool { return t.Kind == 'f' || t.Kind == 'h' }
	if flush := b.has("ftz"); flush && from != (f32Type) && to != (f32Type) {
		b.bad(".ftz is for f32")
	} else if flush {
		return flushing(b, from, to)
	}
	switch {
	case floats(from) && floats(to):
		return floatToFloat(b, from, to)
	case floats(from):
		return floatToInteger(b, from, to)
	case floats(to):
		return integerToFloat(b, from, to)
	}
	if b.has("sat") {
		return func(x uint64) uint64 { return clampInteger(from, to, from.Extend(x)) }
	}
	return func(x uint64) uint64 { return to.Extend(from.Extend(x)) }
}

// flushing returns a conversion that takes denormals of f32 for zero.
func flushing(b *binder, from, to dtype) func(uint64) uint64 {
	f := conversion(b, from, to)
	flush := func(t dtype, x uint64) uint64 {
		if t == (f32Type) {
			return uint64(math.Float32bits(flushed(f32(uint32(x)))))
		}
		return x
	}
	return func(x uint64) uint64 { return flush(to, f(flush(from, x))) }
}

// clampInteger returns the value of a type that is nearest to an extended value of another.
func clampInteger(from, to dtype, x uint64) uint64 {
	least, most := limits(to)
	if from.Signed() && int64(x) < 0 {
		if least < int64(x) {
			least = int64(x)
		}
		return uint64(least)
	}
	return min(x, most)
}

// limits are the least and the greatest value of a type of integers.
func limits(t dtype) (int64, uint64) {
	if t.Signed() {
		return -1 << (t.Bits - 1), 1<<(t.Bits-1) - 1
	}
	return 0, ^uint64(0) >> (64 - t.Bits)
}

// floatValue is a float of a type as a float64.
func floatValue(t dtype, x uint64) float64 {
	switch {
	case t.Kind == 'h':
		return float64(f32(uint32(x) << 16))
	case t.Bits == 32:
		return float64(f32(uint32(x)))
	}
	return math.Float64frombits(x)
}

// floatBits is an odd float64 as a float of a type.
func floatBits(t dtype, x float64, r rounding) uint64 {
	switch {
	case t.Kind == 'h':
		return uint64(bfloat(x, r))
	case t.Bits == 32:
		return uint64(bits32(narrowed(x, r)))
	}
	return math.Float64bits(x)
}

// bfloat rounds an odd float64, to the nearest or toward zero.
func bfloat(x float64, r rounding) uint16 {
	if x != x {
		return 0x7fff
	}
	// Toward zero and with its last bit set if something is lost, a float32 has enough bits to be rounded once more.
	near := narrowed(x, towardZero)
	b := math.Float32bits(near)
	if float64(near) != x {
		b |= 1
	}
	if r == nearestEven {
		b += 0x7fff + b>>16&1
	}
	return uint16(b >> 16)
}

func floatToFloat(b *binder, from, to dtype) func(uint64) uint64 {
	if whole := b.oneOf("rni", "rzi", "rmi", "rpi"); whole != "" {
		if from != to || from.Kind == 'h' {
			b.bad("a whole number of another type")
		}
		f, sat := wholes[whole], b.has("sat")
		return func(x uint64) uint64 {
			v := f(floatValue(from, x))
			if sat {
				v = float64(saturated(float32(v)))
			}
			return floatBits(to, v, nearestEven)
		}
	}
	mode := b.oneOf("rn", "rz", "rm", "rp")
	if to.Kind == 'h' && mode != "rn" && mode != "rz" || to.Bits < from.Bits && mode == "" {
		b.bad("it needs a rounding")
	}
	r, sat := roundings[mode], b.has("sat")
	if !sat && from == to {
		return func(x uint64) uint64 { return to.Extend(x) }
	}
	return func(x uint64) uint64 {
		v := floatValue(from, x)
		if sat {
			v = math.Max(0, math.Min(1, v))
			if v != v {
				v = 0
			}
		}
		return floatBits(to, v, r)
	}
}

// wholes are the roundings to whole numbers.
var wholes = map[string]func(float64) float64{
	"rni": math.RoundToEven, "rzi": math.Trunc, "rmi": math.Floor, "rpi": math.Ceil,
}

// floatToInteger is clamped to the type. A NaN is 0, but half of the range where one of both types has 64 bits.
func floatToInteger(b *binder, from, to dtype) func(uint64) uint64 {
	f := wholes[b.oneOf("rni", "rzi", "rmi", "rpi")]
	if f == nil {
		b.bad("it needs a rounding to whole numbers")
	}
	b.has("sat") // it is clamped anyway
	nan := uint64(0)
	if from.Bits == 64 || to.Bits == 64 {
		nan = to.Extend(1 << (to.Bits - 1))
	}
	least, most := limits(to)
	return func(x uint64) uint64 {
		v := f(floatValue(from, x))
		switch {
		case v != v:
			return nan
		case v <= float64(least):
			return uint64(least)
		case v >= float64(most):
			return most
		case to.Signed():
			return uint64(int64(v))
		}
		return uint64(v)
	}
}

func integerToFloat(b *binder, from, to dtype) func(uint64) uint64 {
	mode := b.oneOf("rn", "rz", "rm", "rp")
	if mode == "" || to.Kind == 'h' {
		b.bad("it needs a rounding, or is not run to bf16")
	}
	r := roundings[mode]
	if to.Bits == 64 && from.Bits == 64 && r != nearestEven {
		b.bad("f64 is only rounded to the nearest")
	}
	if b.has("sat") {
		b.bad(".sat of an integer as a float")
	}
	return func(x uint64) uint64 {
		v := from.Extend(x)
		if to.Bits == 64 && from.Signed() {
			return math.Float64bits(float64(int64(v)))
		}
		if to.Bits == 64 {
			return math.Float64bits(float64(v))
		}
		return floatBits(to, oddInteger(from, v), r)
	}
}

// oddInteger is an integer as the float64 that rounds to f32 as it does.
func oddInteger(t dtype, x uint64) float64 {
	negative := t.Signed() && int64(x) < 0
	if negative {
		x = -x
	}
	// Of more than 53 bits the low ones only count as being there.
	if shift := bits.Len64(x) - 53; shift > 0 {
		rest := x & (1<<shift - 1)
		x &^= 1<<shift - 1
		if rest != 0 {
			x |= 1 << shift
		}
	}
	if negative {
		return -float64(x)
	}
	return float64(x)
}

// packed compiles cvt.rn.bf16x2.f32: the first operand above the second.
func packed(b *binder) exec {
	from, to := b.dtype(), b32Type
	b.count(3)
	if from != (f32Type) {
		b.bad("not for this type")
	}
	r := b.oneOf("rn", "rz")
	if r == "" {
		b.bad("it needs a rounding")
	}
	mode, relu := roundings[r], b.has("relu")
	one := func(x uint32) uint32 {
		v := f32(x)
		if relu && v < 0 {
			v = 0
		}
		return uint32(bfloat(float64(v), mode))
	}
	d, hi, lo := b.dest(0, to), b.source(1, from), b.source(2, from)
	return mapped2(of32, d, hi, lo, func(hi, lo uint32) uint32 { return one(hi)<<16 | one(lo) })
}
