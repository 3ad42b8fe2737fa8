package rlmath

import "math"

var inf = math.Inf(1)

// twice is the number hi + lo, lo being at most half a unit of hi's last place.
type twice struct{ hi, lo float64 }

// mul rounds a product, so that no compiler fuses it with a sum.
func mul(a, b float64) float64 { return float64(a * b) }

// sum returns a + b without error.
func sum(a, b float64) twice {
	s := a + b
	ofB := s - a
	ofA := s - ofB
	return twice{s, (a - ofA) + (b - ofB)}
}

// product returns a * b without error, where a and b are below 2^900.
func product(a, b float64) twice {
	const split = 134217729 // 2^27 + 1 splits 53 bits into halves
	p, ta, tb := mul(a, b), mul(a, split), mul(b, split)
	ah, bh := ta-(ta-a), tb-(tb-b)
	al, bl := a-ah, b-bh
	return twice{p, ((mul(ah, bh) - p) + mul(ah, bl) + mul(al, bh)) + mul(al, bl)}
}

func (a twice) add(b twice) twice {
	s := sum(a.hi, b.hi)
	return sum(s.hi, s.lo+(a.lo+b.lo))
}

func (a twice) mul(b twice) twice {
	p := product(a.hi, b.hi)
	return sum(p.hi, p.lo+(mul(a.hi, b.lo)+mul(a.lo, b.hi)))
}

// nearest rounds |x| < 2^51 to the nearest whole number, halves to even.
func nearest(x float64) float64 { return (x + 0x1.8p52) - 0x1.8p52 }

// scale returns x * 2^k for |k| < 2000, rounded once if x is near 1.
func scale(x float64, k int) float64 {
	half := k / 2
	return mul(mul(x, math.Float64frombits(uint64(1023+half)<<52)), math.Float64frombits(uint64(1023+k-half)<<52))
}

// horner returns c[0] + z*(c[1] + z*(c[2] + …)).
func horner(z float64, c []float64) float64 {
	s := c[len(c)-1]
	for i := len(c) - 2; i >= 0; i-- {
		s = c[i] + mul(z, s)
	}
	return s
}
