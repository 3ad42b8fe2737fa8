package kernels

import (
	"testing"

	"github.com/rlhost/rlhost/gpu/cuda/driver"
)

// shapes are rows, columns and depth: one of each, less and more than a tile, whole tiles.
var shapes = [][3]int{{1, 1, 1}, {3, 5, 17}, {65, 66, 33}, {64, 64, 16}, {130, 16, 4}}

func TestDense_IsOneChainFromTheBias(t *testing.T) {
	for _, s := range shapes {
		rows, columns, depth := s[0], s[1], s[2]
		for epilogue := None; epilogue <= DSiLU; epilogue++ {
			r := newRig(t)
			start := Start(int(epilogue) % 3)
			aRow, bRow, cRow := depth+3, columns+5, columns+2
			a, b, bias := r.floats((rows-1)*aRow+depth), r.floats((depth-1)*bRow+columns), r.floats(columns)
			h, c := r.floats((rows-1)*cRow+columns), r.floats((rows-1)*cRow+columns)
			args := Product[Matrix, Matrix, Matrix]{A: Matrix{Data: put(r, a...), Row: int32(aRow), Column: 1},
				B: Matrix{Data: put(r, b...), Row: 1, Column: int32(bRow)}, C: Matrix{Data: room[float32](r, len(c)), Row: int32(cRow), Column: 1},
				Rows: int32(rows), Columns: int32(columns), Depth: int32(depth), Start: start, Epilogue: epilogue}
			if start == Bias {
				args.Bias = put(r, bias...)
			}
			if epilogue >= DTanh {
				args.H = put(r, h...)
			}
			want := filled(len(c), poison)
			if start == Add {
				copy(view[float32](r, args.C.Data, len(c)), c)
				copy(want, c)
			}
			for i := range rows {
				for j := range columns {
					at := i*cRow + j
					sum := float32(0)
					switch start {
					case Bias:
						sum = bias[j]
					case Add:
						sum = c[at]
					}
					for k := range depth {
						sum = fma(a[i*aRow+k], b[k*bRow+j], sum)
					}
					want[at] = activate(epilogue, sum, h[at])
				}
			}
			run(r, DenseKernel, Tiles(rows, columns), args)
			same(t, "C", get[float32](r, args.C.Data, len(c)), want)
			if epilogue == DELU {
				runShort(r, DenseKernel, Tiles(rows, columns), args)
			}
		}
	}
}

// The gradient of a dense node's input: B is the weights the other way, and A of a head lies by columns.
func TestDense_TakesMatricesEitherWay(t *testing.T) {
	r := newRig(t)
	rows, columns, depth := 67, 19, 5
	a, b := r.floats(depth*rows), r.floats(columns*depth)
	args := Product[Matrix, Matrix, Matrix]{A: Matrix{Data: put(r, a...), Row: 1, Column: int32(rows)},
		B: Matrix{Data: put(r, b...), Row: int32(depth), Column: 1}, C: Matrix{Data: room[float32](r, rows*columns), Row: int32(columns), Column: 1},
		Rows: int32(rows), Columns: int32(columns), Depth: int32(depth)}
	run(r, DenseKernel, Tiles(rows, columns), args)
	want := make([]float32, rows*columns)
	for i := range rows {
		for j := range columns {
			for k := range depth {
				want[i*columns+j] = fma(a[k*rows+i], b[j*depth+k], want[i*columns+j])
			}
		}
	}
	same(t, "C", get[float32](r, args.C.Data, len(want)), want)
}

// inParts calls visit with the rows of each chain of each part.
func inParts(rows, parts, size int, visit func(part, lo, hi int)) {
	for part := range parts {
		for first := part * size; first < rows; first += parts * size {
			for lo := first; lo < min(first+size, rows); lo += 32 {
				visit(part, lo, min(lo+32, first+size, rows))
			}
		}
	}
}

func TestOuter_IsTheSumOfChainsInParts(t *testing.T) {
	for _, s := range [][4]int{{1, 1, 1, 3}, {200, 5, 66, 3}, {70, 65, 17, 2}, {1000, 3, 4, 5}} {
		rows, height, width, parts := s[0], s[1], s[2], s[3]
		for _, size := range []int{64, 16} {
			r := newRig(t)
			a, b := r.floats(rows*height), r.floats(rows*width)
			part := height*width + 7
			args := Outer[Matrix, Matrix]{A: Matrix{Data: put(r, a...), Row: int32(height), Column: 1}, B: Matrix{Data: put(r, b...), Row: int32(width), Column: 1},
				C: Matrix{Data: room[float32](r, (parts-1)*part+height*width), Row: int32(width), Column: 1}, Part: int64(part),
				Rows: int32(rows), Height: int32(height), Width: int32(width), Parts: int32(parts), Run: int32(size)}
			want, biases := make([]float32, parts*height*width), make([]float32, parts*width)
			inParts(rows, parts, size, func(p, lo, hi int) {
				for j := range width {
					for i := range height {
						chain := float32(0)
						for k := lo; k < hi; k++ {
							chain = fma(a[k*height+i], b[k*width+j], chain)
						}
						want[(p*height+i)*width+j] += chain
					}
					chain := float32(0)
					for k := lo; k < hi; k++ {
						chain += b[k*width+j]
					}
					biases[p*width+j] += chain
				}
			})
			grid := Tiles(height, width)
			grid.Z = parts
			run(r, OuterKernel, grid, args)
			for p := range parts {
				got := get[float32](r, args.C.Data+Address(4*p*part), height*width)
				same(t, "a part", got, want[p*height*width:(p+1)*height*width])
			}
			if rows == 70 {
				runShort(r, OuterKernel, grid, args)
			}
			sums := Sums[Matrix]{X: args.B, C: room[float32](r, parts*width), Part: int64(width), Rows: args.Rows, Columns: int32(width),
				Parts: int32(parts), Run: int32(size)}
			grid = driver.Dim{X: Blocks(width).X, Y: parts}
			run(r, SumsKernel, grid, sums)
			same(t, "sums", get[float32](r, sums.C, len(biases)), biases)
			if rows == 70 {
				runShort(r, SumsKernel, grid, sums)
			}
		}
	}
}

func TestHeads_AddUpInEightLanes(t *testing.T) {
	for _, rows := range []int{1, 300} {
		for _, tails := range []int{0, 2} {
			r := newRig(t)
			outputs, depth, row, ld := 3, 32, 36, rows+1
			x, w, bias, tail := r.floats((rows-1)*row+depth), r.floats(outputs*depth), r.floats(outputs), r.floats(tails)
			args := Projection{X: put(r, x...), Weight: put(r, w...), Bias: put(r, bias...), Out: room[float32](r, (outputs+tails-1)*ld+rows),
				Rows: int32(rows), Row: int32(row), Depth: int32(depth), Outputs: int32(outputs), Tails: int32(tails), LD: int32(ld)}
			if tails > 0 {
				args.Tail = put(r, tail...)
			}
			want := filled((outputs+tails-1)*ld+rows, poison)
			for i := range rows {
				for a := range outputs {
					var s [8]float32
					for k := range depth {
						s[k%8] = fma(x[i*row+k], w[a*depth+k], s[k%8])
					}
					want[a*ld+i] = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])) + bias[a]
				}
				for a := range tails {
					want[(outputs+a)*ld+i] = tail[a]
				}
			}
			grid := driver.Dim{X: Blocks(rows).X, Y: outputs + tails}
			run(r, HeadsKernel, grid, args)
			same(t, "outputs", get[float32](r, args.Out, len(want)), want)
			runShort(r, HeadsKernel, grid, args)
		}
	}
	r := newRig(t)
	args := Projection{X: put(r, r.floats(16)...), Weight: put(r, r.floats(16)...), Bias: put[float32](r, 1), Out: room[float32](r, 2),
		Rows: 1, Row: 16, Depth: 16, Outputs: 1, Tails: 1, LD: 1, Constant: -0.5}
	run(r, HeadsKernel, driver.Dim{X: 1, Y: 2}, args)
	if got := get[float32](r, args.Out, 2)[1]; got != -0.5 {
		t.Errorf("a tail without a parameter is %v, want -0.5", got)
	}
}

func TestMove_CopiesAddsAndLeavesOut(t *testing.T) {
	r := newRig(t)
	rows, runs, size := 70, 3, 5
	from := r.floats(rows * 40)
	order, target := make([]int32, rows), make([]int32, rows)
	for i, j := range r.random.Perm(rows) {
		order[i], target[i] = int32(r.random.IntN(rows)), int32(j)
		if i%5 == 0 {
			order[i] = -1
		}
		if i%7 == 0 {
			target[i] = -1
		}
	}
	h, before := r.floats(rows*21), r.floats(rows*21)
	args := Move{From: put(r, from...), To: put(r, before...), H: put(r, h...), Order: put(r, order...), Target: put(r, target...),
		Rows: int32(rows), Runs: int32(runs), Run: int32(size), FromRow: 40, FromRun: 12, FromColumn: 2, ToRow: 21, ToRun: 7, Add: 1, Epilogue: DTanh}
	want := append([]float32(nil), before...)
	for i := range rows {
		if order[i] < 0 || target[i] < 0 {
			continue
		}
		for k := range runs {
			for j := range size {
				at := int(target[i])*21 + k*7 + j
				want[at] = activate(DTanh, before[at]+from[int(order[i])*40+k*12+2*j], h[at])
			}
		}
	}
	run(r, MoveKernel, Blocks(rows*runs*size), args)
	same(t, "rows", get[float32](r, args.To, len(want)), want)

	plain := Move{From: put(r, from[:rows*15]...), To: room[float32](r, rows*15), Rows: int32(rows), Runs: 1, Run: 15,
		FromRow: 15, FromColumn: 1, ToRow: 15, Epilogue: ReLU}
	run(r, MoveKernel, Blocks(rows*15), plain)
	for i, x := range get[float32](r, plain.To, rows*15) {
		if x != activate(ReLU, from[i], 0) {
			t.Fatalf("element %d is %v of %v", i, x, from[i])
		}
	}
	runShort(r, MoveKernel, Blocks(rows*15), plain)
}
