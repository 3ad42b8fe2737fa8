package rlmath

import "math"

// nan is the one NaN of all functions.
var nan = math.Float64frombits(0x7ff8000000000000)

// Abs returns x without its sign.
func Abs(x float64) float64 { return math.Abs(x) }

// Floor returns the greatest whole number that is not above x.
func Floor(x float64) float64 { return one(x, math.Floor) }

// Ceil returns the least whole number that is not below x.
func Ceil(x float64) float64 { return one(x, math.Ceil) }

// Trunc returns x without its fraction.
func Trunc(x float64) float64 { return one(x, math.Trunc) }

// one returns what a function makes of a number, and the one NaN of all others.
func one(x float64, f func(float64) float64) float64 {
	if x != x {
		return nan
	}
	return f(x)
}

// Round rounds to the nearest whole number, halves away from zero.
func Round(x float64) float64 {
	whole := Trunc(x)
	if Abs(x-whole) >= 0.5 {
		return whole + math.Copysign(1, x)
	}
	return whole
}

// Sqrt returns the square root, the NaN below zero.
func Sqrt(x float64) float64 {
	if x >= 0 {
		return math.Sqrt(x)
	}
	return nan
}

// Fmod returns x - n*y, n being x/y without its fraction, with the sign of x: a long division, each step exact.
func Fmod(x, y float64) float64 {
	rest, divisor := Abs(x), Abs(y)
	part := divisor
	if !(rest < inf) || !(divisor > 0) {
		return nan
	}
	if rest < divisor {
		return x
	}
	for rest-part >= part {
		part += part
	}
	for ; part >= divisor; part *= 0.5 {
		if rest >= part {
			rest -= part
		}
	}
	return math.Copysign(rest, x)
}
