package rlmath

import "math"

var halfPi = twice{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54}

// twoOverPi are the digits of 2/pi.
var twoOverPi = [...]uint32{
	0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561,
	0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484,
	0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f,
	0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b,
	0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab,
}

// words are the digits of 2/pi that matter to one argument, limbs their product with a mantissa.
const (
	words = 7
	limbs = words + 3
)

// digits returns mantissa * words of 2/pi, lowest first.
func digits(mantissa uint64, skip int) (limb [limbs]uint32) {
	for half := range 2 {
		carry, m := uint64(0), uint64(uint32(mantissa>>(32*half)))
		for i := range words {
			carry += m*uint64(twoOverPi[skip+words-1-i]) + uint64(limb[i+half])
			limb[i+half] = uint32(carry)
			carry >>= 32
		}
		limb[words+half] = uint32(carry)
	}
	return limb
}

// quarterFar is quarter for any x: the digits of 2/pi that matter, times the mantissa, in whole numbers.
func quarterFar(x float64) (twice, uint32) {
	bits := math.Float64bits(Abs(x))
	exponent, skip := int(bits>>52)-1075, 0
	if exponent > 2 {
		skip = (exponent - 2) / 32 // words of which every bit is a multiple of four turns
	}
	limb := digits(bits&(1<<52-1)|1<<52, skip)
	// The binary point is this many bits up; quarters lie above it, the fraction of a quarter below.
	point := 32*(skip+words) - exponent
	var part [5]uint32
	for i := range part {
		two, at := uint64(0), point/32-i
		if at < limbs {
			two = uint64(limb[at])
		}
		if at+1 < limbs {
			two |= uint64(limb[at+1]) << 32
		}
		part[i] = uint32(two >> (point % 32))
	}
	flip := -(part[1] >> 31) // beyond the half: the next quarter, and back
	high, low := uint64(part[1]^flip)<<32|uint64(part[2]^flip), uint64(part[3]^flip)<<32|uint64(part[4]^flip)
	hi, lo := mul(float64(high>>11), 0x1p-53), mul(float64((high&0x7ff)<<53|low>>11), 0x1p-117)
	quarter := part[0] - flip // flip is -1
	if (x < 0) != (flip != 0) {
		hi, lo = -hi, -lo
	}
	if x < 0 {
		quarter = -quarter
	}
	return twice{hi, lo}.mul(halfPi), quarter & 3
}

// quarter takes the multiple of pi/2 nearest to a finite x away and returns which of four it was.
func quarter(x float64) (twice, uint32) {
	if Abs(x) <= 0.785398163397448279 {
		return twice{x, 0}, 0
	}
	if Abs(x) < 0x1p20 { // pi/2 in three parts, of which k times the first two is exact
		k := nearest(mul(x, 0x1.45f306dc9c883p-1))
		d := sum(x-mul(k, 0x1.921fb544p+0), -mul(k, 0x1.0b4611a6p-34))
		r := sum(d.hi, d.lo-mul(k, 0x1.3198a2e037073p-69))
		if Abs(r.hi) > 0x1p-30 {
			return r, uint32(int32(k)) & 3
		}
	}
	return quarterFar(x)
}

// Taylor's series.
var (
	sines = []float64{-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000,
		1.0 / 355687428096000}
	cosines = []float64{1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000,
		-1.0 / 6402373705728000}
	arcTangents = []float64{-1.0 / 3, 1.0 / 5, -1.0 / 7, 1.0 / 9, -1.0 / 11, 1.0 / 13, -1.0 / 15, 1.0 / 17}
)

// sinNear and cosNear are for |r| <= pi/4; the sum of the result is a little more exact than a float64.
func sinNear(r twice) twice {
	z := mul(r.hi, r.hi)
	return twice{r.hi, mul(mul(r.hi, z), horner(z, sines)) + mul(r.lo, 1-mul(0.5, z))}
}

func cosNear(r twice) twice {
	z := mul(r.hi, r.hi)
	half := mul(0.5, z)
	hi := 1 - half
	return twice{hi, ((1 - hi) - half) + (mul(mul(z, z), horner(z, cosines)) - mul(r.hi, r.lo))}
}

// turned returns the sine of x, or of x + turns quarters.
func turned(x float64, turns uint32) float64 {
	if !(Abs(x) < inf) {
		return nan
	}
	r, q := quarter(x)
	turns += q
	if turns&1 != 0 {
		r = cosNear(r)
	} else {
		r = sinNear(r)
	}
	if turns&2 != 0 {
		return -(r.hi + r.lo)
	}
	return r.hi + r.lo
}

// Sin returns the sine of x.
func Sin(x float64) float64 {
	if Abs(x) < 0x1p-27 {
		return x
	}
	return turned(x, 0)
}

// Cos returns the cosine of x.
func Cos(x float64) float64 { return turned(x, 1) }

// Tan returns the tangent of x.
func Tan(x float64) float64 {
	if Abs(x) < 0x1p-27 {
		return x
	}
	if !(Abs(x) < inf) {
		return nan
	}
	r, turns := quarter(x)
	s, c := sinNear(r), cosNear(r)
	s, c = sum(s.hi, s.lo), sum(c.hi, c.lo)
	if turns&1 != 0 {
		s, c = twice{-c.hi, -c.lo}, s
	}
	q := s.hi / c.hi
	back := product(q, c.hi)
	return q + ((s.hi-back.hi)-back.lo+(s.lo-mul(q, c.lo)))/c.hi
}

// sixteenths are the arc tangents of sixteenths.
var sixteenths = [...]twice{
	{0, 0}, {0, 0},
	{0x1.fd5ba9aac2f6ep-4, -0x1.cd37686760c17p-59}, {0x1.7b97b4bce5b02p-3, 0x1.347b0b4f881cap-58},
	{0x1.f5b75f92c80ddp-3, 0x1.8ab6e3cf7afbdp-57}, {0x1.362773707ebccp-2, -0x1.963a544b672d8p-57},
	{0x1.6f61941e4def1p-2, -0x1.c63aae6f6e918p-56}, {0x1.a64eec3cc23fdp-2, -0x1.24dec1b50b7ffp-56},
	{0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56}, {0x1.0657e94db30d0p-1, -0x1.d5b495f6349e6p-56},
	{0x1.1e00babdefeb4p-1, -0x1.928df287a668fp-58}, {0x1.345f01cce37bbp-1, 0x1.1021137c71102p-55},
	{0x1.4978fa3269ee1p-1, 0x1.2419a87f2a458p-56}, {0x1.5d58987169b18p-1, 0x1.0028e4bc5e7cap-57},
	{0x1.700a7c5784634p-1, -0x1.8c34d25aadef6p-56}, {0x1.819d0b7158a4dp-1, -0x1.bf76229d3b917p-56},
	{0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55},
}

// smaller returns the smaller and the larger of two coordinates, brought to numbers whose quotient is theirs.
func smaller(ax, ay float64) (n, d float64) {
	n, d = ax, ay
	if ay < ax {
		n, d = ay, ax
	}
	if d == inf {
		d = 1
		if n == inf {
			n = 1
		} else {
			n = 0
		}
	}
	if d == 0 {
		d = 1 // both are zero
	}
	if d > 0x1p900 {
		return mul(n, 0x1p-200), mul(d, 0x1p-200)
	}
	if d < 0x1p-900 {
		return mul(n, 0x1p200), mul(d, 0x1p200)
	}
	return n, d
}

// firstEighth returns the angle of a point whose coordinates are n <= d. It is brought near the next sixteenth c, as
// atan(n/d) = atan(c) + atan((n - c*d) / (d + c*n)).
func firstEighth(n, d float64) twice {
	i := int(mul(16, n)/d + 0.5)
	t, c := n/d, mul(0.0625, float64(i))
	if i < 2 {
		i = 0
	} else {
		top := math.Float64frombits(math.Float64bits(d) &^ 0x7ffffff) // c times this is exact
		t = ((n - mul(c, top)) - mul(c, d-top)) / (d + mul(c, n))
	}
	z := mul(t, t)
	tail := mul(mul(t, z), horner(z, arcTangents))
	angle := sum(sixteenths[i].hi, t)
	angle.lo += sixteenths[i].lo + tail
	return angle
}

// Atan2 returns the angle of the point (x, y), from -pi to pi.
func Atan2(y, x float64) float64 {
	ax, ay := Abs(x), Abs(y)
	if !(ax >= 0) || !(ay >= 0) {
		return nan
	}
	angle := firstEighth(smaller(ax, ay))
	behind, steep := math.Signbit(x), ay > ax
	turns, sign := 0.0, -1.0 // from the axis that is nearest
	switch {
	case steep:
		turns = 1
	case behind:
		turns = 2
	}
	if steep == behind {
		sign = 1
	}
	if turns > 0 {
		base := sum(mul(turns, halfPi.hi), mul(sign, angle.hi))
		angle = twice{base.hi, base.lo + (mul(turns, halfPi.lo) + mul(sign, angle.lo))}
	}
	return math.Copysign(angle.hi+angle.lo, y)
}

// Atan returns the angle whose tangent is x.
func Atan(x float64) float64 { return Atan2(x, 1) }

// Asin returns the angle whose sine is x, the NaN beyond 1.
func Asin(x float64) float64 { return Atan2(x, Sqrt(mul(1-x, 1+x))) }

// Acos returns the angle whose cosine is x, the NaN beyond 1.
func Acos(x float64) float64 { return Atan2(Sqrt(mul(1-x, 1+x)), x) }
