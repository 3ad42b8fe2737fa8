package ptx

import "math"

// rounding is how a float that lies between two becomes one of them.
type rounding uint8

const (
	nearestEven rounding = iota
	towardZero
	downward
	upward
)

// roundings are the parts of an opcode that choose one, of floats and of whole numbers.
var roundings = map[string]rounding{
	"rn": nearestEven, "rz": towardZero, "rm": downward, "rp": upward,
	"rni": nearestEven, "rzi": towardZero, "rmi": downward, "rpi": upward,
}

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

// narrowed rounds an odd float64 to float32.
func narrowed(x float64, r rounding) float32 {
	near := float32(x)
	if r == nearestEven || x != x || float64(near) == x || math.IsInf(x, 0) {
		return near
	}
	switch {
	case float64(near) > x && (r == downward || r == towardZero && x > 0):
		return math.Nextafter32(near, float32(math.Inf(-1)))
	case float64(near) < x && (r == upward || r == towardZero && x < 0):
		return math.Nextafter32(near, float32(math.Inf(1)))
	}
	return near
}

// sum32 is x + y, product32 x·y and so on, rounded once.
func sum32(x, y float32, r rounding) float32 {
	return fused32(x, 1, y, r)
}

// fused32 is x·y + z. The product of two float32 is exact as a float64; of the sum the rest is found exactly (Knuth).
func fused32(x, y, z float32, r rounding) float32 {
	p, c := float64(x)*float64(y), float64(z)
	s := p + c
	if s == 0 {
		return zeroSum(p, c, s, r)
	}
	t := s - p
	return narrowed(odd(s, (p-(s-t))+(c-t)), r)
}

// zeroSum is a sum that is exactly zero: of two opposite values it is -0 if rounding is downward, else +0.
func zeroSum(p, c, s float64, r rounding) float32 {
	if r == downward && math.Signbit(p) != math.Signbit(c) {
		return float32(math.Copysign(0, -1))
	}
	return float32(s)
}

func product32(x, y float32, r rounding) float32 { return narrowed(float64(x)*float64(y), r) }

func quotient32(x, y float32, r rounding) float32 {
	q := float64(x) / float64(y)
	if q == 0 || math.IsInf(q, 0) || q != q || math.IsInf(float64(y), 0) {
		return narrowed(q, r)
	}
	rest := math.FMA(-q, float64(y), float64(x)) // exact, with the sign of y turned around
	if y < 0 {
		rest = -rest
	}
	return narrowed(odd(q, rest), r)
}

func root32(x float32, r rounding) float32 {
	s := math.Sqrt(float64(x))
	return narrowed(odd(s, math.FMA(-s, s, float64(x))), r)
}

// minimum and maximum order -0 before +0 and ignore a NaN beside a number.
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

// flushed is x, or zero of its sign if it is a denormal.
func flushed(x float32) float32 {
	if b := math.Float32bits(x); b&0x7f800000 == 0 {
		return math.Float32frombits(b & (1 << 31))
	}
	return x
}

// saturated is x within 0 and 1; a NaN is 0.
func saturated(x float32) float32 {
	switch {
	case x > 1:
		return 1
	case x > 0:
		return x
	}
	return 0
}
