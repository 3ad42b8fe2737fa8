// Command math is math.c of the examples in Go: it shows the bits of package rlmath.
package main

import (
	"math"

	"github.com/rlhost/rlhost/sdk"
	"github.com/rlhost/rlhost/sdk/rlmath"
	"github.com/rlhost/rlhost/sdk/wasm"
)

const draws = 64

func first(f func(float64) float64) func(x, y float64) float64 {
	return func(x, _ float64) float64 { return f(x) }
}

var functions = []func(x, y float64) float64{
	first(rlmath.Sin), first(rlmath.Cos), first(rlmath.Tan), first(rlmath.Asin), first(rlmath.Acos), first(rlmath.Atan), rlmath.Atan2,
	first(rlmath.Exp), first(rlmath.Ln), rlmath.Pow, first(rlmath.Sqrt), first(rlmath.Tanh), first(rlmath.Floor), first(rlmath.Ceil),
	first(rlmath.Trunc), first(rlmath.Round), rlmath.Fmod,
}

type shown struct {
	function func(x, y float64) float64
	steps    int
}

// draw returns a number of moderate size, of any size, near a multiple of a quarter turn, or any pattern of bits.
func draw(rng *sdk.Rand) float64 {
	size := [...]float64{1, 8, 1000, 1e7}
	bits := rng.Next()
	unit := float64(int64(rng.Next()>>11)) * 0x1p-53
	switch bits & 7 {
	case 0:
		return math.Float64frombits(rng.Next())
	case 1:
		return float64(int64(bits>>40)) * (3.14159265358979311600e+00 / 2)
	case 2:
		return float64(int32(bits>>32)) / 2
	case 3:
		return math.Float64frombits(0x3ff0000000000000+bits>>32) - 1 // small
	default:
		return (2*unit - 1) * size[bits&3]
	}
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

func (s *shown) Reset(_ *sdk.Rand, obs []float32) {
	s.steps = 0
	clear(obs)
}

func (s *shown) Step(rng *sdk.Rand, action []int32, obs []float32) sdk.Result {
	hash := 0xCBF29CE484222325 + uint64(action[0])
	for range draws {
		x := draw(rng)
		hash = mix(hash ^ math.Float64bits(s.function(x, draw(rng))))
	}
	for i := range obs {
		obs[i] = float32(hash >> (16 * i) & 0xffff)
	}
	s.steps++
	return sdk.Result{Truncated: s.steps == 100}
}

func init() {
	wasm.Serve(sdk.Spec{Name: "math@1", Action: sdk.Discrete(2), Obs: sdk.Box(0, 0, 4), EpisodeLimit: 100},
		func(c *sdk.Config) (*shown, error) { return &shown{function: functions[c.Int("function", 0)]}, nil })
}

func main() {}
