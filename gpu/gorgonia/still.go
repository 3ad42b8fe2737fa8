package gorgonia

import (
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// stillOp is its input as a constant: no gradient flows through it.
type stillOp struct{}

var _ gorgonia.SDOp = stillOp{}

func (stillOp) Arity() int                { return 1 }
func (stillOp) ReturnsPtr() bool          { return false }
func (stillOp) CallsExtern() bool         { return false }
func (stillOp) OverwritesInput() int      { return -1 }
func (stillOp) String() string            { return "Still" }
func (stillOp) WriteHash(h hash.Hash)     { fmt.Fprint(h, "Still") }
func (stillOp) DiffWRT(inputs int) []bool { return make([]bool, inputs) }
func (op stillOp) Hashcode() uint32       { h := fnv.New32a(); op.WriteHash(h); return h.Sum32() }
func (stillOp) Type() hm.Type             { a := hm.TypeVariable('a'); return hm.NewFnType(a, a) }

func (stillOp) InferShape(in ...gorgonia.DimSizer) (tensor.Shape, error) {
	rows, err := in[0].DimSize(0)
	if err != nil {
		return nil, err
	}
	cols, err := in[0].DimSize(1)
	return tensor.Shape{rows, cols}, err
}

func (stillOp) SymDiff(gorgonia.Nodes, *Node, *Node) (gorgonia.Nodes, error) {
	return nil, fmt.Errorf("a constant has no derivative")
}

func (stillOp) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	return gorgonia.CloneValue(in[0])
}

// still returns x as a constant.
func still(x *Node) *Node { return gorgonia.Must(gorgonia.ApplyOp(stillOp{}, x)) }
