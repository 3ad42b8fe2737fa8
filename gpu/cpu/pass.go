package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/plan"
)

// pass computes a network on a block of rows at a time: all operations of one block while it is in the cache.
type pass struct {
	*layout
	set    kern.Set
	params []float32 // the backend's vector, with values derived from it
	block  int       // rows, a multiple of kern.Lanes

	x        matrix      // observations as the network takes them
	stagedX  []float32   // [block][pad(obs)] or [block][obs]: observations that cannot be read in place
	staged8  []byte      // [block][obs], in its place where rows are bytes
	out      [][]float32 // per operation [block][out], rows apart; of operations that heads read [out][block]
	room     [][]float32 // per operation: its own memory
	pixels   pixels      // observations in place of x, where rows are bytes
	dist     dist
	product  kern.Gemm
	widen    kern.Widen
	tilesIn  kern.TilesIn
	tilesOut kern.TilesOut
	pool     kern.Pool
	sum      kern.ColumnSums
	norm     kern.Norm
	head     kern.Head
	cell     kern.Cell
	steps    steps // of a network that keeps a state
}

// matrix is a block of rows of float32 where they lie; strides count elements.
type matrix struct {
	data     []float32
	row, col int
}

func newPass(set kern.Set, l *layout, params []float32) *pass {
	p := &pass{layout: l, set: set, block: l.block(), params: params}
	if l.bytes {
		p.staged8 = make([]byte, p.block*l.obs)
	} else {
		p.stagedX = aligned(p.block * max(pad(l.obs), l.row))
	}
	p.out = p.rowsOfAll()
	for _, o := range l.ops {
		p.room = append(p.room, aligned(o.room()))
	}
	p.dist = l.dist(p)
	return p
}

// rowsOfAll makes room for a block of rows of every operation's output.
func (p *pass) rowsOfAll() [][]float32 {
	var all [][]float32
	for _, o := range p.ops {
		n := o.common()
		all = append(all, aligned(p.block*max(n.row, n.Out)))
	}
	return all
}

// block returns how many rows go through the layers together: blockRows, or fewer where their outputs take much memory.
func (l *layout) block() int {
	row := 0
	for _, o := range l.ops {
		row += o.common().row
	}
	if l.kept > 0 {
		chunks := max(1, min(coreRows, blockElems/row)/l.net.Chunk)
		return (chunks*l.net.Chunk + kern.Lanes - 1) / kern.Lanes * kern.Lanes
	}
	return min(blockRows, max(blockElems/max(row, 1)/kern.Lanes, 1)*kern.Lanes)
}

// blockElems bounds the elements of the outputs of a block of rows.
const blockElems = 1 << 23

// coreRows is how many rows of whole chunks are enough for products with the rows of a step: a GRU of 128 learns no faster with
// fewer, and slower with more, which leave the caches.
const coreRows = 512

// blockRows is how many rows are few enough for the second-level cache with layers of
// some hundred columns, and whole tiles of the AVX2 kernels.
const blockRows = 96

// stage copies rows whose observations must be normalised, or that are read in whole panels, into x.
func (p *pass) stage(x matrix, rows int, mean, scale []float32) {
	width := p.obs
	if p.staged {
		width = pad(p.obs)
	}
	for r := range rows {
		policy.NormalizeRow(p.stagedX[r*width:r*width+p.obs], x.data[r*x.row:], x.col, mean, scale)
	}
	p.x = matrix{p.stagedX, width, 1}
}

// forward computes the values of the rows of x and, if act is set, the parameters of the distributions.
func (p *pass) forward(rows int, act bool) {
	for _, o := range p.ops {
		if act || o.common().Values {
			o.forward(p, rows)
		}
	}
}

// input returns the rows that an operation reads.
func (p *pass) input(e *plan.Edge) matrix {
	if e.From == nil {
		return matrix{p.x.data[p.begins[e.Input]*p.x.col:], p.x.row, p.x.col}
	}
	return p.output(p.nodes[e.From.At])
}

// output returns the rows that an operation writes.
func (p *pass) output(n *node) matrix { return matrix{p.out[n.At], n.row, 1} }

// apply runs an epilogue over rows of a matrix; derivatives are taken at h.
func (p *pass) apply(e kern.Epilogue, m matrix, h []float32, rows, columns int) {
	p.product = kern.Gemm{M: rows, N: columns, C: m.data, CRow: m.row, CPanel: kern.Panel, Add: true, Epilogue: e, H: h}
	p.set.Gemm(&p.product)
}

// columns returns the output of a head, [out][block].
func (p *pass) columns(s *plan.Step) []float32 { return p.out[s.At] }
