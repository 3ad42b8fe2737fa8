package gorgonia

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gorgonia.org/tensor"
)

// product multiplies random matrices whose elements start at an offset in memory.
func product[F float](t *testing.T, e *matMuler, m, k, n int, transA, transB bool, offset int) (a, b, c []F) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(m), uint64(k*1000+n)))
	random := func(rows, cols int, transposed bool) (*tensor.Dense, []F) {
		x := make([]F, rows*cols+offset)[offset:]
		for i := range x {
			x[i] = F(r.NormFloat64())
		}
		if !transposed {
			return dense(x, rows, cols), x
		}
		d := dense(x, cols, rows)
		if err := d.T(); err != nil {
			t.Fatal(err)
		}
		flat := make([]F, 0, len(x))
		for i := range rows {
			for j := range cols {
				flat = append(flat, x[j*rows+i])
			}
		}
		return d, flat
	}
	left, a := random(m, k, transA)
	right, b := random(k, n, transB)
	c = make([]F, m*n)
	for i := range c {
		c[i] = F(math.NaN()) // old contents must not matter
	}
	if err := e.MatMul(left, right, dense(c, m, n)); err != nil {
		t.Fatal(err)
	}
	return a, b, c
}

func TestEngine_MultipliesWhateverTheLayout(t *testing.T) {
	e := new(matMuler)
	for _, s := range [][3]int{{1, 1, 1}, {1, 7, 1}, {7, 1, 3}, {3, 5, 1}, {1, 5, 9}, {13, 33, 5}, {70, 130, 67}, {200, 3, 200}} {
		m, k, n := s[0], s[1], s[2]
		for _, trans := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
			a, b, c := product[float64](t, e, m, k, n, trans[0], trans[1], 0)
			for i := range c {
				want := 0.0
				for l := range k {
					want += a[i/n*k+l] * b[l*n+i%n]
				}
				if math.Abs(c[i]-want) > 1e-12*(1+math.Abs(want)) {
					t.Errorf("%v transposed %v: element %d = %v, want %v", s, trans, i, c[i], want)
					break
				}
			}
			_, _, first := product[float32](t, e, m, k, n, trans[0], trans[1], 0)
			for offset := 1; offset < 5; offset++ {
				if _, _, c := product[float32](t, e, m, k, n, trans[0], trans[1], offset); !slices.Equal(c, first) {
					t.Errorf("%v transposed %v: other bits %d elements further in memory", s, trans, offset)
				}
			}
		}
	}
}

// Rows of a product equal the rows of a product of fewer rows, also where gonum splits the work.
func TestEngine_RowsDoNotDependOnTheNumberOfRows(t *testing.T) {
	e := new(matMuler)
	const k, n = 150, 90
	for _, transposed := range []bool{false, true} {
		r := rand.New(rand.NewPCG(1, 1))
		random := func(count int) []float32 {
			x := make([]float32, count)
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			return x
		}
		a, b := random(300*k), random(k*n)
		multiply := func(rows int) []float32 {
			right := dense(b, k, n)
			if transposed {
				right = dense(b, n, k)
				if err := right.T(); err != nil {
					t.Fatal(err)
				}
			}
			c := make([]float32, rows*n)
			if err := e.MatMul(dense(a[:rows*k], rows, k), right, dense(c, rows, n)); err != nil {
				t.Fatal(err)
			}
			return c
		}
		whole := multiply(300)
		for _, rows := range []int{1, 8, 64, 65, 250} {
			if !slices.Equal(multiply(rows), whole[:rows*n]) {
				t.Errorf("transposed = %v: %d rows have other bits than within 300", transposed, rows)
			}
		}
	}
}
