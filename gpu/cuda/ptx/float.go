package ptx

import "math"

// All instructions on floats round to the nearest, whether they say so or not: the only rounding that kernels use, and Go's.

// floatBinary compiles add, sub, mul, div, min and max of floats.
func floatBinary(b *binder, t dtype) exec {
	b.count(3)
	b.has("rn")
	d, x, y := b.dest(0, t), b.source(1, t), b.source(2, t)
	switch op := b.Inst.Mods[0]; {
	case t.Bits == 64 && op == "add":
		return rows2(of64, d, x, y, addDoubleRows)
	case t.Bits == 64:
		f := floatArithmetic[float64](b)
		return mapped2(of64, d, x, y, func(x, y uint64) uint64 {
			return math.Float64bits(f(math.Float64frombits(x), math.Float64frombits(y)))
		})
	case op == "add":
		return rows2(of32, d, x, y, addFloatRows)
	case op == "mul":
		return rows2(of32, d, x, y, mulFloatRows)
	}
	f := floatArithmetic[float32](b)
	return mapped2(of32, d, x, y, func(x, y uint32) uint32 { return bits32(f(f32(x), f32(y))) })
}

func floatArithmetic[F float32 | float64](b *binder) func(x, y F) F {
	switch b.Inst.Mods[0] {
	case "sub":
		return func(x, y F) F { return x - y }
	case "mul":
		return func(x, y F) F { return x * y }
	case "div":
		return func(x, y F) F { return x / y }
	case "min":
		return minimum[F]
	case "max":
		return maximum[F]
	}
	b.bad("not for floats")
	return nil
}

// compileFused compiles fma.
func compileFused(b *binder) exec {
	t := b.dtype()
	b.count(4)
	if !t.Float() {
		b.bad("not for this type")
	}
	b.has("rn")
	d, x, y, z := b.dest(0, t), b.source(1, t), b.source(2, t), b.source(3, t)
	if t.Bits == 32 {
		return rows3(of32, d, x, y, z, fmaRows)
	}
	return mapped3(of64, d, x, y, z, func(x, y, z uint64) uint64 {
		return math.Float64bits(math.FMA(math.Float64frombits(x), math.Float64frombits(y), math.Float64frombits(z)))
	})
}

// floatSign compiles abs and neg of floats, which change the sign alone.
func floatSign(b *binder, t dtype) exec {
	sign := uint64(1) << (t.Bits - 1)
	f := func(x uint64) uint64 { return x &^ sign }
	if b.Inst.Mods[0] == "neg" {
		f = func(x uint64) uint64 { return x ^ sign }
	}
	b.count(2)
	return lane1(b, t, b.dest(0, t), b.source(1, t), f)
}

// compileRoot compiles rcp and sqrt. A square root of float64 that is rounded to float32 is rounded once.
func compileRoot(b *binder) exec {
	t := b.dtype()
	b.count(2)
	if !t.Float() || !b.has("rn") {
		b.bad("not for this type, or rounded otherwise")
	}
	d, x := b.dest(0, t), b.source(1, t)
	f := math.Sqrt
	if b.Inst.Mods[0] == "rcp" {
		f = func(x float64) float64 { return 1 / x }
	}
	if t.Bits == 64 {
		return mapped1(of64, d, x, func(x uint64) uint64 { return math.Float64bits(f(math.Float64frombits(x))) })
	}
	return mapped1(of32, d, x, func(x uint32) uint32 { return bits32(float32(f(float64(f32(x))))) })
}
