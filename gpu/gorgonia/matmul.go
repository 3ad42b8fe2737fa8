package gorgonia

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// matMuler computes the operations of a machine's tensors. It is gorgonia's own except the product of matrices,
// whose every element it sums up in ascending order of the inner index. gonum does so too unless the right side is
// transposed: then the order depends on where in memory the rows lie and on the sizes. It belongs to one machine.
type matMuler struct {
	gorgonia.StandardEngine
	packed32 []float32 // a right side that came transposed
	packed64 []float64
}

var _ tensor.MatMuler = (*matMuler)(nil)

// MatMul writes a·b to c.
func (e *matMuler) MatMul(a, b, c tensor.Tensor) error {
	left, ok1 := layoutOf(a)
	right, ok2 := layoutOf(b)
	out, ok3 := layoutOf(c)
	if !ok1 || !ok2 || !ok3 || out.transposed {
		return e.StandardEngine.MatMul(a, b, c)
	}
	trans, m, n, k := blas.NoTrans, left.rows, right.cols, left.cols
	lda := k
	if left.transposed {
		trans, lda = blas.Trans, m
	}
	var impl gonum.Implementation
	switch x := a.Data().(type) {
	case []float32:
		y := b.Data().([]float32)
		if right.transposed {
			y = pack(&e.packed32, y, k, n)
		}
		impl.Sgemm(trans, blas.NoTrans, m, n, k, 1, x, lda, y, n, 0, c.Data().([]float32), n)
	case []float64:
		y := b.Data().([]float64)
		if right.transposed {
			y = pack(&e.packed64, y, k, n)
		}
		impl.Dgemm(trans, blas.NoTrans, m, n, k, 1, x, lda, y, n, 0, c.Data().([]float64), n)
	default:
		return e.StandardEngine.MatMul(a, b, c)
	}
	return nil
}

// layout is the place of a matrix [rows, cols] in memory: row by row, or column by column.
type layout struct {
	rows, cols int
	transposed bool
}

// layoutOf returns the layout of a dense matrix; ok is false for any other view.
func layoutOf(t tensor.Tensor) (l layout, ok bool) {
	shape, strides := t.Shape(), t.Strides()
	if _, dense := t.(*tensor.Dense); !dense || len(shape) != 2 || t.DataOrder().IsColMajor() {
		return l, false
	}
	l = layout{rows: shape[0], cols: shape[1]}
	switch {
	case l.rows == 1 || l.cols == 1: // the same either way, whatever the strides say
		return l, t.DataSize() == l.rows*l.cols
	case len(strides) != 2:
		return l, false
	case strides[0] == 1 && strides[1] == l.rows:
		l.transposed = true
		return l, true
	}
	return l, strides[0] == l.cols && strides[1] == 1
}

// pack copies x, a matrix [rows, cols] column by column, to scratch row by row.
func pack[F float](scratch *[]F, x []F, rows, cols int) []F {
	if cap(*scratch) < rows*cols {
		*scratch = make([]F, rows*cols)
	}
	y := (*scratch)[:rows*cols]
	for c := range cols {
		for r, v := range x[c*rows : (c+1)*rows] {
			y[r*cols+c] = v
		}
	}
	return y
}
