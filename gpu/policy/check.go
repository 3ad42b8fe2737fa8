package policy

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/hostabi"
)

// ErrNoWeights is returned by an actor that is asked to act before its first Load.
var ErrNoWeights = errors.New("no weights loaded")

// Sizes are the numbers of elements of a network's inputs and outputs.
type Sizes struct {
	Obs     []ObsSize // by frame
	Actions []ActionSize
	State   int // see Network.State
}

// ObsSize is the size of a frame of an input.
type ObsSize struct {
	Elems int
	DType hostabi.DType
}

// ActionSize are the numbers of one action: its elements, the length of its mask, and whether it is a Box.
type ActionSize struct {
	Size, Choices int
	Continuous    bool
	Edges         []Edges // of a Box, by element
}

// Sizes returns the sizes of a valid network.
func (n *Network) Sizes() (s Sizes) {
	for i := range n.Inputs {
		in := &n.Inputs[i]
		for range in.Frames() {
			s.Obs = append(s.Obs, ObsSize{layer.Elems(in.Shape), in.Type()})
		}
	}
	s.State = n.State()
	for i := range n.Policy {
		if d, err := n.Policy[i].Of(); err == nil {
			s.Actions = append(s.Actions, ActionSize{Size: d.Size(), Choices: d.Choices(), Continuous: d.Continuous(), Edges: n.Policy[i].edges()})
		}
	}
	return s
}

// Len returns the number of rows that a request asks for.
func (r *Request) Len() int {
	if len(r.Obs) == 0 {
		return 0
	}
	return r.Obs[0].Rows
}

// Views are memory for the matrices of requests that are used together.
type Views []trajectory.Matrix

// From returns the views that were added since there were n.
func (v Views) From(n int) []trajectory.Matrix { return v[n:len(v):len(v)] }

// Slice returns the rows lo to hi of a request. Its matrices are added to v.
func (r *Request) Slice(lo, hi int, v *Views) Request {
	part := *r
	cut := func(list []trajectory.Matrix) []trajectory.Matrix {
		if list == nil {
			return nil
		}
		n := len(*v)
		for i := range list {
			if list[i].Rows > 0 {
				*v = append(*v, list[i].Slice(lo, hi))
			} else {
				*v = append(*v, trajectory.Matrix{})
			}
		}
		return v.From(n)
	}
	if r.Age != nil {
		part.Age = r.Age[lo:hi]
	}
	if r.State.Rows > 0 {
		part.State = r.State.Slice(lo, hi)
	}
	if r.StateOut.Rows > 0 {
		part.StateOut = r.StateOut.Slice(lo, hi)
	}
	part.Obs, part.Mask, part.Action, part.Raw = cut(r.Obs), cut(r.Mask), cut(r.Action), cut(r.Raw)
	if r.LogProb != nil {
		part.LogProb = r.LogProb[lo:hi]
	}
	part.Value = r.Value[lo:hi]
	part.FirstEnv, part.Places = r.Keys(lo, hi)
	return part
}

// Keys returns FirstEnv and Places of rows lo to hi.
func (r *Request) Keys(lo, hi int) (firstEnv uint32, places []uint32) {
	if r.Places == nil {
		return r.FirstEnv + uint32(lo), nil
	}
	return r.FirstEnv, r.Places[lo:hi]
}

// Env returns the global index of a row's environment, which keys its sampling.
func (r *Request) Env(row int) uint32 {
	if r.Places == nil {
		return r.FirstEnv + uint32(row)
	}
	return r.FirstEnv + r.Places[row]
}

// ActionMask returns the mask of an action, whose Rows is 0 if it has none.
func (r *Request) ActionMask(action int) trajectory.Matrix {
	if len(r.Mask) == 0 {
		return trajectory.Matrix{}
	}
	return r.Mask[action]
}

// Check reports whether a request's views have these sizes, so that a backend can index them freely.
func (s *Sizes) Check(r *Request) error {
	rows := r.Len()
	switch {
	case r.Places != nil && len(r.Places) < rows:
		return fmt.Errorf("the places of %d rows of %d", len(r.Places), rows)
	case len(r.Obs) != len(s.Obs):
		return fmt.Errorf("%d frames of observations, the network reads %d", len(r.Obs), len(s.Obs))
	case r.Age != nil && len(r.Age) < rows:
		return fmt.Errorf("the age of %d rows of %d", len(r.Age), rows)
	case len(r.Value) < rows:
		return fmt.Errorf("room for %d values of %d", len(r.Value), rows)
	}
	for i, size := range s.Obs {
		if err := checkView(&r.Obs[i], rows, size.Elems, size.DType); err != nil {
			return fmt.Errorf("observation %d: %w", i, err)
		}
	}
	if err := s.checkState(r, rows); err != nil {
		return err
	}
	if r.Action == nil {
		return nil
	}
	return s.checkActions(r, rows)
}

func (s *Sizes) checkState(r *Request, rows int) error {
	switch {
	case s.State == 0 && r.State.Rows == 0 && r.StateOut.Rows == 0:
		return nil
	case s.State == 0:
		return fmt.Errorf("a state of %d elements, the network keeps none", r.State.Elems)
	case r.Age == nil:
		return fmt.Errorf("a network that keeps a state needs the age of each row")
	case r.State.StrideElem != 4 || r.StateOut.Rows > 0 && r.StateOut.StrideElem != 4:
		return fmt.Errorf("elements of the state do not lie side by side")
	}
	if err := checkView(&r.State, rows, s.State, hostabi.F32); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	if r.StateOut.Rows == 0 {
		return nil
	}
	if err := checkView(&r.StateOut, rows, s.State, hostabi.F32); err != nil {
		return fmt.Errorf("state after the rows: %w", err)
	}
	return nil
}

func (s *Sizes) checkActions(r *Request, rows int) error {
	if len(r.Action) != len(s.Actions) || len(r.Mask) != 0 && len(r.Mask) != len(s.Actions) {
		return fmt.Errorf("%d actions and %d masks, the network has %d actions", len(r.Action), len(r.Mask), len(s.Actions))
	}
	if len(r.LogProb) < rows {
		return fmt.Errorf("room for %d log-probabilities of %d", len(r.LogProb), rows)
	}
	for i := range s.Actions {
		if err := s.checkAction(r, i, rows); err != nil {
			return fmt.Errorf("action %d: %w", i, err)
		}
	}
	return nil
}

func (s *Sizes) checkAction(r *Request, i, rows int) error {
	a, dtype := &s.Actions[i], hostabi.I32
	if a.Continuous {
		dtype = hostabi.F32
		if len(r.Raw) != len(s.Actions) {
			return fmt.Errorf("no room for what is drawn")
		}
		if err := checkView(&r.Raw[i], rows, a.Size, dtype); err != nil {
			return fmt.Errorf("drawn: %w", err)
		}
	}
	if err := checkView(&r.Action[i], rows, a.Size, dtype); err != nil {
		return err
	}
	if !a.Continuous && a.Size == 1 && rows > 1 && r.Action[i].StrideRow != 4 {
		return fmt.Errorf("elements lie %d bytes apart, want 4", r.Action[i].StrideRow)
	}
	if len(r.Mask) == 0 || r.Mask[i].Rows == 0 {
		return nil
	}
	if err := checkView(&r.Mask[i], rows, a.Choices, hostabi.U8); err != nil {
		return fmt.Errorf("mask: %w", err)
	}
	return nil
}

// checkView reports whether a matrix has so many rows and elements of a type within its memory.
func checkView(m *trajectory.Matrix, rows, elems int, dtype hostabi.DType) error {
	size := dtype.Bytes()
	switch {
	case m.Rows != rows || rows < 0 || m.Elems != elems:
		return fmt.Errorf("%d rows of %d elements, want %d of %d", m.Rows, m.Elems, rows, elems)
	case m.StrideRow < 0 || m.StrideElem < 0 || m.StrideRow%size != 0 || m.StrideElem%size != 0:
		return fmt.Errorf("strides %d and %d", m.StrideRow, m.StrideElem)
	case rows > 0 && (rows-1)*m.StrideRow+(elems-1)*m.StrideElem+size > len(m.Data):
		return fmt.Errorf("%d bytes are too few for %d rows", len(m.Data), rows)
	}
	return nil
}
