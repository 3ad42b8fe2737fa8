package kern

// Widen describes To[r*ToRow + j] = From[r*FromRow + j] · Scale over rows, for j < N.
type Widen struct {
	Rows, N int
	From    []byte
	FromRow int
	To      []float32
	ToRow   int
	Scale   float32
}

func (w *Widen) check() {
	if w.Rows < 0 || w.N < 0 {
		panic("kern: size of rows to widen")
	}
	if w.Rows > 0 && w.N > 0 {
		_, _ = w.From[(w.Rows-1)*w.FromRow+w.N-1], w.To[(w.Rows-1)*w.ToRow+w.N-1]
	}
}

func (w *Widen) generic() { w.columns(0) }

// columns widens the columns from j on.
func (w *Widen) columns(j int) {
	for r := 0; r < w.Rows && j < w.N; r++ {
		from, to := w.From[r*w.FromRow:][j:w.N], w.To[r*w.ToRow:][j:w.N]
		for i, b := range from {
			to[i] = float32(b) * w.Scale
		}
	}
}

// Pool describes the largest elements under windows that follow one another along a row of an image, by channels, for
// windows that lie within it. Strides count elements.
//
//	Out[i*Channels + c] = max X[i*Step + a*XRow + b*Channels + c]     i < Places, a < High, b < Wide, c < Channels
//
// With D, the gradient of Out, D[i*Channels + c] is added to DX at the first place where X equals Out instead.
type Pool struct {
	Places, High, Wide, Channels int
	X                            []float32
	Step, XRow                   int
	Out                          []float32
	D, DX                        []float32
}

func (p *Pool) check() {
	if p.Places < 1 || p.High < 1 || p.Wide < 1 || p.Channels < 1 {
		panic("kern: size of a pool")
	}
	x, out := (p.Places-1)*p.Step+(p.High-1)*p.XRow+p.Wide*p.Channels-1, p.Places*p.Channels-1
	_, _ = p.X[x], p.Out[out]
	if p.D != nil {
		_, _ = p.DX[x], p.D[out]
	}
}

func (p *Pool) generic() {
	if p.D != nil {
		p.genericBack()
		return
	}
	for i := range p.Places {
		out := p.Out[i*p.Channels : (i+1)*p.Channels]
		copy(out, p.X[i*p.Step:])
		for at := 1; at < p.High*p.Wide; at++ {
			for c, x := range p.X[i*p.Step+at/p.Wide*p.XRow+at%p.Wide*p.Channels:][:p.Channels] {
				out[c] = max(out[c], x)
			}
		}
	}
}

func (p *Pool) genericBack() {
	for i := range p.Places * p.Channels {
		for at := range p.High * p.Wide {
			x := i/p.Channels*p.Step + at/p.Wide*p.XRow + at%p.Wide*p.Channels + i%p.Channels
			if p.X[x] == p.Out[i] {
				p.DX[x] += p.D[i]
				break
			}
		}
	}
}
