package gorgonia

import (
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// pickOp copies elements to other places: of every from elements that follow one another, element index[i] goes to place i,
// and rest where index[i] is negative. The result is a matrix of so many columns. Its derivative is the same op the other
// way around, which adds up the elements that go to one place.
type pickOp struct {
	what       string // tells apart ops with different indexes
	from, cols int
	index      []int
	rest       float64
	back       bool
}

var _ gorgonia.SDOp = (*pickOp)(nil)

func (*pickOp) Arity() int           { return 1 }
func (*pickOp) ReturnsPtr() bool     { return false }
func (*pickOp) CallsExtern() bool    { return false }
func (*pickOp) OverwritesInput() int { return -1 }
func (p *pickOp) String() string {
	return fmt.Sprintf("Pick(%s, %d, %d, %t)", p.what, p.from, p.cols, p.back)
}
func (p *pickOp) WriteHash(h hash.Hash) { fmt.Fprint(h, p.String()) }
func (p *pickOp) Hashcode() uint32      { h := fnv.New32a(); p.WriteHash(h); return h.Sum32() }
func (*pickOp) Type() hm.Type           { a := hm.TypeVariable('a'); return hm.NewFnType(a, a) }

func (p *pickOp) DiffWRT(inputs int) []bool {
	wrt := make([]bool, inputs)
	wrt[0] = !p.back
	return wrt
}

// shape returns the rows of the result for so many elements.
func (p *pickOp) shape(elems int) tensor.Shape {
	to := len(p.index)
	if p.back {
		return tensor.Shape{elems / to * p.from / p.cols, p.cols}
	}
	return tensor.Shape{elems / p.from * to / p.cols, p.cols}
}

func (p *pickOp) InferShape(in ...gorgonia.DimSizer) (tensor.Shape, error) {
	rows, err := in[0].DimSize(0)
	if err != nil {
		return nil, err
	}
	cols, err := in[0].DimSize(1)
	return p.shape(rows * cols), err
}

func (p *pickOp) SymDiff(in gorgonia.Nodes, _, grad *Node) (gorgonia.Nodes, error) {
	back := *p
	back.back, back.cols = true, in[0].Shape()[1]
	d, err := gorgonia.ApplyOp(&back, grad)
	return gorgonia.Nodes{d}, err
}

func (p *pickOp) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x := in[0].(tensor.Tensor)
	if l, ok := layoutOf(x); !ok || l.transposed {
		return nil, fmt.Errorf("%v of a matrix that does not lie row by row", p)
	}
	out := tensor.New(tensor.Of(x.Dtype()), tensor.WithShape(p.shape(x.DataSize())...))
	switch data := x.Data().(type) {
	case []float32:
		picked(p, out.Data().([]float32), data)
	case []float64:
		picked(p, out.Data().([]float64), data)
	default:
		return nil, fmt.Errorf("%v of %v", p, x.Dtype())
	}
	return out, nil
}

func picked[F float](p *pickOp, dst, x []F) {
	to := len(p.index)
	if p.back {
		for row := range len(x) / to {
			for i, from := range p.index {
				if from >= 0 {
					dst[row*p.from+from] += x[row*to+i]
				}
			}
		}
		return
	}
	for row := range len(x) / p.from {
		for i, from := range p.index {
			dst[row*to+i] = F(p.rest)
			if from >= 0 {
				dst[row*to+i] = x[row*p.from+from]
			}
		}
	}
}

// pick applies an op to x.
func pick(x *Node, p pickOp) *Node { return gorgonia.Must(gorgonia.ApplyOp(&p, x)) }

// shaped returns the elements of x in rows of so many columns.
func shaped(x *Node, cols int) *Node {
	return pick(x, pickOp{what: "all", from: 1, cols: cols, index: []int{0}})
}
