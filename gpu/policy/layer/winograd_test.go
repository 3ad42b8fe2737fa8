package layer

import "testing"

// Convolutions are computed in tiles where two or three taps meet whole groups of channels and a tile fits the image.
func TestTilingSaysWhichConvolutionsAreComputedInTiles(t *testing.T) {
	for _, c := range []struct {
		op   Conv2D
		in   []int
		want Tiling // zero: it is not
	}{
		{Conv2D{Window: Window{Kernel: 8, Stride: 4}, Out: 32}, []int{84, 84, 4}, Tiling{Taps: 2, Side: 3, Rows: 7, Columns: 7, Line: 16, Depth: 64}},
		{Conv2D{Window: Window{Kernel: 4, Stride: 2}, Out: 64}, []int{20, 20, 32}, Tiling{Taps: 2, Side: 3, Rows: 3, Columns: 3, Line: 64, Depth: 128}},
		{Conv2D{Window: Window{Kernel: 3, Stride: 1}, Out: 64}, []int{9, 9, 64}, Tiling{Taps: 3, Side: 2, Rows: 4, Columns: 4, Line: 64, Depth: 64}},
		{Conv2D{Window: Window{Kernel: 3, Stride: 1, Pad: 1}, Out: 16}, []int{2, 5, 16}, Tiling{Taps: 3, Side: 2, Rows: 1, Columns: 3, Line: 16, Depth: 16}},
		{Conv2D{Window: Window{Kernel: 3, Stride: 1}, Out: 64}, []int{3, 9, 64}, Tiling{}},
		{Conv2D{Window: Window{Kernel: 8, Stride: 4}, Out: 32}, []int{84, 84, 3}, Tiling{}},
		{Conv2D{Window: Window{Kernel: 8, Stride: 4}, Out: 33}, []int{84, 84, 4}, Tiling{}},
		{Conv2D{Window: Window{Kernel: 3, Stride: 2, Pad: 1}, Out: 16}, []int{9, 9, 16}, Tiling{}},
		{Conv2D{Window: Window{Kernel: 1, Stride: 1}, Out: 16}, []int{9, 9, 16}, Tiling{}},
		{Conv2D{Window: Window{Kernel: 4, Stride: 1}, Out: 16}, []int{9, 9, 16}, Tiling{}},
		{Conv2D{Window: Window{Kernel: 9, Stride: 1}, Out: 16}, []int{8, 8, 16}, Tiling{}},
	} {
		got, ok := c.op.Tiling(c.in)
		if ok != (c.want != Tiling{}) || ok && got != c.want {
			t.Errorf("%v of %v: %+v, %t, want %+v", &c.op, c.in, got, ok, c.want)
		}
	}
	tiling := Tiling{Side: 3}
	for tile, want := range []int{0, 3, 5} {
		if got := tiling.First(tile, 8); got != want {
			t.Errorf("tile %d of 8 outputs begins at %d, want %d", tile, got, want)
		}
	}
}
