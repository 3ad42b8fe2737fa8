package gorgonia

import (
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// rowMaxOp is the largest element of each row, [rows, n] -> [rows, 1], as a constant: no gradient flows through it.
// A log-softmax subtracts it so that exp cannot overflow, and does not depend on it otherwise.
type rowMaxOp struct{}

var _ gorgonia.SDOp = rowMaxOp{}

func (rowMaxOp) Arity() int                { return 1 }
func (rowMaxOp) ReturnsPtr() bool          { return false }
func (rowMaxOp) CallsExtern() bool         { return false }
func (rowMaxOp) OverwritesInput() int      { return -1 }
func (rowMaxOp) String() string            { return "RowMax" }
func (rowMaxOp) WriteHash(h hash.Hash)     { fmt.Fprint(h, "RowMax") }
func (rowMaxOp) DiffWRT(inputs int) []bool { return make([]bool, inputs) }
func (op rowMaxOp) Hashcode() uint32       { h := fnv.New32a(); op.WriteHash(h); return h.Sum32() }
func (rowMaxOp) Type() hm.Type             { a := hm.TypeVariable('a'); return hm.NewFnType(a, a) }

func (rowMaxOp) InferShape(in ...gorgonia.DimSizer) (tensor.Shape, error) {
	rows, err := in[0].DimSize(0)
	return tensor.Shape{rows, 1}, err
}

func (rowMaxOp) SymDiff(gorgonia.Nodes, *Node, *Node) (gorgonia.Nodes, error) {
	return nil, fmt.Errorf("RowMax has no derivative")
}

func (rowMaxOp) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x := in[0].(tensor.Tensor)
	rows, n := x.Shape()[0], x.Shape()[1]
	out := tensor.New(tensor.Of(x.Dtype()), tensor.WithShape(rows, 1))
	switch data := x.Data().(type) {
	case []float32:
		largest(out.Data().([]float32), data, n)
	case []float64:
		largest(out.Data().([]float64), data, n)
	default:
		return nil, fmt.Errorf("RowMax of %v", x.Dtype())
	}
	return out, nil
}

func largest[F float32 | float64](dst, x []F, n int) {
	for r := range dst {
		row := x[r*n : (r+1)*n]
		m := row[0]
		for _, v := range row[1:] {
			m = max(m, v)
		}
		dst[r] = m
	}
}
