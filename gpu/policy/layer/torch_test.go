package layer

import (
	_ "embed"
	"encoding/json"
	"math"
	"slices"
	"testing"
)

// What PyTorch computes; testdata/torch_cells.py has made it and says how.
//
//go:embed testdata/torch_cells.json
var torchCells []byte

// torchCell is a tensor's elements in PyTorch's order, [step][environment][elements] of rows, [out][in] of weights.
type torchCell struct {
	Out, State, DX []float64
	Grads          map[string][]float64
}

func wave(start, count int) []float64 {
	x := make([]float64, count)
	for i := range x {
		x[i] = math.Sin(float64(start + i))
	}
	return x
}

// transposed returns x, [rows][cols], as [cols][rows].
func transposed(x []float64, rows, cols int) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i%cols*rows+i/cols] = v
	}
	return y
}

func TestCoresComputeWhatPyTorchDoes(t *testing.T) {
	var cells struct{ GRU, LSTM torchCell }
	if err := json.Unmarshal(torchCells, &cells); err != nil {
		t.Fatal(err)
	}
	compareTorch(t, &GRU{Size: 4}, cells.GRU)
	compareTorch(t, &LSTM{Size: 4}, cells.LSTM)
}

func compareTorch(t *testing.T, op Core, want torchCell) {
	t.Helper()
	const in, size, steps, envs, reset = 3, 4, 5, 2, 3
	rows, kept := steps*envs, op.State()
	p := &Pass{Rows: rows, Shapes: [][]int{{in}}, In: [][]float64{wave(7, rows*in)}, DIn: [][]float64{make([]float64, rows*in)},
		Out: make([]float64, rows*size), DOut: wave(900, rows*size), StateOut: make([]float64, rows*kept), State: make([]float64, rows*kept)}
	for row := range rows {
		p.Prev = append(p.Prev, row-envs)
	}
	p.Prev[0], p.Prev[1], p.Prev[reset*envs+1] = -1, -1, -1
	for part := range kept / size {
		for i, x := range wave(50+10*part, envs*size) {
			p.State[i/size*kept+part*size+i%size] = x / 2
		}
	}
	for i, tensor := range op.Params(p.Shapes) {
		param := wave(100*(i+1), Elems(tensor.Shape))
		if len(tensor.Shape) == 2 {
			param = transposed(param, tensor.Shape[1], tensor.Shape[0])
		}
		p.Params, p.Grads = append(p.Params, param), append(p.Grads, make([]float64, len(param)))
	}
	op.Forward(p)
	op.Backward(p)
	near(t, op.String()+": output", p.Out, want.Out)
	near(t, op.String()+": state", p.StateOut[(rows-envs)*kept:], want.State)
	near(t, op.String()+": gradient of the input", p.DIn[0], want.DX)
	for i, tensor := range op.Params(p.Shapes) {
		grad := p.Grads[i]
		if len(tensor.Shape) == 2 {
			grad = transposed(grad, tensor.Shape[0], tensor.Shape[1])
		}
		near(t, op.String()+": gradient of "+tensor.Name, grad, want.Grads[tensor.Name])
	}
}

func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*(1+math.Abs(b)) }) {
		t.Errorf("%s is %v, PyTorch's %v", what, got, want)
	}
}
