package kern

// Head describes one output of a linear head for every row: Out[r] = Bias + X(r)·W, where X(r) are the K elements
// from X[r*XRow]. K is a multiple of Panel; products are summed over K in eight interleaved partial sums.
type Head struct {
	Rows, K int
	X       []float32
	XRow    int
	W       []float32
	Bias    float32
	Out     []float32
}

func (h *Head) check() {
	if h.Rows < 0 || h.K <= 0 || h.K%Panel != 0 {
		panic("kern: size of a head")
	}
	if h.Rows > 0 {
		_, _, _ = h.X[(h.Rows-1)*h.XRow+h.K-1], h.W[h.K-1], h.Out[h.Rows-1]
	}
}

func (h *Head) generic() {
	w := h.W[:h.K]
	for r := range h.Rows {
		x := h.X[r*h.XRow:][:len(w)]
		var s [8]float32
		for k := 0; k+8 <= len(w); k += 8 {
			a, b := (*[8]float32)(x[k:]), (*[8]float32)(w[k:])
			for j := range s {
				s[j] += a[j] * b[j]
			}
		}
		h.Out[r] = (s[0] + s[1]) + (s[2] + s[3]) + ((s[4] + s[5]) + (s[6] + s[7])) + h.Bias
	}
}
