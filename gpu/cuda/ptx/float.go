package ptx

import (
	"math"
)

// rounding removes a rounding of floats from the opcode; without one it is to the nearest. f64 rounds to the nearest alone.
func (b *binder) rounding(t dtype) rounding {
	r := roundings[b.oneOf("rn", "rz", "rm", "rp")]
	if t.Bits == 64 && r != nearestEven {
		b.bad("f64 is only rounded to the nearest")
	}
	return r
}

// wrapped32 returns what .ftz and .sat of the opcode make of a function's operands and result.
func wrapped32(b *binder) (in, out func(float32) float32) {
	same := func(x float32) float32 { return x }
	in, out = same, same
	if b.has("ftz") {
		in, out = flushed, flushed
	}
	if b.has("sat") {
		flush := out
		out = func(x float32) float32 { return saturated(flush(x)) }
	}
	return in, out
}

// floatBinary compiles add, sub, mul, div, min and max of floats.
func floatBinary(b *binder, t dtype) exec {
	b.count(3)
	d, x, y := b.dest(0, t), b.source(1, t), b.source(2, t)
	if t.Bits == 64 {
		f := binary64(b)
		if b.Inst.Mods[0] == "add" {
			return rows2(of64, d, x, y, addDoubleRows)
		}
		return mapped2(of64, d, x, y, func(x, y uint64) uint64 {
			return math.Float64bits(f(math.Float64frombits(x), math.Float64frombits(y)))
		})
	}
	plain := len(b.mods) == 0 || len(b.mods) == 1 && b.mods[0] == "rn"
	op := b.Inst.Mods[0]
	if plain && op == "add" {
		b.mods = nil
		return rows2(of32, d, x, y, addFloatRows)
	}
	if plain && op == "mul" {
		b.mods = nil
		return rows2(of32, d, x, y, mulFloatRows)
	}
	f := binary32(b)
	in, out := wrapped32(b)
	return mapped2(of32, d, x, y, func(x, y uint32) uint32 { return bits32(out(f(in(f32(x)), in(f32(y))))) })
}

func binary32(b *binder) func(x, y float32) float32 {
	switch b.Inst.Mods[0] {
	case "min", "max":
		return extreme32(b)
	case "div":
		if b.oneOf("full", "approx") != "" {
			return func(x, y float32) float32 { return x / y }
		}
	}
	r := b.rounding(f32Type)
	switch b.Inst.Mods[0] {
	case "add":
		return func(x, y float32) float32 { return sum32(x, y, r) }
	case "sub":
		return func(x, y float32) float32 { return sum32(x, -y, r) }
	case "mul":
		return func(x, y float32) float32 { return product32(x, y, r) }
	case "div":
		return func(x, y float32) float32 { return quotient32(x, y, r) }
	}
	b.bad("not for floats")
	return nil
}

func extreme32(b *binder) func(x, y float32) float32 {
	f := minimum[float32]
	if b.Inst.Mods[0] == "max" {
		f = maximum[float32]
	}
	if !b.has("NaN") {
		return f
	}
	return func(x, y float32) float32 {
		if x != x || y != y {
			return float32(math.NaN())
		}
		return f(x, y)
	}
}

func binary64(b *binder) func(x, y float64) float64 {
	switch b.Inst.Mods[0] {
	case "min":
		return minimum[float64]
	case "max":
		return maximum[float64]
	}
	b.rounding(f64Type)
	switch b.Inst.Mods[0] {
	case "add":
		return func(x, y float64) float64 { return x + y }
	case "sub":
		return func(x, y float64) float64 { return x - y }
	case "mul":
		return func(x, y float64) float64 { return x * y }
	case "div":
		return func(x, y float64) float64 { return x / y }
	}
	b.bad("not for floats")
	return nil
}

// compileFused compiles fma, and mad of floats, which is the same.
func compileFused(b *binder) exec {
	t := b.dtype()
	b.count(4)
	if !t.Float() {
		b.bad("not for this type")
	}
	d, x, y, z := b.dest(0, t), b.source(1, t), b.source(2, t), b.source(3, t)
	r := b.rounding(t)
	if t.Bits == 64 {
		return mapped3(of64, d, x, y, z, func(x, y, z uint64) uint64 {
			return math.Float64bits(math.FMA(math.Float64frombits(x), math.Float64frombits(y), math.Float64frombits(z)))
		})
	}
	if r == nearestEven && len(b.mods) == 0 {
		return rows3(of32, d, x, y, z, fmaRows)
	}
	in, out := wrapped32(b)
	return mapped3(of32, d, x, y, z, func(x, y, z uint32) uint32 {
		return bits32(out(fused32(in(f32(x)), in(f32(y)), in(f32(z)), r)))
	})
}

// floatSign compiles abs and neg of floats, which change the sign alone.
func floatSign(b *binder, t dtype) exec {
	b.count(2)
	d, x := b.dest(0, t), b.source(1, t)
	negative := b.Inst.Mods[0] == "neg"
	if t.Bits == 64 {
		if negative {
			return mapped1(of64, d, x, func(x uint64) uint64 { return x ^ 1<<63 })
		}
		return mapped1(of64, d, x, func(x uint64) uint64 { return x &^ (1 << 63) })
	}
	flush := func(x uint32) uint32 { return x }
	if b.has("ftz") {
		flush = func(x uint32) uint32 { return math.Float32bits(flushed(f32(x))) }
	}
	if negative {
		return mapped1(of32, d, x, func(x uint32) uint32 { return flush(x) ^ 1<<31 })
	}
	return mapped1(of32, d, x, func(x uint32) uint32 { return flush(x) &^ (1 << 31) })
}

// compileElementary compiles rcp, sqrt and the approximations, which are as exact as float64 makes them.
func compileElementary(b *binder) exec {
	t := b.dtype()
	b.count(2)
	if !t.Float() {
		b.bad("not for this type")
	}
	d, x := b.dest(0, t), b.source(1, t)
	if t.Bits == 64 {
		f := elementary64(b)
		return mapped1(of64, d, x, func(x uint64) uint64 { return math.Float64bits(f(math.Float64frombits(x))) })
	}
	f := elementary32(b)
	in, out := wrapped32(b)
	return mapped1(of32, d, x, func(x uint32) uint32 { return bits32(out(f(in(f32(x))))) })
}

func elementary64(b *binder) func(float64) float64 {
	if b.rounding(f64Type); b.Inst.Mods[0] == "rcp" {
		return func(x float64) float64 { return 1 / x }
	}
	if b.Inst.Mods[0] != "sqrt" {
		b.bad("not for f64")
	}
	return math.Sqrt
}

func elementary32(b *binder) func(float32) float32 {
	op := b.Inst.Mods[0]
	approximate := b.has("approx")
	if op == "rcp" || op == "sqrt" {
		r := b.rounding(f32Type)
		if op == "rcp" {
			return func(x float32) float32 { return quotient32(1, x, r) }
		}
		return func(x float32) float32 { return root32(x, r) }
	}
	if !approximate {
		b.bad("only .approx is run")
	}
	f := map[string]func(float64) float64{
		"rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) },
		"ex2":   math.Exp2, "lg2": math.Log2, "tanh": math.Tanh, "sin": math.Sin, "cos": math.Cos,
	}[op]
	return func(x float32) float32 { return float32(f(float64(x))) }
}

// compileCopySign compiles copysign: the value of the second operand with the sign of the first.
func compileCopySign(b *binder) exec {
	t := b.dtype()
	b.count(3)
	if !t.Float() {
		b.bad("not for this type")
	}
	sign := uint64(1) << (t.Bits - 1)
	return lane2(b, t, b.dest(0, t), b.source(1, t), b.source(2, t), func(x, y uint64) uint64 { return y&^sign | x&sign })
}

// compileTestFloat compiles testp.
func compileTestFloat(b *binder) exec {
	t := b.dtype()
	b.count(2)
	if !t.Float() {
		b.bad("not for this type")
	}
	smallest := 0x1p-126
	if t.Bits == 64 {
		smallest = 0x1p-1022
	}
	tests := map[string]func(float64) bool{
		"finite":     func(x float64) bool { return x-x == 0 },
		"infinite":   func(x float64) bool { return math.IsInf(x, 0) },
		"number":     func(x float64) bool { return x == x },
		"notanumber": func(x float64) bool { return x != x },
		"normal":     func(x float64) bool { return math.Abs(x) >= smallest && x-x == 0 },
		"subnormal":  func(x float64) bool { return math.Abs(x) < smallest && x != 0 },
	}
	f := tests[b.oneOf("finite", "infinite", "number", "notanumber", "normal", "subnormal")]
	if f == nil {
		b.bad("not a test that is run")
	}
	d, x := b.dest(0, predType), b.source(1, t)
	if t.Bits == 64 {
		return compared(of64, d, x, x, func(x, _ uint64) bool { return f(math.Float64frombits(x)) })
	}
	return compared(of32, d, x, x, func(x, _ uint32) bool { return f(float64(f32(x))) })
}
