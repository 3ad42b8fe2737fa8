package kern

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// filtering is a row of tiles of random size, its channels multiplied with filters.
type filtering struct {
	in     TilesIn
	out    TilesOut
	filter []float32 // [taps][taps][channels][Panel]
	parts  []float32 // [layer.TileParts][channels][Panel]
}

func newFiltering(r *rand.Rand, taps int) *filtering {
	f := &filtering{}
	in, out := &f.in, &f.out
	in.Tiles, in.Runs, in.N = 1+r.IntN(5), 1+r.IntN(3), Panel*(1+r.IntN(3))
	in.Pixel, in.Step = in.N+r.IntN(4), (5-taps)*in.N+r.IntN(40)
	in.Row = 3*in.Pixel + in.Tiles*in.Step + r.IntN(9)
	in.Run = 4*in.Row + r.IntN(9)
	in.X = random(r, in.Runs*in.Run+4*in.Row)
	channels := in.Runs * in.N
	in.Part = in.Tiles*channels + r.IntN(20)
	in.V = random(r, layer.TileParts*in.Part)
	out.Tiles, out.N, out.Taps, out.ReLU = in.Tiles, Panel*(1+r.IntN(3)), taps, r.IntN(2) == 0
	out.Part = out.Tiles*out.N + r.IntN(20)
	out.M, out.Bias = random(r, layer.TileParts*out.Part), random(r, out.N)
	out.Pixel = out.N + r.IntN(4)
	out.Step = 3*out.Pixel + r.IntN(9)
	out.Row = out.Tiles*out.Step + r.IntN(9)
	out.Out = random(r, 4*out.Row)
	f.filter, f.parts = random(r, taps*taps*channels*Panel), make([]float32, layer.TileParts*channels*Panel)
	for c := range channels {
		TileFilter(f.parts[c*Panel:], channels*Panel, f.filter[c*Panel:], taps*channels*Panel, channels*Panel, taps)
	}
	return f
}

// Transforms are additions alone, so all sets have the same bits, and write nothing else.
func TestTilesAreTheSameInEverySet(t *testing.T) {
	r := rng(t)
	for range rounds(200) {
		f := newFiltering(r, 2+r.IntN(2))
		v, out := slices.Clone(f.in.V), slices.Clone(f.out.Out)
		f.in.Spread(Generic)
		f.out.Gather(Generic)
		wantV, wantOut := f.in.V, f.out.Out
		for s := AVX2; s <= Detect(); s++ {
			in, o := f.in, f.out
			in.V, o.Out = slices.Clone(v), slices.Clone(out)
			in.Spread(s)
			o.Gather(s)
			if !slices.Equal(in.V, wantV) || !slices.Equal(o.Out, wantOut) {
				t.Fatalf("%v: %d taps, tiles %d of %d × %d, outputs %d: not what plain Go gives", s, o.Taps, in.Tiles, in.Runs, in.N, o.N)
			}
		}
	}
}

func TestTilesEqualTheConvolutionInFloat64(t *testing.T) {
	r := rng(t)
	eachSet(t, func(t *testing.T, s Set) {
		for range rounds(40) {
			f := newFiltering(r, 2+r.IntN(2))
			in, out := &f.in, &f.out
			out.N = Panel
			in.Spread(s)
			channels := in.Runs * in.N
			for p := range layer.TileParts {
				s.Gemm(&Gemm{M: in.Tiles, N: Panel, K: channels, A: in.V[p*in.Part:], ARow: channels, ACol: 1,
					B: f.parts[p*channels*Panel:], BRow: Panel, BPanel: channels * Panel, C: out.M[p*out.Part:], CRow: Panel, CPanel: Panel})
			}
			out.Gather(s)
			side := 5 - out.Taps
			for i := range in.Tiles * side * side * Panel {
				tile, y, x, o := i/Panel/side/side, i/Panel/side%side, i/Panel%side, i%Panel
				want := f.direct(tile, y, x, o)
				if got := float64(out.Out[tile*out.Step+y*out.Row+x*out.Pixel+o]); !(math.Abs(got-want) < 1e-4) {
					t.Fatalf("%d taps, %d channels: output %d, %d of tile %d is %v, want %v", out.Taps, channels, y, x, tile, got, want)
				}
			}
		}
	})
}

// direct is an output by its definition.
func (f *filtering) direct(tile, y, x, o int) float64 {
	in, sum := &f.in, float64(f.out.Bias[o])
	channels, taps := in.Runs*in.N, f.out.Taps
	for k := range taps * taps * channels {
		i, j, c := k/channels/taps, k/channels%taps, k%channels
		d := in.X[tile*in.Step+(y+i)*in.Row+(x+j)*in.Pixel+c/in.N*in.Run+c%in.N]
		sum += float64(d) * float64(f.filter[k*Panel+o])
	}
	if f.out.ReLU {
		sum = max(sum, 0)
	}
	return sum
}
