package gorgonia

import (
	"fmt"
	"hash"
	"hash/fnv"
	"math"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// normal is the standard normal distribution function of each element.
func normal(x *Node) *Node { return gorgonia.Must(gorgonia.ApplyOp(normalOp{}, x)) }

// normalOp computes normal.
type normalOp struct{}

var _ gorgonia.SDOp = normalOp{}

func (normalOp) Arity() int                { return 1 }
func (normalOp) ReturnsPtr() bool          { return false }
func (normalOp) CallsExtern() bool         { return false }
func (normalOp) OverwritesInput() int      { return -1 }
func (normalOp) String() string            { return "Normal" }
func (normalOp) WriteHash(h hash.Hash)     { fmt.Fprint(h, "Normal") }
func (normalOp) DiffWRT(inputs int) []bool { return []bool{true} }
func (op normalOp) Hashcode() uint32       { h := fnv.New32a(); op.WriteHash(h); return h.Sum32() }
func (normalOp) Type() hm.Type             { a := hm.TypeVariable('a'); return hm.NewFnType(a, a) }

func (normalOp) InferShape(in ...gorgonia.DimSizer) (tensor.Shape, error) {
	return in[0].(tensor.Shape).Clone(), nil
}

// SymDiff multiplies with the density.
func (normalOp) SymDiff(in gorgonia.Nodes, _, grad *Node) (gorgonia.Nodes, error) {
	d, err := caught(func() *Node { return mul(grad, scale(exp(scale(square(in[0]), -0.5)), 1/math.Sqrt(2*math.Pi))) })
	return gorgonia.Nodes{d}, err
}

func (normalOp) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x := in[0].(tensor.Tensor)
	out := tensor.New(tensor.Of(x.Dtype()), tensor.WithShape(x.Shape()...))
	switch data := x.Data().(type) {
	case []float32:
		distribution(out.Data().([]float32), data)
	case []float64:
		distribution(out.Data().([]float64), data)
	default:
		return nil, fmt.Errorf("the normal distribution of %v", x.Dtype())
	}
	return out, nil
}

func distribution[F float32 | float64](dst, x []F) {
	for i, v := range x {
		dst[i] = F(math.Erfc(-float64(v)/math.Sqrt2) / 2)
	}
}
