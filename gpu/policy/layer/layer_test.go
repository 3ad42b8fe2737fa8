package layer

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// rows of every operation: the shapes of its inputs and that of its output.
var rows = []struct {
	op  Op
	in  [][]int
	out []int
}{
	{&Dense{Out: 5, Gain: 1}, [][]int{{2, 3}}, []int{5}},
	{&Activation{Func: Tanh}, [][]int{{7}}, []int{7}},
	{&Activation{Func: ELU}, [][]int{{7}}, []int{7}},
	{&Activation{Func: GELU}, [][]int{{7}}, []int{7}},
	{&Activation{Func: SiLU}, [][]int{{7}}, []int{7}},
	{&Conv2D{Window: Window{Kernel: 3, Stride: 2}, Out: 4, Gain: 1}, [][]int{{6, 8, 2}}, []int{2, 3, 4}},
	{&Conv2D{Window: Window{Kernel: 3, Stride: 1, Pad: 1}, Out: 3, Gain: 1}, [][]int{{4, 3, 5}}, []int{4, 3, 3}},
	{&Conv2D{Window: Window{Kernel: 1, Stride: 3}, Out: 2, Gain: 1}, [][]int{{5, 4, 3}}, []int{2, 2, 2}},
	{&MaxPool{Window{Kernel: 3, Stride: 2, Pad: 1}}, [][]int{{5, 6, 2}}, []int{3, 3, 2}},
	{&Add{}, [][]int{{3, 2}, {3, 2}, {3, 2}}, []int{3, 2}},
	{&Concat{}, [][]int{{2, 3, 1}, {2, 3, 4}}, []int{2, 3, 5}},
	{&Flatten{}, [][]int{{2, 3, 4}}, []int{24}},
	{&LayerNorm{}, [][]int{{2, 3, 5}}, []int{2, 3, 5}},
	{&LayerNorm{}, [][]int{{9}}, []int{9}},
	{&GRU{Size: 4}, [][]int{{3}}, []int{4}},
	{&LSTM{Size: 3}, [][]int{{2, 2}}, []int{3}},
}

// The gradient of a random weighting of the output is that of finite differences, for every input and parameter.
func TestBackwardIsTheDerivativeOfForward(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = r.NormFloat64()
		}
		return x
	}
	for _, c := range rows {
		shape, err := c.op.Shape(c.in)
		if err != nil || Elems(shape) != Elems(c.out) || len(shape) != len(c.out) {
			t.Fatalf("%v of %v has the shape %v (%v), want %v", c.op, c.in, shape, err, c.out)
		}
		batch := 2
		core, recurrent := c.op.(Core)
		if recurrent {
			batch = 7
		}
		p := &Pass{Rows: batch, Shapes: c.in, DOut: random(batch * Elems(shape))}
		var vary, grads [][]float64
		for _, in := range c.in {
			p.In, p.DIn = append(p.In, random(batch*Elems(in))), append(p.DIn, make([]float64, batch*Elems(in)))
		}
		for _, tensor := range c.op.Params(c.in) {
			p.Params, p.Grads = append(p.Params, random(Elems(tensor.Shape))), append(p.Grads, make([]float64, Elems(tensor.Shape)))
		}
		vary, grads = append(append(vary, p.In...), p.Params...), append(append(grads, p.DIn...), p.Grads...)
		if recurrent { // rows of two environments: one is reset, the other begins from a state
			p.Prev, p.State = []int{-1, -1, 0, 1, 2, -1, 5}, random(batch*core.State())
			p.StateOut = make([]float64, len(p.State))
			clear(p.State[:2*core.State()])
		}
		loss := func() (sum float64) {
			p.Out = make([]float64, len(p.DOut))
			c.op.Forward(p)
			for i, y := range p.Out {
				sum += y * p.DOut[i]
			}
			return sum
		}
		loss()
		c.op.Backward(p)
		for k, x := range vary {
			for i := range x {
				const h = 1e-6
				at := x[i]
				x[i] = at + h
				above := loss()
				x[i] = at - h
				below := loss()
				x[i] = at
				if want := (above - below) / (2 * h); math.Abs(grads[k][i]-want) > 1e-6*(1+math.Abs(want)) {
					t.Fatalf("%v of %v: gradient %d of tensor %d is %v, finite difference %v", c.op, c.in, i, k, grads[k][i], want)
				}
			}
		}
	}
}

func TestShapesThatDoNotFitAreNamed(t *testing.T) {
	for _, c := range []struct {
		want string
		op   Op
		in   [][]int
	}{
		{"shape [8], want [height width channels]", &Conv2D{Window: Window{Kernel: 3, Stride: 1}, Out: 4}, [][]int{{8}}},
		{"2 inputs, want one", &MaxPool{Window{Kernel: 3, Stride: 1}}, [][]int{{8, 8, 1}, {8, 8, 1}}},
		{"kernel 0, stride 1, pad 0", &Conv2D{Window: Window{Stride: 1}, Out: 4}, [][]int{{8, 8, 1}}},
		{"kernel 3, stride 0, pad 0", &Conv2D{Window: Window{Kernel: 3}, Out: 4}, [][]int{{8, 8, 1}}},
		{"a pad below the kernel", &MaxPool{Window{Kernel: 3, Stride: 1, Pad: 3}}, [][]int{{8, 8, 1}}},
		{"a kernel of 9 does not fit an image of 8×8 with a pad of 0", &MaxPool{Window{Kernel: 9, Stride: 1}}, [][]int{{8, 8, 1}}},
		{"0 outputs", &Conv2D{Window: Window{Kernel: 3, Stride: 1}}, [][]int{{8, 8, 1}}},
		{"outputs for each of 8×8 windows", &Conv2D{Window: Window{Kernel: 1, Stride: 1}, Out: MaxElems}, [][]int{{8, 8, 1}}},
		{"1 inputs, want two or more", &Add{}, [][]int{{8}}},
		{"[8] and [9], want one shape", &Add{}, [][]int{{8}, {9}}},
		{"1 inputs, want two or more", &Concat{}, [][]int{{8}}},
		{"[2 3] and [3 2], want all axes but the last", &Concat{}, [][]int{{2, 3}, {3, 2}}},
		{"an output of shape [2147483649]", &Concat{}, [][]int{{MaxElems}, {1}}},
		{"0 inputs, want one", &Flatten{}, nil},
		{"0 inputs, want one", &LayerNorm{}, nil},
		{"a size of 0, want 1 to 16384", &GRU{}, [][]int{{8}}},
		{"2 inputs, want one", &LSTM{Size: 2}, [][]int{{8}, {8}}},
	} {
		if _, err := c.op.Shape(c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v of %v: %v, want %q", c.op, c.in, err, c.want)
		}
	}
}
