//go:build amd64

package kern

import (
	"math"
	"unsafe"
)

func (t *TilesIn) asm(s Set) {
	args := tilesInArgs{tiles: t.Tiles, runs: t.Runs, bytes: 4 * t.N, x: at(t.X, 0), step: 4 * t.Step, run: 4 * (t.Run - t.N),
		pixel: 4 * t.Pixel, row: 4 * t.Row, v: at(t.V, 0), part: 4 * t.Part}
	if s == AVX512 {
		tilesInAVX512(&args)
	} else {
		tilesInAVX2(&args)
	}
}

// floors are the least outputs, without ReLU and with it.
var floors = [2]float32{float32(math.Inf(-1)), 0}

func (t *TilesOut) asm(s Set) {
	args := tilesOutArgs{tiles: t.Tiles, bytes: 4 * t.N, m: at(t.M, 0), part: 4 * t.Part, bias: at(t.Bias, 0), out: at(t.Out, 0),
		step: 4 * (t.Step - t.N), pixel: 4 * t.Pixel, row: 4 * t.Row, floor: unsafe.Pointer(&floors[0])}
	if t.ReLU {
		args.floor = unsafe.Pointer(&floors[1])
	}
	switch wide := s == AVX512; {
	case wide && t.Taps == 2:
		tilesOutAVX512_2(&args)
	case wide:
		tilesOutAVX512_3(&args)
	case t.Taps == 2:
		tilesOutAVX2_2(&args)
	default:
		tilesOutAVX2_3(&args)
	}
}
