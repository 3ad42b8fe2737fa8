package ptx

import (
	"math"
	"math/bits"
)

// compileConvert compiles cvt. A value goes through one of two wide forms: 64 bits, extended by the sign of the type it has, or a
// float64, which holds every f32 and f64 exactly.
func compileConvert(b *binder) exec {
	switch {
	case b.has("bf16"):
		return toBfloat(b)
	case b.has("bf16x2"):
		return toBfloats(b)
	}
	from, to := b.dtype(), b.dtype()
	b.count(2)
	if from.Kind == 'p' || to.Kind == 'p' || from.Kind == 'b' || to.Kind == 'b' {
		b.bad("not for this type")
	}
	d, x := b.slot(b.Args[0], plain(to.Bits)), b.slot(b.Args[1], plain(from.Bits))
	if !from.Float() && !to.Float() && len(b.mods) == 0 && d.row >= 0 {
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

// conversion returns the function from the bits of a value of one type to the bits in another, extended to 64.
func conversion(b *binder, from, to dtype) func(uint64) uint64 {
	switch {
	case from.Float() && to.Float():
		return floatToFloat(b, from, to)
	case from.Float():
		return floatToInteger(b, from, to)
	case to.Float():
		return integerToFloat(b, from, to)
	}
	return func(x uint64) uint64 { return to.Extend(from.Extend(x)) }
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
	if t.Bits == 32 {
		return float64(f32(uint32(x)))
	}
	return math.Float64frombits(x)
}

// floatBits is a float64 as a float of a type.
func floatBits(t dtype, x float64) uint64 {
	if t.Bits == 32 {
		return uint64(bits32(float32(x)))
	}
	return math.Float64bits(x)
}

func floatToFloat(b *binder, from, to dtype) func(uint64) uint64 {
	if f := wholes[b.oneOf("rni", "rzi", "rmi", "rpi")]; f != nil {
		if from != to {
			b.bad("a whole number of another type")
		}
		return func(x uint64) uint64 { return floatBits(to, f(floatValue(from, x))) }
	}
	if to.Bits < from.Bits && !b.has("rn") {
		b.bad("it needs a rounding")
	}
	return func(x uint64) uint64 { return floatBits(to, floatValue(from, x)) }
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
	if !b.has("rn") {
		b.bad("it needs a rounding")
	}
	return func(x uint64) uint64 {
		v := from.Extend(x)
		switch {
		case to.Bits == 64 && from.Signed():
			return math.Float64bits(float64(int64(v)))
		case to.Bits == 64:
			return math.Float64bits(float64(v))
		case from.Signed():
			return uint64(math.Float32bits(float32(int64(v))))
		}
		return uint64(math.Float32bits(float32(v)))
	}
}

// toBfloat compiles cvt.rn.bf16.f32.
func toBfloat(b *binder) exec {
	from := b.bfloatSource(2)
	d, x := b.dest(0, plain(16)), b.source(1, from)
	return mapped1(of32, d, x, func(x uint32) uint32 { return bfloat(f32(x)) })
}

// toBfloats compiles cvt.rn.bf16x2.f32: the first operand above the second.
func toBfloats(b *binder) exec {
	from := b.bfloatSource(3)
	d, hi, lo := b.dest(0, b32Type), b.source(1, from), b.source(2, from)
	return mapped2(of32, d, hi, lo, func(hi, lo uint32) uint32 { return bfloat(f32(hi))<<16 | bfloat(f32(lo)) })
}

// bfloatSource returns the type that becomes bf16, of an instruction with so many operands.
func (b *binder) bfloatSource(operands int) dtype {
	from := b.dtype()
	b.count(operands)
	if from != f32Type || !b.has("rn") {
		b.bad("only f32 is rounded to bf16, to the nearest")
	}
	return from
}
