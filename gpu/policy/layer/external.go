package layer

import (
	"fmt"
	"slices"
	"strings"
)

// External is what a program computes that this one does not know from within: it takes inputs and has parameters, and how they lead to
// outputs is the program's alone. No backend but that program's computes it.
type External struct {
	Program string   `json:"program"`         // the name of its plugin
	Out     int      `json:"out"`             // elements of a row
	Keeps   int      `json:"keeps,omitempty"` // elements of the state of a row
	Weights []Weight `json:"weights,omitempty"`
}

// Weight is a tensor of parameters of an External.
type Weight struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
}

var _ Core = (*External)(nil)

// maxWeights bounds the tensors of a program's network.
const maxWeights = 1 << 14

// Shape is [Out].
func (e *External) Shape([][]int) ([]int, error) {
	if e.Out < 1 || e.Out > MaxElems || e.Keeps < 0 || e.Keeps > maxCore {
		return nil, fmt.Errorf("%d outputs and a state of %d: want 1 to %d, and 0 to %d", e.Out, e.Keeps, MaxElems, maxCore)
	}
	if len(e.Weights) > maxWeights {
		return nil, fmt.Errorf("%d tensors of parameters, at most %d", len(e.Weights), maxWeights)
	}
	for i, w := range e.Weights {
		if w.Name == "" || Elems(w.Shape) == 0 || len(w.Shape) == 0 {
			return nil, fmt.Errorf("tensor %d of its parameters is called %q and has the shape %v", i, w.Name, w.Shape)
		}
		if slices.ContainsFunc(e.Weights[:i], func(o Weight) bool { return o.Name == w.Name }) {
			return nil, fmt.Errorf("two tensors of its parameters are called %q", w.Name)
		}
	}
	return []int{e.Out}, nil
}

// Params are Weights. The program says how they begin.
func (e *External) Params([][]int) (list []Tensor) {
	for _, w := range e.Weights {
		list = append(list, Tensor{Name: w.Name, Shape: w.Shape})
	}
	return list
}

// State is Keeps.
func (e *External) State() int { return e.Keeps }

// Forward panics: only the program computes it.
func (e *External) Forward(*Pass) { panic("layer: " + e.String() + " has no reference") }

// Backward panics, as Forward does.
func (e *External) Backward(*Pass) { panic("layer: " + e.String() + " has no reference") }

// String is such as external(2 by mine), with its tensors where it has some.
func (e *External) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "external(%d by %s", e.Out, e.Program)
	if e.Keeps > 0 {
		fmt.Fprintf(&b, ", keeps %d", e.Keeps)
	}
	for _, w := range e.Weights {
		fmt.Fprintf(&b, ", %s %v", w.Name, w.Shape)
	}
	return b.String() + ")"
}
