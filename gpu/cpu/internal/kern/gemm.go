package kern

import (
	"cmp"
	"fmt"
)

// Panel is the number of columns of B and C that lie side by side: N is a multiple of it.
const Panel = 16

// StripPanels is the number of panels that a tile has at most, and Gemm.Strip room for.
const StripPanels = 4

// Epilogue is what Gemm does to an element before it stores it.
type Epilogue uint8

// Epilogues. The last five multiply with the derivative of an activation, given its result h or, of GELU and SiLU, its
// argument.
const (
	None Epilogue = iota
	Tanh
	ReLU
	ELU
	GELU
	SiLU
	DTanh // 1 - h²
	DReLU // h > 0
	DELU  // h > 0 ? 1 : h + 1
	DGELU // Φ(h) + h·φ(h)
	DSiLU // σ(h)·(1 + h·(1 - σ(h)))
	epilogues
)

// Gemm describes C = epilogue(init + A·B). Strides count elements.
//
//	A(i, k)          = A[i*ARow + k*ACol]                       i < M, k < K
//	B(k, 16p + j)    = B[k*BRow + p*BPanel + j]                 16p + j < N
//	C(i, 16p + j)    = C[i*CRow + p*CPanel + j], H likewise
//
// With Group, rows come in groups of so many, AGroup and CGroup apart; with Run, so does k, ARun apart:
//
//	A(i, k)          = A[i/Group*AGroup + i%Group*ARow + k/Run*ARun + k%Run*ACol]
//	C(i, 16p + j)    = C[i/Group*CGroup + i%Group*CRow + p*CPanel + j]
//
// So a convolution is one product of the image as it lies.
//
// Element (i, j) is Bias[j] (or C(i, j) with Add, or 0) plus the products in the order of k, each by a fused
// multiply-add in the vector sets.
type Gemm struct {
	M, N, K      int
	A            []float32
	ARow, ACol   int
	B            []float32
	BRow, BPanel int
	C            []float32
	CRow, CPanel int
	Group, Run   int // divide M and K; 0 = all
	AGroup, ARun int
	CGroup       int
	Bias         []float32 // N long, or nil
	Add          bool
	Epilogue     Epilogue
	H            []float32 // for the derivatives
	// Strip is room for StripPanels*Panel*K elements, or nil. With it, columns of B that many rows of A meet are
	// packed first if the rows of B lie on many pages.
	Strip []float32
}

// check panics unless every element lies within its slice: the assembly has no other guard.
func (g *Gemm) check() {
	if g.M < 0 || g.N < 0 || g.K < 0 || g.N%Panel != 0 {
		panic("kern: size of a product")
	}
	if g.M == 0 || g.N == 0 {
		return
	}
	if g.Group != 0 && g.M%g.Group != 0 || g.Run != 0 && g.K%g.Run != 0 {
		panic("kern: groups of a product")
	}
	panels, i := g.N/Panel-1, g.M-1
	if g.K > 0 {
		_ = g.A[g.rowOfA(i)+g.columnOfA(g.K-1)]
		_ = g.B[(g.K-1)*g.BRow+panels*g.BPanel+Panel-1]
	}
	last := g.rowOfC(i) + panels*g.CPanel + Panel - 1
	_ = g.C[last]
	if g.Bias != nil {
		_ = g.Bias[g.N-1]
	}
	if g.Epilogue >= DTanh {
		_ = g.H[last]
	}
}

// divide returns Group and Run, or what they stand for.
func (g *Gemm) divide() (group, run int) { return cmp.Or(g.Group, g.M), max(cmp.Or(g.Run, g.K), 1) }

// rowOfA and rowOfC say where row i begins, columnOfA where k lies in a row. Divisions take as long as a small tile, and most
// products have no use for them.
func (g *Gemm) rowOfA(i int) int {
	if g.Group == 0 {
		return i * g.ARow
	}
	return i/g.Group*g.AGroup + i%g.Group*g.ARow
}

func (g *Gemm) rowOfC(i int) int {
	if g.Group == 0 {
		return i * g.CRow
	}
	return i/g.Group*g.CGroup + i%g.Group*g.CRow
}

func (g *Gemm) columnOfA(k int) int {
	if g.Run == 0 {
		return k * g.ACol
	}
	return k/g.Run*g.ARun + k%g.Run*g.ACol
}

// generic computes tiles of two rows and four columns, whose eight sums fit the registers. The last row of an odd
// number goes through the same code beside itself, so that the compiler cannot round it differently.
func (g *Gemm) generic() {
	var acc [2][Panel]float32
	for p := range g.N / Panel {
		for i := 0; i < g.M; i += 2 {
			second := min(i+1, g.M-1)
			g.start(&acc[0], i, p)
			g.start(&acc[1], second, p)
			g.multiply(&acc, g.rowOfA(i), g.rowOfA(second), p)
			g.finish(&acc[0], i, p)
			if second != i {
				g.finish(&acc[1], second, p)
			}
		}
	}
}

// multiply adds all products of two rows of A with a panel of B.
func (g *Gemm) multiply(acc *[2][Panel]float32, first, second, p int) {
	_, run := g.divide()
	for k := 0; k < g.K; k += run {
		skip := k / run * g.ARun
		for j := 0; j < Panel; j += 4 {
			g.tile((*[4]float32)(acc[0][j:]), (*[4]float32)(acc[1][j:]), g.A[first+skip:], g.A[second+skip:],
				g.B[k*g.BRow+p*g.BPanel+j:], run)
		}
	}
}

// start sets what the sums of row i begin with.
func (g *Gemm) start(acc *[Panel]float32, i, p int) {
	switch {
	case g.Add:
		copy(acc[:], g.C[g.rowOfC(i)+p*g.CPanel:])
	case g.Bias != nil:
		copy(acc[:], g.Bias[p*Panel:])
	default:
		*acc = [Panel]float32{}
	}
}

// tile adds the products of a run of two rows of A, which begin at a0 and a1, and four columns of B.
func (g *Gemm) tile(c0, c1 *[4]float32, a0, a1, b []float32, run int) {
	s00, s01, s02, s03 := c0[0], c0[1], c0[2], c0[3]
	s10, s11, s12, s13 := c1[0], c1[1], c1[2], c1[3]
	for k := range run {
		x, y, b := a0[k*g.ACol], a1[k*g.ACol], (*[4]float32)(b[k*g.BRow:])
		s00 += x * b[0]
		s01 += x * b[1]
		s02 += x * b[2]
		s03 += x * b[3]
		s10 += y * b[0]
		s11 += y * b[1]
		s12 += y * b[2]
		s13 += y * b[3]
	}
	*c0 = [4]float32{s00, s01, s02, s03}
	*c1 = [4]float32{s10, s11, s12, s13}
}

// finish applies the epilogue to row i and stores it.
func (g *Gemm) finish(acc *[Panel]float32, i, p int) {
	at := g.rowOfC(i) + p*g.CPanel
	if g.Epilogue >= DTanh {
		derive(g.Epilogue, acc[:], g.H[at:at+Panel])
	} else {
		activate(g.Epilogue, acc[:])
	}
	copy(g.C[at:at+Panel], acc[:])
}

func activate(e Epilogue, x []float32) {
	switch e {
	case Tanh:
		for j, v := range x {
			x[j] = tanh(v)
		}
	case ReLU:
		for j, v := range x {
			x[j] = max(v, 0)
		}
	case ELU:
		for j, v := range x {
			if v <= 0 {
				x[j] = exp(v) - 1
			}
		}
	case GELU:
		for j, v := range x {
			x[j] = v * normal(v)
		}
	case SiLU:
		for j, v := range x {
			x[j] = v * sigmoid(v)
		}
	case None:
	default:
		panic(fmt.Sprintf("kern: no activation for epilogue %d", e))
	}
}

func derive(e Epilogue, x, h []float32) {
	for j, v := range h {
		switch {
		case e == DTanh:
			x[j] *= 1 - v*v
		case e == DGELU:
			x[j] *= normal(v) + float32(density(v)*v)
		case e == DSiLU:
			s := sigmoid(v)
			x[j] *= s * (1 + float32(v*(1-s)))
		case v > 0 && (e == DReLU || e == DELU):
		case e == DReLU:
			x[j] = 0
		case e == DELU:
			x[j] *= v + 1
		default:
			panic(fmt.Sprintf("kern: no derivative for epilogue %d", e))
		}
	}
}
