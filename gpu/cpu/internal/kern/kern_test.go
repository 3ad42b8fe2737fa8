package kern

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// rng returns a generator with a fresh seed, which it prints.
func rng(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// eachSet runs a test with every set of this machine.
func eachSet(t *testing.T, test func(t *testing.T, s Set)) {
	for s := Generic; s <= Detect(); s++ {
		t.Run(s.String(), func(t *testing.T) { test(t, s) })
	}
}

func random(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// rounds is how often a test with random sizes repeats: less often in short tests, which emulated machines run.
func rounds(n int) int {
	if testing.Short() {
		return n / 4
	}
	return n
}

// product makes a random product, of rows in groups or not. A large one is cut several times, in short tests along one axis.
func product(r *rand.Rand, small bool) *Gemm {
	m, k := 1+r.IntN(40), 1+r.IntN(70)
	tall := r.IntN(2) == 0
	if !small && (tall || !testing.Short()) {
		m = 1 + r.IntN(700)
	}
	if !small && (!tall || !testing.Short()) {
		k = 1 + r.IntN(600)
	}
	return sized(r, m, Panel*(1+r.IntN(6)), k, r.IntN(2) == 0)
}

// sized makes a product of that size with strides of every kind; guard elements follow every row of C.
func sized(r *rand.Rand, m, n, k int, groups bool) *Gemm {
	g := &Gemm{M: m, N: n, K: k}
	if r.IntN(2) == 0 {
		g.ARow, g.ACol = g.K+r.IntN(9), 1
		g.A = random(r, (g.M-1)*g.ARow+g.K)
	} else {
		g.ARow, g.ACol = 1, g.M+r.IntN(9)
		g.A = random(r, (g.K-1)*g.ACol+g.M)
	}
	panels := g.N / Panel
	if r.IntN(2) == 0 { // packed
		g.BRow, g.BPanel = Panel, g.K*Panel+r.IntN(5)
		g.B = random(r, (panels-1)*g.BPanel+g.K*Panel)
	} else { // row-major
		g.BRow, g.BPanel = g.N+r.IntN(300), Panel
		g.B = random(r, (g.K-1)*g.BRow+g.N)
	}
	if r.IntN(2) == 0 {
		g.Strip = random(r, StripPanels*Panel*g.K)
	}
	g.CRow, g.CPanel = g.N+r.IntN(9), Panel
	g.Epilogue = Epilogue(r.IntN(int(epilogues)))
	if g.Epilogue == None && r.IntN(2) == 0 {
		g.CRow, g.CPanel = Panel, g.M*Panel+r.IntN(9)
	}
	if groups {
		divided(r, g)
	}
	g.C = random(r, g.rowOfC(g.M-1)+(panels-1)*g.CPanel+Panel)
	if g.Epilogue >= DTanh {
		g.H = random(r, len(g.C))
	}
	if g.Add = r.IntN(3) == 0; !g.Add && r.IntN(2) == 0 {
		g.Bias = random(r, g.N)
	}
	return g
}

// divided puts the rows of a product into groups and k into runs, as a convolution has them.
func divided(r *rand.Rand, g *Gemm) {
	divisor := func(n int) int {
		d := 1 + r.IntN(n)
		for n%d != 0 {
			d--
		}
		return d
	}
	g.Group, g.Run = divisor(g.M), divisor(g.K)
	g.ARow, g.ACol = 1+r.IntN(5), 1+r.IntN(3)
	g.AGroup, g.ARun = r.IntN(40), r.IntN(50)
	g.CGroup = g.Group*g.CRow + r.IntN(9)
	if g.CPanel != Panel {
		g.CPanel = g.M/g.Group*g.CGroup + r.IntN(9)
	}
	g.A = random(r, g.rowOfA(g.M-1)+(g.K/g.Run-1)*g.ARun+(g.Run-1)*g.ACol+1)
}

// want computes element (i, j) in float64, before and after the epilogue.
func (g *Gemm) want(i, j int) float64 {
	at := g.rowOfC(i) + j/Panel*g.CPanel + j%Panel
	_, run := g.divide()
	var sum float64
	switch {
	case g.Add:
		sum = float64(g.C[at])
	case g.Bias != nil:
		sum = float64(g.Bias[j])
	}
	for k := range g.K {
		sum += float64(g.A[g.rowOfA(i)+k/run*g.ARun+k%run*g.ACol]) * float64(g.B[k*g.BRow+j/Panel*g.BPanel+j%Panel])
	}
	var h float64
	if g.H != nil {
		h = float64(g.H[at])
	}
	switch g.Epilogue {
	case Tanh:
		return math.Tanh(sum)
	case ReLU:
		return max(sum, 0)
	case ELU:
		if sum <= 0 {
			return math.Expm1(sum)
		}
	case DTanh:
		return sum * (1 - h*h)
	case DReLU:
		if h <= 0 {
			return 0
		}
	case DELU:
		return sum * (min(h, 0) + 1)
	case GELU:
		return sum * math.Erfc(-sum/math.Sqrt2) / 2
	case DGELU:
		return sum * (math.Erfc(-h/math.Sqrt2)/2 + h*math.Exp(-h*h/2)/math.Sqrt(2*math.Pi))
	case SiLU:
		return sum / (1 + math.Exp(-sum))
	case DSiLU:
		sigma := 1 / (1 + math.Exp(-h))
		return sum * sigma * (1 + h*(1-sigma))
	case None:
	default:
		panic(fmt.Sprintf("epilogue %d has no reference here", g.Epilogue))
	}
	return sum
}

func TestGemmEqualsLoopsInFloat64(t *testing.T) {
	eachSet(t, func(t *testing.T, s Set) {
		r := rng(t)
		for round := range rounds(400) {
			checkProduct(t, s, product(r, round%40 != 0))
		}
		for tile := range 30 * 5 { // of every height and width
			checkProduct(t, s, sized(r, 1+tile%30, Panel*(1+tile/30), 3, false))
		}
	})
}

func checkProduct(t *testing.T, s Set, g *Gemm) {
	t.Helper()
	before := *g
	before.C = append([]float32(nil), g.C...)
	s.Gemm(g)
	written := make([]bool, len(g.C))
	for i := range g.M {
		for j := range g.N {
			at := g.rowOfC(i) + j/Panel*g.CPanel + j%Panel
			written[at] = true
			if g.M*g.N > 20000 && (i*g.N+j)%97 != 0 {
				continue
			}
			want := before.want(i, j)
			limit := 2e-6 * math.Sqrt(float64(g.K)) * (4 + math.Abs(want))
			if g.Epilogue == DTanh { // large factors
				limit *= 16
			}
			if got := float64(g.C[at]); !(math.Abs(got-want) <= limit) {
				t.Fatalf("%d×%d×%d, epilogue %d, add %t: element (%d, %d) = %v, want %v",
					g.M, g.N, g.K, g.Epilogue, g.Add, i, j, got, want)
			}
		}
	}
	for i, w := range written {
		if !w && g.C[i] != before.C[i] {
			t.Fatalf("%d×%d×%d: wrote element %d between the rows of C", g.M, g.N, g.K, i)
		}
	}
}

// A row of a product must not depend on the other rows.
func TestGemmRowsAreIndependentOfTheOthersInEveryBit(t *testing.T) {
	eachSet(t, func(t *testing.T, s Set) {
		r := rng(t)
		for range 100 {
			g := product(r, true)
			c := append([]float32(nil), g.C...)
			s.Gemm(g)
			group, _ := g.divide()
			lo, end := r.IntN(g.M), g.M
			if g.Group > 0 {
				end = lo - lo%group + group
			}
			part, skip := *g, g.rowOfC(lo)
			part.M, part.Group = 1+r.IntN(end-lo), 0
			part.A, part.C = g.A[g.rowOfA(lo):], c[skip:]
			if g.H != nil {
				part.H = g.H[skip:]
			}
			s.Gemm(&part)
			for i := range part.M {
				for j := range g.N {
					at := i*g.CRow + j/Panel*g.CPanel + j%Panel
					if got, want := part.C[at], g.C[skip+at]; got != want {
						t.Fatalf("row %d of %d alone = %v, among %d rows %v", lo+i, part.M, got, g.M, want)
					}
				}
			}
		}
	})
}

// Both vector sets do the same operations on every element in the same order.
func TestVectorSetsAgreeInEveryBit(t *testing.T) {
	if !AVX512.Supported() {
		t.Skip("this machine has no AVX-512")
	}
	r := rng(t)
	for range rounds(300) {
		g := product(r, true)
		other := *g
		other.C = append([]float32(nil), g.C...)
		AVX2.Gemm(g)
		AVX512.Gemm(&other)
		for i, got := range other.C {
			if math.Float32bits(got) != math.Float32bits(g.C[i]) {
				t.Fatalf("%d×%d×%d, epilogue %d: element %d = %v with avx512, %v with avx2",
					g.M, g.N, g.K, g.Epilogue, i, got, g.C[i])
			}
		}
		for name, u := range units {
			narrow := u.cells(r, AVX2)
			wide := &pair{Cell: narrow.Cell, later: narrow.later}
			u.both(wide, AVX512)
			for k, m := range u.written(wide) {
				if !slices.Equal(m.got, u.written(narrow)[k].got) {
					t.Fatalf("%s, %d rows of %d: matrix %d differs between avx512 and avx2", name, wide.Rows, wide.N, k)
				}
			}
		}
		n := norm(r)
		a, b := n.both(AVX2), n.both(AVX512)
		for _, x := range [][2][]float32{{a.Out, b.Out}, {a.Moments, b.Moments}, {a.DX, b.DX}, {a.DWeight, b.DWeight}, {a.DBias, b.DBias}} {
			if !slices.Equal(x[0], x[1]) {
				t.Fatalf("norms of %d rows of %d: %v with avx512, %v with avx2", n.Rows, n.N, x[1], x[0])
			}
		}
	}
}

func TestActivationsAreAccurate(t *testing.T) {
	eachSet(t, func(t *testing.T, s Set) {
		one := make([]float32, Panel)
		for i := range one {
			one[i] = 1
		}
		for _, c := range []struct {
			name     string
			epilogue Epilogue
			exact    func(float64) float64
			limit    float64
		}{
			{"tanh", Tanh, math.Tanh, 4e-7},
			{"elu", ELU, func(x float64) float64 { return math.Max(x, 0) + math.Expm1(math.Min(x, 0)) }, 1.5e-7},
		} {
			var x []float32
			for v := -120.0; v < 120; v += 0.0173 {
				x = append(x, float32(v), float32(v/40), float32(v/1e4))
			}
			g := Gemm{M: len(x), N: Panel, K: 1, A: x, ARow: 1, ACol: 1, B: one, BRow: Panel, BPanel: Panel,
				C: make([]float32, Panel*len(x)), CRow: Panel, CPanel: Panel, Epilogue: c.epilogue}
			s.Gemm(&g)
			worst := 0.0
			for i, v := range x {
				want := c.exact(float64(v))
				worst = max(worst, math.Abs(float64(g.C[i*Panel])-want)/max(1, math.Abs(want)))
			}
			if worst > c.limit {
				t.Errorf("%s is off by %.3g, want at most %.3g", c.name, worst, c.limit)
			}
		}
	})
}

// NaN must stay visible.
func TestActivationsKeepNaN(t *testing.T) {
	eachSet(t, func(t *testing.T, s Set) {
		b := make([]float32, Panel)
		for _, e := range []Epilogue{None, Tanh, ReLU, ELU} {
			g := Gemm{M: 1, N: Panel, K: 1, A: []float32{float32(math.NaN())}, ARow: 1, ACol: 1, B: b, BRow: Panel,
				BPanel: Panel, C: make([]float32, Panel), CRow: Panel, CPanel: Panel, Epilogue: e}
			s.Gemm(&g)
			if !math.IsNaN(float64(g.C[0])) || !math.IsNaN(float64(g.C[Panel-1])) {
				t.Errorf("epilogue %d turns NaN into %v", e, g.C[0])
			}
		}
	})
}

func TestHeadEqualsLoopsInFloat64AndRowsAreIndependent(t *testing.T) {
	eachSet(t, func(t *testing.T, s Set) {
		r := rng(t)
		for range 200 {
			h := Head{Rows: 1 + r.IntN(40), K: Panel * (1 + r.IntN(9)), Bias: float32(r.NormFloat64())}
			h.XRow = h.K + r.IntN(9)
			h.X, h.W, h.Out = random(r, h.Rows*h.XRow), random(r, h.K), make([]float32, h.Rows+1)
			h.Out[h.Rows] = 77
			s.Head(&h)
			for i := range h.Rows {
				want := float64(h.Bias)
				for k := range h.K {
					want += float64(h.X[i*h.XRow+k]) * float64(h.W[k])
				}
				if math.Abs(float64(h.Out[i])-want) > 1e-4 {
					t.Fatalf("%d rows of %d: output %d = %v, want %v", h.Rows, h.K, i, h.Out[i], want)
				}
				one := h
				one.Rows, one.X, one.Out = 1, h.X[i*h.XRow:], make([]float32, 1)
				s.Head(&one)
				if one.Out[0] != h.Out[i] {
					t.Fatalf("output %d alone = %v, among %d rows %v", i, one.Out[0], h.Rows, h.Out[i])
				}
			}
			if h.Out[h.Rows] != 77 {
				t.Fatalf("%d rows: wrote behind the last output", h.Rows)
			}
		}
	})
}

func TestTransposePacksPanels(t *testing.T) {
	eachSet(t, func(t *testing.T, s Set) {
		r := rng(t)
		for range 60 {
			x := Transpose{In: 1 + r.IntN(70), Out: 1 + r.IntN(70)}
			x.From = random(r, (x.Out+15)/16*16*x.In)
			x.To = random(r, (x.In+15)/16*16*x.Out)
			s.Transpose(&x)
			for i := range (x.In + 15) / 16 * 16 {
				for o := range x.Out {
					var want float32
					if i < x.In {
						want = x.From[o/16*x.In*16+i*16+o%16]
					}
					if got := x.To[i/16*x.Out*16+o*16+i%16]; got != want {
						t.Fatalf("%d×%d: element (%d, %d) = %v, want %v", x.In, x.Out, i, o, got, want)
					}
				}
			}
		}
	})
}

func TestSumsEqualLoopsInFloat64(t *testing.T) {
	eachSet(t, func(t *testing.T, s Set) {
		r := rng(t)
		for range 60 {
			x := random(r, Panel*(1+r.IntN(600)))
			want := 0.0
			for _, v := range x {
				want += float64(v) * float64(v)
			}
			if got := s.SumSquares(x); math.Abs(got-want) > 1e-6*want {
				t.Fatalf("SumSquares of %d = %v, want %v", len(x), got, want)
			}
			c := ColumnSums{Rows: 1 + r.IntN(50), N: Panel * (1 + r.IntN(9))}
			c.XRow = c.N + r.IntN(5)
			c.X, c.Out = random(r, c.Rows*c.XRow), random(r, c.N+1)
			before := append([]float32(nil), c.Out...)
			s.ColumnSums(&c)
			for j, got := range c.Out {
				want := float64(before[j])
				for i := 0; i < c.Rows && j < c.N; i++ {
					want += float64(c.X[i*c.XRow+j])
				}
				if math.Abs(float64(got)-want) > 1e-4 {
					t.Fatalf("sum of column %d of %d over %d rows = %v, want %v", j, c.N, c.Rows, got, want)
				}
			}
		}
	})
}

func TestAdamEqualsItsFormulaInFloat64(t *testing.T) {
	eachSet(t, func(t *testing.T, s Set) {
		r := rng(t)
		n := Panel * (1 + r.IntN(60))
		a := Adam{Params: random(r, n), M: random(r, n), V: random(r, n), Grad: random(r, n),
			Rate: 0.1, Beta1: 0.9, Keep1: 0.1, Beta2: 0.999, Keep2: 0.001, Eps: 1e-5, Correct2: 1.5, Scale: 0.7}
		for i := range a.V {
			a.V[i] *= a.V[i]
		}
		p, m, v := append([]float32(nil), a.Params...), append([]float32(nil), a.M...), append([]float32(nil), a.V...)
		s.Adam(&a)
		for i := range n {
			g := 0.7 * float64(a.Grad[i])
			wantM := 0.9*float64(m[i]) + 0.1*g
			wantV := 0.999*float64(v[i]) + 0.001*g*g
			want := float64(p[i]) - 0.1*wantM/(math.Sqrt(wantV)*1.5+1e-5)
			if math.Abs(float64(a.Params[i])-want) > 1e-5*(1+math.Abs(want)) ||
				math.Abs(float64(a.M[i])-wantM) > 1e-6 || math.Abs(float64(a.V[i])-wantV) > 1e-5 {
				t.Fatalf("element %d of %d: %v, %v, %v; want %v, %v, %v", i, n, a.Params[i], a.M[i], a.V[i], want, wantM, wantV)
			}
		}
	})
}

func TestWidenScalesBytes(t *testing.T) {
	eachSet(t, func(t *testing.T, s Set) {
		r := rng(t)
		for range 60 {
			w := Widen{Rows: 1 + r.IntN(9), N: 1 + r.IntN(90), Scale: 1.0 / 255}
			w.FromRow, w.ToRow = w.N+r.IntN(5), w.N+r.IntN(5)
			w.From, w.To = make([]byte, (w.Rows-1)*w.FromRow+w.N), random(r, (w.Rows-1)*w.ToRow+w.N)
			for i := range w.From {
				w.From[i] = byte(r.Uint32())
			}
			before := append([]float32(nil), w.To...)
			s.Widen(&w)
			for i, got := range w.To {
				want := before[i]
				if i%w.ToRow < w.N {
					want = float32(w.From[i/w.ToRow*w.FromRow+i%w.ToRow]) * w.Scale
				}
				if got != want {
					t.Fatalf("%d rows of %d: element %d = %v, want %v", w.Rows, w.N, i, got, want)
				}
			}
		}
	})
}

// Equal elements and NaN included.
func TestPoolEqualsPlainGo(t *testing.T) {
	eachSet(t, func(t *testing.T, s Set) {
		r := rng(t)
		for range 200 {
			p := Pool{Places: 1 + r.IntN(9), High: 1 + r.IntN(4), Wide: 1 + r.IntN(4), Channels: 4 * (1 + r.IntN(8))}
			p.Step, p.XRow = p.Channels*(1+r.IntN(3)), p.Channels*30
			size, out := (p.Places-1)*p.Step+(p.High-1)*p.XRow+p.Wide*p.Channels, p.Places*p.Channels
			p.X, p.Out, p.D, p.DX = random(r, size), make([]float32, out), random(r, out), random(r, size)
			for i := range p.X {
				switch r.IntN(8) {
				case 0:
					p.X[i] = 0.5
				case 1:
					p.X[i] = float32(math.NaN())
				}
			}
			want, d := p, p.D
			want.Out, want.DX = make([]float32, out), append([]float32(nil), p.DX...)
			for _, d := range [][]float32{nil, d} {
				p.D, want.D = d, d
				want.generic()
				s.Pool(&p)
			}
			for i, got := range p.Out {
				if got != want.Out[i] && (got == got || want.Out[i] == want.Out[i]) {
					t.Fatalf("%d places of %d×%d×%d: output %d = %v, want %v", p.Places, p.High, p.Wide, p.Channels, i, got, want.Out[i])
				}
			}
			for i, got := range p.DX {
				if math.Abs(float64(got-want.DX[i])) > 1e-5 {
					t.Fatalf("%d places of %d×%d×%d: gradient %d = %v, want %v", p.Places, p.High, p.Wide, p.Channels, i, got, want.DX[i])
				}
			}
		}
	})
}
