package kernels

import (
	"errors"
	"regexp"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/ptx"
)

// A kernel whose barrier is missing is right on most runs of a device. Here it is a fault: every barrier is needed, and there
// is none too few, as all tests pass.
func TestBarriers_AreNeeded(t *testing.T) {
	if testing.Short() {
		t.Skip("reads every module that has barriers many times")
	}
	runs := map[string]func(r *rig) error{
		"dense": func(r *rig) error {
			return again(r, DenseKernel, Tiles(70, 70), Product[Matrix, Matrix, Matrix]{A: r.matrix(70, 40), B: r.matrix(70, 40), C: r.matrix(70, 70), Rows: 70, Columns: 70, Depth: 40})
		},
		"outer": func(r *rig) error {
			return again(r, OuterKernel, driver.Dim{X: 1, Y: 1, Z: 2}, Outer[Matrix, Matrix]{A: r.matrix(200, 9), B: r.matrix(200, 9), C: r.matrix(20, 9), Part: 90,
				Rows: 200, Height: 9, Width: 9, Parts: 2, Run: 64})
		},
		"conv": func(r *rig) error {
			x, out := r.matrix(3, 7*7*3), r.matrix(3, 7*7*5)
			return again(r, ConvKernel, Tiles(147, 5), Product[Windows, Matrix, Pixels]{A: windows(x, []int{7, 7, 3}, []int{7, 7, 5}, 3, 1, 1), B: r.matrix(5, 27),
				C: pixels(out, []int{7, 7, 5}), Rows: 147, Columns: 5, Depth: 27})
		},
		"convBack": func(r *rig) error { // of a kernel of 3 with a margin of 1 over images of 7 by 7 and 3 channels, with 5 outputs
			g, dx := r.matrix(3, 7*7*5), r.matrix(3, 7*7*3)
			a := windows(g, []int{7, 7, 5}, []int{7, 7, 3}, 3, 1, 1)
			return again(r, ConvBackKernel, Tiles(147, 3), Product[Windows, Taps, Pixels]{A: a,
				B: Taps{Weight: r.matrix(27, pad(5)).Data, Kernel: 3, Channels: 3, Outputs: 5, Row: int32(pad(5)), Stride: 1, Rows: 3, Columns: 3},
				C: pixels(dx, []int{7, 7, 3}), Rows: 147, Columns: 3, Depth: 45})
		},
		"convOuter": func(r *rig) error {
			return again(r, ConvOuterKernel, driver.Dim{X: 1, Y: 1, Z: 2}, Outer[Windows, Pixels]{
				A: windows(r.matrix(3, 7*7*3), []int{7, 7, 3}, []int{7, 7, 5}, 3, 1, 1), B: pixels(r.matrix(3, 7*7*5), []int{7, 7, 5}),
				C: r.matrix(2*27, 5), Part: 27 * 5, Rows: 147, Height: 27, Width: 5, Parts: 2, Run: 64})
		},
		"reduce": func(r *rig) error {
			return again(r, ReduceKernel, Blocks(300), Reduce{Parts: r.matrix(2, 300).Data, Grad: r.matrix(1, 300).Data, Squares: put[float64](r, 0, 0), Part: 300, Size: 300, Count: 2})
		},
		"loss": func(r *rig) error {
			column := func() Address { return r.matrix(1, 300).Data }
			return again(r, LossKernel, Blocks(300), Loss{Value: column(), OldLogProb: column(), OldValue: column(), Advantage: column(), Target: column(),
				LogProb: column(), Sums: put(r, make([]float64, 2*LossSums)...), Rows: 300, LD: 300, Descend: 1})
		},
		"decide": func(r *rig) error {
			return again(r, DecideKernel, driver.Dim{X: 1}, Decide{Squares: put[float64](r, 1, 2), OfActor: put[byte](r, 0, 1),
				Sums: put(r, make([]float64, LossSums)...), Control: put(r, control()), Blocks: 2, LossBlocks: 1, Rows: 10})
		},
		"advantages": func(r *rig) error {
			return again(r, AdvantagesKernel, driver.Dim{X: 1}, Advantages{Advantage: r.matrix(1, 2000).Data, Order: put(r, make([]uint32, 2000)...), Ends: put[int32](r, 2000),
				Moments: put[float64](r, 0, 0)})
		},
		"returns": func(r *rig) error {
			return again(r, ReturnsKernel, driver.Dim{X: 1}, Returns{Target: r.matrix(1, 2000).Data, Value: r.matrix(1, 2000).Data, Valid: r.ascending(2000), Control: put(r, control()),
				Deviation: 1, Count: 2000, First: 1})
		},
	}
	for _, e := range Entries() {
		if run := runs[e.Name]; run != nil || len(barriersOf(e)) > 0 {
			withoutBarriers(t, e, run)
		}
	}
}

// barriersOf finds the barriers of a kernel in the text of its module.
func barriersOf(e Entry) [][]int {
	text := string(PTX(e.Module))
	begin, end := entryText(text, e.Name)
	found := regexp.MustCompile(`\tbar\.sync[^\n]*\n`).FindAllStringIndex(text[begin:end], -1)
	for _, at := range found {
		at[0], at[1] = at[0]+begin, at[1]+begin
	}
	return found
}

// summing begin sums over all threads with a barrier that keeps each sum apart from the previous one, and so is idle in the first.
var summing = []string{"reduce", "decide", "advantages", "returns"}

// withoutBarriers runs a kernel without each of its barriers.
func withoutBarriers(t *testing.T, e Entry, run func(r *rig) error) {
	text, barriers := string(PTX(e.Module)), barriersOf(e)
	if len(barriers) == 0 || run == nil {
		t.Errorf("%s has %d barriers; a way to run it: %t", e.Name, len(barriers), run != nil)
		return
	}
	for i, at := range barriers {
		if i == 0 && slices.Contains(summing, e.Name) {
			continue
		}
		r := newRig(t)
		r.device = nil
		var err error
		if r.other, err = ptx.Parse(text[:at[0]] + text[at[1]:]); err != nil {
			t.Fatal(err)
		}
		var fault *ptx.Fault
		for range 20 {
			if err = run(r); errors.As(err, &fault) {
				break
			}
		}
		if fault == nil || fault.Kind != ptx.SharedRace && fault.Kind != ptx.Uninitialised {
			t.Errorf("%s without barrier %d of %d: %v", e.Name, i, len(barriers), err)
		}
	}
}

// again runs a kernel.
func again[T any](r *rig, k Kernel[T], grid driver.Dim, args T) error {
	return try(r, k, grid, bytesOf(&args))
}

// matrix makes a random one.
func (r *rig) matrix(rows, columns int) Matrix {
	return Matrix{Data: put(r, r.floats(rows*columns)...), Row: int32(columns), Column: 1}
}

// ascending are the numbers below n.
func (r *rig) ascending(n int) Address {
	var x []uint32
	for i := range n {
		x = append(x, uint32(i))
	}
	return put(r, x...)
}
