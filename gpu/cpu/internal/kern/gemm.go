package kern

// Panel is the number of columns of B and C that lie side by side: N is a multiple of it.
const Panel = 16

// StripPanels is the number of panels that a tile has at most, and Gemm.Strip room for.
const StripPanels = 4

// Epilogue is what Gemm does to an element before it stores it.
type Epilogue uint8

// Epilogues. The last three multiply with the derivative of an activation, given its result h.
const (
	None Epilogue = iota
	Tanh
	ReLU
	ELU
	DTanh // 1 - h²
	DReLU // h > 0
	DELU  // h > 0 ? 1 : h + 1
)

// Gemm describes C = epilogue(init + A·B). Strides count elements.
//
//	A(i, k)          = A[i*ARow + k*ACol]                       i < M, k < K
//	B(k, 16p + j)    = B[k*BRow + p*BPanel + j]                 16p + j < N
//	C(i, 16p + j)    = C[i*CRow + p*CPanel + j], H likewise
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
	panels := g.N/Panel - 1
	if g.K > 0 {
		_ = g.A[(g.M-1)*g.ARow+(g.K-1)*g.ACol]
		_ = g.B[(g.K-1)*g.BRow+panels*g.BPanel+Panel-1]
	}
	_ = g.C[(g.M-1)*g.CRow+panels*g.CPanel+Panel-1]
	if g.Bias != nil {
		_ = g.Bias[g.N-1]
	}
	if g.Epilogue >= DTanh {
		_ = g.H[(g.M-1)*g.CRow+panels*g.CPanel+Panel-1]
	}
}

func (g *Gemm) generic() {
	var acc [Panel]float32
	for p := 0; p < g.N/Panel; p++ {
		for i := range g.M {
			at := i*g.CRow + p*g.CPanel
			c := g.C[at : at+Panel]
			switch {
			case g.Add:
				copy(acc[:], c)
			case g.Bias != nil:
				copy(acc[:], g.Bias[p*Panel:])
			default:
				acc = [Panel]float32{}
			}
			for k := range g.K {
				a := g.A[i*g.ARow+k*g.ACol]
				b := (*[Panel]float32)(g.B[k*g.BRow+p*g.BPanel:])
				for j := range acc {
					acc[j] += a * b[j]
				}
			}
			if g.Epilogue >= DTanh {
				derive(g.Epilogue, acc[:], g.H[at:at+Panel])
			} else {
				activate(g.Epilogue, acc[:])
			}
			copy(c, acc[:])
		}
	}
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
	}
}

func derive(e Epilogue, x, h []float32) {
	for j, v := range h {
		switch {
		case e == DTanh:
			x[j] *= 1 - v*v
		case v > 0:
		case e == DReLU:
			x[j] = 0
		case e == DELU:
			x[j] *= v + 1
		}
	}
}
