package export

import (
	"errors"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// Samples are observations with the host's results.
type Samples struct {
	Rows    int
	Obs     []float32 // [Rows] of the numbers that the environment wrote: for each input its frames, the current one last
	Actions []Action  // of the network, in its order
	LogProb []float32 // joint, of all actions
	Value   []float32
	// The network's state before each row, zero in an episode's first step, and after it, [Rows][policy.Network.State].
	State, StateOut []float32

	inputs []policy.Input
	mean   []float32     // of the running statistics
	stored *policy.Entry // makes a row of Obs
	width  int           // of a row
	kept   int           // elements of a row's state
}

// Action has the host's results for one action.
type Action struct {
	dist   policy.Dist
	of     head.Dist // with one logit for each choice
	Mask   []byte    // [Rows][choices], 1 where a choice is legal; empty without a mask
	Chosen []float64 // [Rows][elements]: the most probable one, as its distribution has it
	Given  []float64 // [Rows][elements]: the same as the environment reads it
}

// Bounds of how many rows a policy is compared on.
const (
	mostRows  = 10_000
	leastRows = 100
	most      = 1 << 33 // multiplications, unless that is fewer rows than leastRows
)

// Rows returns how many observations are enough to compare a policy on: 10,000, or fewer of a large network, which its
// reference takes long for.
func (p *Policy) Rows() int {
	shapes, _ := p.Network.Shapes()
	tensors, work := p.tensors(), 1
	for i := range p.Network.Nodes {
		node := &p.Network.Nodes[i]
		work += layer.Elems(shapes[node.Name])
		if t, ok := tensors[node.Name+".weight"]; ok {
			work += layer.Elems(shapes[node.Name]) / t.Shape[len(t.Shape)-1] * len(t.Data)
		}
		work += len(tensors[node.Name+".weight_ih"].Data) + len(tensors[node.Name+".weight_hh"].Data)
	}
	return max(leastRows, min(mostRows, most/work))
}

// NewSamples returns empty Samples for a valid network with the given means of its running statistics.
func NewSamples(n *policy.Network, mean []float32) *Samples {
	numbers := n.Clone()
	for i := range numbers.Inputs {
		in := &numbers.Inputs[i]
		*in = policy.Input{Path: in.Path, Shape: []int{layer.Elems(in.Shape)}, DType: in.DType, From: in.From, Stack: in.Stack}
	}
	s := &Samples{inputs: n.Inputs, mean: mean, stored: policy.NewEntry(&numbers, nil), width: numbers.Obs(), kept: n.State()}
	for _, d := range n.Policy {
		s.Actions = append(s.Actions, Action{dist: d, of: written(&d)})
	}
	return s
}

// written is a distribution as files have it: of a discrete one the logits of all choices, one element after the other.
func written(d *policy.Dist) head.Dist {
	if counts := d.Counts(); counts != nil {
		return &head.MultiCategorical{Counts: counts}
	}
	of, _ := d.Of()
	return of
}

// Add appends the rows of a request that was answered greedily. Where an episode has no last action yet, that is one below the
// first there is, and where it has no last reward, that is the mean.
func (s *Samples) Add(r *policy.Request) {
	rows := r.Len()
	for row := range rows {
		s.Obs = append(s.Obs, make([]float32, s.width)...)
		numbers := s.Obs[len(s.Obs)-s.width:]
		s.stored.Request(policy.EnteredRow{Numbers: numbers}, r, row)
		mean := s.mean
		for i := range s.inputs {
			in := &s.inputs[i]
			n := in.Frames() * layer.Elems(in.Shape)
			first := in.From != "" && r.Age != nil && r.Age[row] == 0
			if in.Norm == policy.Running {
				if first {
					copy(numbers[:n], mean)
				}
				mean = mean[layer.Elems(in.Shape):]
			}
			for k := range numbers[:n] {
				if first && in.Norm == policy.OneHot {
					numbers[k] = float32(in.Start - 1)
				}
			}
			numbers = numbers[n:]
		}
	}
	for k := range s.Actions {
		a, mask, action := &s.Actions[k], r.ActionMask(k), &r.Action[k]
		elements(&mask, func(at int) { a.Mask = append(a.Mask, mask.Data[at]) })
		if a.of.Continuous() {
			raw := &r.Raw[k]
			elements(raw, func(at int) { a.Chosen = append(a.Chosen, float64(raw.Float32()[at/4])) })
			elements(action, func(at int) { a.Given = append(a.Given, float64(action.Float32()[at/4])) })
			continue
		}
		elements(action, func(at int) {
			a.Chosen = append(a.Chosen, float64(action.Int32()[at/4]-a.dist.Start))
			a.Given = append(a.Given, float64(action.Int32()[at/4]))
		})
	}
	s.keep(r)
	s.Rows += rows
	s.LogProb, s.Value = append(s.LogProb, r.LogProb[:rows]...), append(s.Value, r.Value[:rows]...)
}

// keep appends the states of a request.
func (s *Samples) keep(r *policy.Request) {
	elements(&r.State, func(at int) { s.State = append(s.State, r.State.Float32()[at/4]) })
	elements(&r.StateOut, func(at int) { s.StateOut = append(s.StateOut, r.StateOut.Float32()[at/4]) })
	for row := range r.State.Rows {
		if r.Age[row] == 0 {
			clear(s.State[(s.Rows+row)*s.kept : (s.Rows+row+1)*s.kept])
		}
	}
}

// elements visits where the elements of a matrix lie, row by row.
func elements(m *trajectory.Matrix, visit func(at int)) {
	for row := range m.Rows {
		for e := range m.Elems {
			visit(row*m.StrideRow + e*m.StrideElem)
		}
	}
}

// slice returns the rows lo to hi.
func (s *Samples) slice(lo, hi int) *Samples {
	part := &Samples{Rows: hi - lo, Obs: s.Obs[lo*s.width : hi*s.width], LogProb: s.LogProb[lo:hi], Value: s.Value[lo:hi],
		State: s.State[lo*s.kept : hi*s.kept], StateOut: s.StateOut[lo*s.kept : hi*s.kept], inputs: s.inputs, width: s.width, kept: s.kept}
	for _, a := range s.Actions {
		n, c := a.of.Size(), len(a.Mask)/s.Rows
		a.Mask, a.Chosen, a.Given = a.Mask[lo*c:hi*c], a.Chosen[lo*n:hi*n], a.Given[lo*n:hi*n]
		part.Actions = append(part.Actions, a)
	}
	return part
}

// Tolerances of Compare.
const (
	tolerance = 1e-5 // of a number x: times max(1, |x|)
	tie       = 1e-4 // choices whose log-probabilities are nearer may change places
)

// chunk is how many rows are computed at once.
const chunk = 64

// ErrDiffers is wrapped by Compare where the file computes something else than the host.
var ErrDiffers = errors.New("the file does not compute what the host does")

// Compare computes the samples from the file and returns the largest difference of a log-probability, a value or an element
// of a Box or of the state x from the host's, divided by max(1, |x|) and, for elements that are scaled to their bounds, by how far these are
// apart. More than 1e-5, or another most probable choice where that one is more probable by more than a factor of
// exp(1e-4), is ErrDiffers.
//
// run makes an instance of a module; it is called for the format Wasm alone.
func Compare(f Format, file []byte, s *Samples, run func(module []byte) (Machine, error)) (largest float64, err error) {
	c := codecs[f]
	open := c.open
	if c.run != nil {
		m, err := run(file)
		if err != nil {
			return 0, fmt.Errorf("%s file: %w", f, err)
		}
		defer func() { err = errors.Join(err, m.Close()) }()
		open = func(file []byte) (model, error) { return c.run(file, m) }
	}
	compute, err := open(file)
	if err != nil {
		return 0, fmt.Errorf("%s file: %w", f, err)
	}
	for lo := 0; lo < s.Rows; lo += chunk {
		part := s.slice(lo, min(lo+chunk, s.Rows))
		out, err := compute(part)
		if err != nil {
			return largest, fmt.Errorf("%s file: %w", f, err)
		}
		if err := part.fits(out); err != nil {
			return largest, err
		}
		for row := range part.Rows {
			away, err := part.away(out, row)
			if largest = max(largest, away); err != nil {
				return largest, fmt.Errorf("%w in row %d", err, lo+row)
			}
		}
	}
	return largest, nil
}

// fits reports whether outputs have the sizes of the samples.
func (s *Samples) fits(out *outputs) error {
	if out.acts && out.values == nil {
		out.values = widen(s.Value)
	}
	if len(out.values) != s.Rows || len(out.params) != len(s.Actions) || len(out.actions) != len(s.Actions) {
		return fmt.Errorf("%w: %d values of %d rows and %d actions of %d", ErrDiffers, len(out.values), s.Rows, len(out.params), len(s.Actions))
	}
	if len(out.state) != len(s.StateOut) {
		return fmt.Errorf("%w: %d elements of state, want %d", ErrDiffers, len(out.state), len(s.StateOut))
	}
	for k, a := range s.Actions {
		if len(out.params[k]) != s.Rows*a.of.Elems() || len(out.actions[k]) != s.Rows*a.of.Size() {
			return fmt.Errorf("%w: action %q has %d parameters and %d elements of %d rows", ErrDiffers, a.dist.Action,
				len(out.params[k]), len(out.actions[k]), s.Rows)
		}
	}
	return nil
}

// away returns the largest difference of a row from the host's.
func (s *Samples) away(out *outputs, row int) (largest float64, err error) {
	logProb := 0.0
	for k := range s.Actions {
		a := &s.Actions[k]
		l, d, err := a.away(out.params[k], out.actions[k], row)
		if largest = max(largest, d); err != nil {
			return largest, err
		}
		logProb += l
	}
	pairs := [][2]float64{{logProb, float64(s.LogProb[row])}, {out.values[row], float64(s.Value[row])}}
	for i := row * s.kept; i < (row+1)*s.kept; i++ {
		pairs = append(pairs, [2]float64{out.state[i], float64(s.StateOut[i])})
	}
	for _, x := range pairs {
		d, err := differ(x[0], x[1], 1)
		if largest = max(largest, d); err != nil {
			return largest, err
		}
	}
	return largest, nil
}

// away returns the log-probability of the host's choice by the file's parameters, and how far the file's action is from it.
func (a *Action) away(params, actions []float64, row int) (logProb, largest float64, err error) {
	size, elems := a.of.Size(), a.of.Elems()
	p, chosen, given := params[row*elems:(row+1)*elems], a.Chosen[row*size:(row+1)*size], a.Given[row*size:(row+1)*size]
	own := actions[row*size : (row+1)*size]
	var mask []byte
	if c := a.of.Choices(); len(a.Mask) > 0 {
		mask = a.Mask[row*c : (row+1)*c]
	}
	logProb, _ = a.of.LogProb(p, mask, chosen)
	if a.of.Continuous() {
		for i, x := range given {
			d, err := differ(own[i], x, a.span(i))
			if largest = max(largest, d); err != nil {
				return logProb, largest, err
			}
		}
		return logProb, largest, nil
	}
	choice := make([]float64, size)
	for i, n := range a.dist.Counts() {
		choice[i] = own[i] - float64(a.dist.Start)
		if choice[i] != math.Trunc(choice[i]) || !(choice[i] >= 0 && choice[i] < float64(n)) {
			return logProb, largest, fmt.Errorf("%w: element %d of action %q is %v", ErrDiffers, i, a.dist.Action, own[i])
		}
	}
	if other, _ := a.of.LogProb(p, mask, choice); !(math.Abs(other-logProb) <= tie) {
		return logProb, largest, fmt.Errorf("%w: action %v instead of %v", ErrDiffers, own, given)
	}
	return logProb, largest, nil
}

// span is how far apart the bounds are that element i of a Box is scaled to, 0 if it is not scaled.
func (a *Action) span(i int) float64 {
	if b := a.dist.Bounds; a.dist.Scaled() {
		return float64(b.High[i]) - float64(b.Low[i])
	}
	return 0
}

// differ returns how far a number is from the host's, in units of the host's or of scale.
func differ(got, want, scale float64) (away float64, err error) {
	if away = math.Abs(got-want) / max(1, math.Abs(want), scale); !(away <= tolerance) {
		err = fmt.Errorf("%w: %g instead of %g", ErrDiffers, got, want)
	}
	return away, err
}
