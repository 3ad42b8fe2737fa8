package rlmath

import "math"

const (
	ln2Hi = 0x1.62e42fefa38p-1 // 42 bits: times an exponent it is exact
	ln2Lo = 0x1.ef35793c7673p-45
)

var (
	powers = []float64{0.5, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800,
		1.0 / 479001600, 1.0 / 6227020800}
	logarithms = []float64{2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21}
	tails      = []float64{1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23}
)

// expParts returns q and k with e^(hi+lo) = 2^k * (1 + q), for |hi| < 800.
func expParts(hi, lo float64) (q float64, k int) {
	n := nearest(mul(hi, 0x1.71547652b82fep+0))
	r := sum(hi-mul(n, ln2Hi), lo-mul(n, ln2Lo))
	z := mul(r.hi, r.hi)
	return r.hi + (mul(z, horner(r.hi, powers)) + r.lo), int(n)
}

// expTwice returns e^(hi+lo).
func expTwice(hi, lo float64) float64 {
	if hi > 710 {
		return inf
	}
	if hi < -746 {
		return 0
	}
	q, k := expParts(hi, lo)
	return scale(1+q, k)
}

// Exp returns e to the power of x.
func Exp(x float64) float64 {
	if x != x {
		return nan
	}
	return expTwice(x, 0)
}

// Tanh returns the hyperbolic tangent of x.
func Tanh(x float64) float64 {
	a := Abs(x)
	switch {
	case x != x:
		return nan
	case a < 0x1p-27:
		return x
	case a > 20:
		return math.Copysign(1, x)
	}
	q, k := expParts(mul(2, a), 0)
	two := scale(1, k)
	less := mul(two, q) + (two - 1) // e^2a - 1
	if a < 0.5 {
		return math.Copysign(less/(less+2), x)
	}
	return math.Copysign(1-2/(less+2), x)
}

// lnParts returns f and k with x = 2^k * (1 + f) and 1 + f near 1, for a finite x above zero.
func lnParts(x float64) (f float64, k int) {
	lift := 0
	if x < 0x1p-1022 {
		lift = 54
		x = mul(x, 0x1p54)
	}
	bits := math.Float64bits(x)
	mantissa, over := bits&(1<<52-1), 0
	if mantissa > 0x6a09e667f3bcd { // above the root of two
		over = 1
	}
	return math.Float64frombits(mantissa|uint64(1023-over)<<52) - 1, int(bits>>52) - 1023 - lift + over
}

// Ln returns the natural logarithm, the NaN below zero. It uses log(1+f) = 2*atanh(s) with s = f / (2+f), where 2*s = f - s*f.
func Ln(x float64) float64 {
	switch {
	case !(x >= 0):
		return nan
	case x == 0:
		return -inf
	case x == inf:
		return x
	}
	f, whole := lnParts(x)
	k, s := float64(whole), f/(2+f)
	z, half := mul(s, s), mul(mul(0.5, f), f)
	series := mul(z, horner(z, logarithms))
	return mul(k, ln2Hi) + (f - (half - (mul(s, half+series) + mul(k, ln2Lo))))
}

// lnTwice is the logarithm to some 100 bits, for Pow.
func lnTwice(x float64) twice {
	f, whole := lnParts(x)
	k, below := float64(whole), sum(2, f)
	q := f / below.hi
	back := product(q, below.hi)
	s := sum(q, ((f-back.hi)-back.lo-mul(q, below.lo))/below.hi)
	z := s.mul(s)
	series := twice{0x1.999999999999ap-3, -0x1.999999999999ap-57}.add(z.mul(twice{horner(z.hi, tails), 0}))
	series = twice{0x1.5555555555555p-2, 0x1.5555555555555p-56}.add(z.mul(series))
	rest := s.mul(z).mul(series)
	log := twice{mul(2, s.hi), mul(2, s.lo)}.add(twice{mul(2, rest.hi), mul(2, rest.lo)})
	return sum(mul(k, ln2Hi), mul(k, ln2Lo)).add(log)
}

// Pow returns x to the power of y, with the special cases of C.
func Pow(x, y float64) float64 {
	if y == 0 || x == 1 {
		return 1
	}
	if x != x || y != y {
		return nan
	}
	a, ay := Abs(x), Abs(y)
	negative, whole, sign := math.Signbit(x), ay >= 0x1p53 || Trunc(y) == y, 1.0
	if negative && ay < 0x1p53 && whole && int64(y)&1 != 0 {
		sign = -1
	}
	if a == 1 && (whole || ay == inf) {
		return sign
	}
	if a == 0 || a == inf || ay == inf {
		return bound(sign, (a > 1) == (y > 0))
	}
	if negative && !whole {
		return nan
	}
	log := lnTwice(a)
	if t := mul(y, log.hi); !(Abs(t) < 800) {
		return bound(sign, t > 0)
	}
	p := product(y, log.hi)
	return mul(sign, expTwice(p.hi, p.lo+mul(y, log.lo)))
}

// bound returns what is beyond all numbers, or zero.
func bound(sign float64, large bool) float64 {
	if large {
		return mul(sign, inf)
	}
	return mul(sign, 0)
}
