//go:build amd64

package kern

import "unsafe"

// at returns the address of an element. The bounds check is the point: descriptions were checked for the last
// element that assembly touches, and everything between lies in the same slice.
func at[E any](s []E, i int) unsafe.Pointer { return unsafe.Pointer(&s[i]) }

// kBlock bounds the depth of a product in one call, so that a panel of B stays in the first-level cache; runs, of which
// there are whole ones in a call, come to runBlock. tileRows bounds the rows, so that a call stays short.
const (
	kBlock   = 256
	runBlock = 1 << 10
	tileRows = 1 << 9
)

// Bounds on the work of one call of the other kernels: elements of matrices, logits of eight rows.
const (
	elemsPerCall  = 1 << 17
	logitsPerCall = 1 << 12
)

func (s Set) gemm(g *Gemm) {
	if g.M == 0 || g.N == 0 {
		return
	}
	if g.K == 0 && (!g.Add || g.Epilogue == DTanh) {
		g.generic()
		return
	}
	if g.K > 0 {
		group, _ := g.divide()
		if g.Group == 0 {
			group = min(group, tileRows)
		}
		for k := 0; k < g.K; {
			k += s.gemmDepth(g, k, group)
		}
	}
	if g.Epilogue != None && (g.K == 0 || builtIn(g.Epilogue) == 0) {
		s.epilogue(g)
	}
}

// builtIn returns gemmArgs.end for the epilogues built into products, 0 for others.
func builtIn(e Epilogue) int {
	switch e {
	case ReLU:
		return 1
	case DReLU:
		return 2
	case DTanh:
		return 3
	}
	return 0
}

// gemmDepth computes the products of k and some that follow, without a separate pass for the epilogue, and returns how many.
func (s Set) gemmDepth(g *Gemm, k, group int) int {
	args := gemmArgs{aRow: 4 * g.ARow, aCol: 4 * g.ACol, cRow: 4 * g.CRow, cPanel: 4 * g.CPanel}
	args.k, args.runs = min(kBlock, g.K-k), 1
	switch run := g.Run; {
	case run == 0 || run == g.K:
	case run > runBlock:
		args.k = min(kBlock, run-k%run)
	default:
		args.k, args.runs = run, min((g.K-k)/run, runBlock/run)
		args.aRun = 4 * (g.ARun - run*g.ACol)
	}
	depth := args.k * args.runs
	args.start = 2
	if k == 0 && !g.Add {
		args.start = 0
		if g.Bias != nil {
			args.start = 1
		}
	}
	if k+depth == g.K {
		args.end = builtIn(g.Epilogue)
	}
	aGroup, cGroup := g.AGroup, g.CGroup
	if g.Group == 0 {
		aGroup, cGroup = group*g.ARow, group*g.CRow
	}
	column := g.columnOfA(k)
	for p := 0; p < g.N/Panel; {
		width := s.panels(group, g.N/Panel-p)
		g.columns(&args, k, depth, p, width)
		if args.start == 1 {
			args.bias = at(g.Bias, p*Panel)
		}
		a, c := column, p*g.CPanel
		for i := 0; i < g.M; i += group {
			s.column(g, &args, a, c, min(group, g.M-i), width)
			a, c = a+aGroup, c+cGroup
		}
		p += width
	}
	return depth
}

// Packing pays where a strip is read by this many rows of A and lies on more pages than the first-level TLB has.
const (
	stripRows = 192
	stripRow  = 256
)

// columns aims the arguments at depth rows of width panels of B, from row k and panel p on, packed if that pays.
func (g *Gemm) columns(args *gemmArgs, k, depth, p, width int) {
	args.b, args.bRow, args.bPanel = at(g.B, k*g.BRow+p*g.BPanel), 4*g.BRow, 4*g.BPanel
	if g.M < stripRows || g.BRow < stripRow || len(g.Strip) < width*depth*Panel {
		return
	}
	for q := range width {
		for i := range depth {
			*(*[Panel]float32)(g.Strip[(q*depth+i)*Panel:]) = *(*[Panel]float32)(g.B[(k+i)*g.BRow+(p+q)*g.BPanel:])
		}
	}
	args.b, args.bRow, args.bPanel = at(g.Strip, 0), 4*Panel, 4*Panel*depth
}

// panels chooses how many panels of 16 columns a tile has: as many as leave room for all its rows.
func (s Set) panels(m, left int) int {
	switch {
	case s == AVX512 && m <= 3 && left >= 4, m == 1 && left >= 4:
		return 4
	case s == AVX512 && left >= 2, m == 2 && left >= 2:
		return 2
	}
	return 1
}

// column computes width panels of m rows, which begin at a and c: whole tiles in one call, then at most two more of like
// height, because a low tile has too few independent sums to keep the processor busy.
func (s Set) column(g *Gemm, args *gemmArgs, a, c, m, width int) {
	high, low := 6, 4
	if s == AVX512 {
		high, low = 14, 7
	}
	full, rest := m/high, m%high
	if full > 0 && rest > 0 && rest < low {
		full--
		rest += high
	}
	run := func(rows, tiles int) {
		args.tiles = tiles
		args.a = at(g.A, a)
		if args.c = at(g.C, c); args.end > 1 {
			args.h = at(g.H, c)
		}
		s.tile(args, rows, width)
		a, c = a+rows*tiles*g.ARow, c+rows*tiles*g.CRow
	}
	if full > 0 {
		run(high, full)
	}
	if rest > high {
		run((rest+1)/2, 1)
		rest /= 2
	}
	if rest > 0 {
		run(rest, 1)
	}
}

// tile calls the kernel of one shape.
func (s Set) tile(args *gemmArgs, rows, width int) {
	if s == AVX512 {
		tile512(args, rows, width)
		return
	}
	switch {
	case width == 4:
		gemmAVX2_1x4(args)
	case width == 2:
		gemmAVX2_2x2(args)
	case rows == 1:
		gemmAVX2_1x1(args)
	case rows == 2:
		gemmAVX2_2x1(args)
	case rows == 3:
		gemmAVX2_3x1(args)
	case rows == 4:
		gemmAVX2_4x1(args)
	case rows == 5:
		gemmAVX2_5x1(args)
	default:
		gemmAVX2_6x1(args)
	}
}

func (s Set) epilogue(g *Gemm) {
	if g.CPanel != Panel {
		panic("kern: epilogue of a matrix in panels")
	}
	group, _ := g.divide()
	rows := min(group, max(1, elemsPerCall/g.N))
	for i := 0; i < g.M; {
		n, c := min(rows, group-i%group), g.rowOfC(i)
		args := rowsArgs{rows: n, bytes: 4 * g.N, x: at(g.C, c), xRow: 4 * g.CRow}
		if g.Epilogue >= DTanh {
			args.h, args.hRow = at(g.H, c), 4*g.CRow
		}
		if !s.activate(g.Epilogue, &args) {
			plain := *g
			plain.K, plain.Add = 0, true
			plain.generic()
			return
		}
		i += n
	}
}

// activate reports whether there is assembly for an epilogue, and has run it if so.
func (s Set) activate(e Epilogue, args *rowsArgs) bool {
	wide := s == AVX512
	switch {
	case e == Tanh && wide:
		tanhAVX512(args)
	case e == Tanh:
		tanhAVX2(args)
	case e == ReLU && wide:
		reluAVX512(args)
	case e == ReLU:
		reluAVX2(args)
	case e == ELU && wide:
		eluAVX512(args)
	case e == ELU:
		eluAVX2(args)
	case e == GELU && wide:
		geluAVX512(args)
	case e == GELU:
		geluAVX2(args)
	case e == SiLU && wide:
		siluAVX512(args)
	case e == SiLU:
		siluAVX2(args)
	case e == DReLU && wide:
		dreluAVX512(args)
	case e == DReLU:
		dreluAVX2(args)
	case e == DELU && wide:
		deluAVX512(args)
	case e == DELU:
		deluAVX2(args)
	case e == DGELU && wide:
		dgeluAVX512(args)
	case e == DGELU:
		dgeluAVX2(args)
	case e == DSiLU && wide:
		dsiluAVX512(args)
	case e == DSiLU:
		dsiluAVX2(args)
	default:
		return false
	}
	return true
}

func (s Set) head(h *Head) {
	if h.Rows == 0 {
		return
	}
	args := headArgs{rows: h.Rows / 8 * 8, k: h.K, x: at(h.X, 0), xRow: 4 * h.XRow, w: at(h.W, 0),
		bias: unsafe.Pointer(&h.Bias), out: at(h.Out, 0)}
	if args.rows > 0 {
		head8(&args)
	}
	if rest := h.Rows - args.rows; rest > 0 {
		args.x, args.out = at(h.X, args.rows*h.XRow), at(h.Out, args.rows)
		args.rows = rest
		head1(&args)
	}
}

// inOrder are the places of eight rows side by side.
var inOrder = [Lanes]uint32{0, 1, 2, 3, 4, 5, 6, 7}

func (s Set) sample(a *Sample) {
	if a.Actions > logitsPerCall {
		a.generic()
		return
	}
	args := sampleArgs{actions: a.Actions, ld: 4 * a.LD, scratch: at(a.Scratch, 0), seed: a.Seed, step: a.Step, draw: int(a.Draw),
		places: unsafe.Pointer(&inOrder), nextEnv: Lanes}
	if a.Places != nil {
		args.nextEnv, args.nextPlaces = 0, 4*Lanes
	}
	if a.Greedy {
		args.greedy = -1
	}
	r := 0
	for r+Lanes <= a.Rows {
		args.groups = min((a.Rows-r)/Lanes, logitsPerCall/a.Actions)
		args.logits, args.action, args.logProb = at(a.Logits, r), at(a.Action, r), at(a.LogProb, r)
		if args.env = int(a.Env) + r; a.Places != nil {
			args.env, args.places = int(a.Env), at(a.Places, r)
		}
		sample(&args)
		r += args.groups * Lanes
	}
	if r == a.Rows {
		return
	}
	// The results of the last few rows lie in the caller's columns, with no room after them.
	var action [Lanes]int32
	var logProb [Lanes]float32
	var places [Lanes]uint32
	args.groups = 1
	args.logits, args.action, args.logProb = at(a.Logits, r), unsafe.Pointer(&action), unsafe.Pointer(&logProb)
	if args.env = int(a.Env) + r; a.Places != nil {
		copy(places[:], a.Places[r:a.Rows])
		args.env, args.places = int(a.Env), unsafe.Pointer(&places)
	}
	sample(&args)
	copy(a.Action[r:a.Rows], action[:])
	copy(a.LogProb[r:a.Rows], logProb[:])
}

func (s Set) loss(l *Loss) {
	if l.Actions > logitsPerCall {
		l.generic()
		return
	}
	args := lossArgs{actions: l.Actions, ld: 4 * l.LD, scratch: at(l.Scratch, 0),
		sums: unsafe.Pointer(&l.Sums), numbers: unsafe.Pointer(&l.Low)}
	for r := 0; r < l.Rows; {
		n := min(l.Rows-r, logitsPerCall/l.Actions*Lanes)
		args.rows, args.logits, args.value = n, at(l.Logits, r), at(l.Value, r)
		args.action, args.oldLogProb, args.oldValue = at(l.Action, r), at(l.OldLogProb, r), at(l.OldValue, r)
		args.advantage, args.ret, args.newLogProb = at(l.Advantage, r), at(l.Return, r), at(l.NewLogProb, r)
		loss(&args)
		r += n
	}
}

func (l *Loss) surrogatesAsm() {
	if l.Rows == 0 {
		return
	}
	surrogates(&surrogateArgs{rows: l.Rows, oldLogProb: at(l.OldLogProb, 0), oldValue: at(l.OldValue, 0), advantage: at(l.Advantage, 0),
		ret: at(l.Return, 0), newLogProb: at(l.NewLogProb, 0), entropies: at(l.Entropies, 0), slope: at(l.Slope, 0),
		value: at(l.Value, 0), sums: unsafe.Pointer(&l.Sums), numbers: unsafe.Pointer(&l.Low)})
}

// each runs a kernel over the rows of c. It is called by its name: the arguments of a function value are allocated.
func (c *Choice) each(descend bool) {
	for r := 0; r < c.Rows; {
		n := min(c.Rows-r, logitsPerCall/c.Actions*Lanes)
		args := choiceArgs{rows: n, actions: c.Actions, logits: at(c.Logits, r), ld: 4 * c.LD, scratch: at(c.Scratch, 0),
			action: at(c.Action, r), logProb: at(c.LogProb, r), entropy: at(c.Entropy, r), own: at(c.Own, r), slope: at(c.Slope, r),
			numbers: unsafe.Pointer(&c.Coef)}
		if descend {
			choiceDescend(&args)
		} else {
			choiceWeigh(&args)
		}
		r += n
	}
}

func (c *Choice) weighAsm() {
	if c.Actions > logitsPerCall {
		c.weigh()
		return
	}
	c.each(false)
}

func (c *Choice) descendAsm() {
	if c.Actions > logitsPerCall {
		c.descend()
		return
	}
	c.each(true)
}

// each runs a kernel over the rows of n, as that of Choice does.
func (n *Normal) each(descend bool) {
	numbers := [1]float32{n.Coef}
	args := normalArgs{n: n.N, ld: 4 * n.LD, rawLD: 4 * n.RawLD, numbers: unsafe.Pointer(&numbers)}
	if n.Tanh {
		args.tanh = 1
	}
	for r := 0; r < n.Rows; r += args.rows {
		args.rows = min(n.Rows-r, logitsPerCall/n.N*Lanes)
		args.mean, args.log, args.raw = at(n.Mean, r), at(n.Log, r), at(n.Raw, r)
		args.logProb, args.entropy, args.slope, args.weight = at(n.LogProb, r), at(n.Entropy, r), at(n.Slope, r), at(n.Weight, r)
		if descend {
			normalDescend(&args)
		} else {
			normalWeigh(&args)
		}
	}
}

func (n *Normal) weighAsm() {
	if n.N > logitsPerCall {
		n.weigh()
		return
	}
	n.each(false)
}

func (n *Normal) descendAsm() {
	if n.N > logitsPerCall {
		n.descend()
		return
	}
	n.each(true)
}

// adamChunk bounds the elements of one call of adam and transposeChunk the blocks of one of transpose.
const (
	adamChunk      = 1 << 14
	transposeChunk = 1 << 7
)

func (s Set) adam(a *Adam) {
	for i := 0; i < len(a.Params); i += adamChunk {
		n := min(adamChunk, len(a.Params)-i)
		args := adamArgs{bytes: 4 * n, params: at(a.Params, i), m: at(a.M, i), v: at(a.V, i), grad: at(a.Grad, i),
			numbers: unsafe.Pointer(&a.Rate)}
		adam(&args)
	}
}

func (s Set) sumSquares(x []float32) float32 {
	var sum float32
	args := sumArgs{bytes: 4 * len(x), x: at(x, 0), result: unsafe.Pointer(&sum)}
	sumSquares(&args)
	return sum
}

func (s Set) columnSums(c *ColumnSums) {
	if c.Rows == 0 {
		return
	}
	columns := max(1, elemsPerCall/c.Rows/Panel) * Panel
	for j := 0; j < c.N; j += columns {
		args := columnsArgs{rows: c.Rows, bytes: 4 * min(columns, c.N-j), x: at(c.X, j), xRow: 4 * c.XRow, out: at(c.Out, j)}
		columnSums(&args)
	}
}

// transpose leaves the blocks at the edges that are not whole to plain Go.
func (s Set) transpose(t *Transpose) {
	in, out := t.In/Panel, t.Out/Panel
	const block = Panel * Panel
	for p := range out {
		for q := 0; q < in; q += transposeChunk {
			args := transposeArgs{blocks: min(transposeChunk, in-q), from: at(t.From, p*t.In*Panel+q*block),
				to: at(t.To, (q*t.Out+p*Panel)*Panel), toBlock: 4 * t.Out * Panel}
			transpose(&args)
		}
	}
	t.edge(in, 0)
	t.edge(0, out*Panel)
}

// widen leaves the last columns that are not eight to plain Go.
func (s Set) widen(w *Widen) {
	n := w.N / Lanes * Lanes
	if n > 0 {
		rows := max(1, elemsPerCall/n)
		for r := 0; r < w.Rows; r += rows {
			args := widenArgs{rows: min(rows, w.Rows-r), n: n, from: at(w.From, r*w.FromRow), fromRow: w.FromRow,
				to: at(w.To, r*w.ToRow), toRow: 4 * w.ToRow, scale: unsafe.Pointer(&w.Scale)}
			widen(&args)
		}
	}
	w.columns(n)
}

// pool takes whole vectors of channels.
func (s Set) pool(p *Pool) {
	for i := 0; i < p.Places; i += p.perCall() {
		args := p.args(i)
		if p.D == nil {
			pool(&args)
			continue
		}
		args.d, args.dx = at(p.D, i*p.Channels), at(p.DX, i*p.Step)
		poolBack(&args)
	}
}

func (p *Pool) perCall() int { return max(1, elemsPerCall/(p.High*p.Wide*p.Channels)) }

// args is for the places from i on that go into one call.
func (p *Pool) args(i int) poolArgs {
	return poolArgs{places: min(p.perCall(), p.Places-i), high: p.High, wide: p.Wide, bytes: 4 * p.Channels, x: at(p.X, i*p.Step),
		step: 4 * p.Step, xRow: 4 * p.XRow, out: at(p.Out, i*p.Channels)}
}

// normElems bounds the elements of one call of a norm, which goes over them several times, by the first-level cache.
const normElems = 1 << 12

func (n *Norm) asm(s Set) {
	args := normArgs{n: n.N, bytes: 4 * (n.N / Panel * Panel), broken: n.N % Panel, xRow: 4 * n.XRow, outRow: 4 * n.OutRow,
		dRow: 4 * n.DRow, weight: at(n.Weight, 0)}
	for r := 0; r < n.Rows; r += args.rows {
		args.rows = min(n.Rows-r, max(1, normElems/n.N))
		args.x, args.moments = at(n.X, r*n.XRow), at(n.Moments, 2*r)
		if n.D == nil {
			args.bias, args.out = at(n.Bias, 0), at(n.Out, r*n.OutRow)
			args.forward(s)
			continue
		}
		args.d, args.dWeight, args.dBias = at(n.D, r*n.DRow), at(n.DWeight, 0), at(n.DBias, 0)
		if n.DX != nil {
			args.dx, args.dxRow = at(n.DX, r*n.DXRow), 4*n.DXRow
		}
		args.backward(s)
	}
}

func (a *normArgs) forward(s Set) {
	if s == AVX512 {
		normAVX512(a)
		return
	}
	normAVX2(a)
}

func (a *normArgs) backward(s Set) {
	if s == AVX512 {
		normBackAVX512(a)
		return
	}
	normBackAVX2(a)
}
