package ptx

import "math"

// canonicalNaN is what instructions on f32 make instead of any NaN.
const canonicalNaN = 0x7fffffff

// bits32 returns the bits of a result.
func bits32(x float32) uint32 {
	if x != x {
		return canonicalNaN
	}
	return math.Float32bits(x)
}

func f32(x uint32) float32 { return math.Float32frombits(x) }

// odd turns the float64 nearest to a value into the one of its two neighbours whose last bit is set, if it is not the value
// itself; rest has the sign of value minus x. Rounding that to at most 51 bits is rounding the value: rounding to
// the nearest float64 first and then to the nearest float32 would round ties twice.
func odd(x, rest float64) float64 {
	b := math.Float64bits(x)
	if rest == 0 || b&1 != 0 || math.IsInf(x, 0) || rest != rest {
		return x
	}
	if (rest > 0) == (x > 0) {
		return math.Float64frombits(b + 1)
	}
	return math.Float64frombits(b - 1)
}

// fused32 is x·y + z, rounded once. The product of two float32 is exact as a float64; of the sum the rest is found exactly (Knuth).
func fused32(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z)
	s := p + c
	t := s - p
	return float32(odd(s, (p-(s-t))+(c-t)))
}

// bfloat rounds to bf16.
func bfloat(x float32) uint32 {
	if x != x {
		return 0x7fff
	}
	b := math.Float32bits(x)
	return (b + 0x7fff + b>>16&1) >> 16
}

// minimum and maximum order -0 before +0 and ignore a NaN next to a number.
func minimum[F float32 | float64](x, y F) F {
	switch {
	case x != x:
		return y
	case y != y || x < y || x == y && math.Signbit(float64(x)):
		return x
	}
	return y
}

func maximum[F float32 | float64](x, y F) F {
	switch {
	case x != x:
		return y
	case y != y || x > y || x == y && !math.Signbit(float64(x)):
		return x
	}
	return y
}
