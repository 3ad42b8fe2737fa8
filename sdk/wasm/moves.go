package wasm

import (
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk"
)

// moves are the actions of a batch of environments that have several; nil where there is one.
type moves struct {
	list  []move
	taken sdk.Taken
}

// move is one of several actions, of either element type. Rows are read by open.
type move interface {
	bind(list []hostabi.Binding) bool
	open(t uint32, first, count int)
	of(i, count int)                                  // shows the environments the rows of some that are open
	choices() (d *described, elems int, all []uint32) // of the open rows; d is nil for a Box
}

func newMoves(descs []described, envs int) *moves {
	m := &moves{}
	for i := range descs {
		if descs[i].Role == hostabi.RoleAction {
			m.taken.Names = append(m.taken.Names, descs[i].space.Name)
			m.taken.Int32, m.taken.Float32 = append(m.taken.Int32, nil), append(m.taken.Float32, nil)
		}
	}
	for i := range descs {
		switch d := &descs[i]; {
		case d.Role != hostabi.RoleAction:
		case d.DType == hostabi.I32:
			m.list = append(m.list, newMove(d, i, m.taken.Int32, envs))
		default:
			m.list = append(m.list, newMove(d, i, m.taken.Float32, envs))
		}
	}
	return m
}

// bind takes the places of all actions from the bindings of all tensors.
func (m *moves) bind(list []hostabi.Binding) bool {
	ok := true
	for _, x := range m.list {
		ok = x.bind(list) && ok
	}
	return ok
}

// open reads the actions of environments at time t.
func (m *moves) open(t uint32, first, count int) {
	for _, x := range m.list {
		x.open(t, first, count)
	}
}

// of returns the actions of some of the environments that are open.
func (m *moves) of(i, count int) *sdk.Taken {
	for _, x := range m.list {
		x.of(i, count)
	}
	return &m.taken
}

// typedMove is a move of one element type.
type typedMove[A sdk.Action] struct {
	desc   *described
	place  int // in the description
	rows   tensor[A]
	opened []A // rows of the environments from first on
	first  int
	shown  *[]A // where the environments find theirs
}

func newMove[A sdk.Action](d *described, place int, taken [][]A, envs int) move {
	return &typedMove[A]{desc: d, place: place, rows: newTensor[A](*d, envs), shown: &taken[d.Index]}
}

func (x *typedMove[A]) bind(list []hostabi.Binding) bool { return x.rows.bind(list[x.place], true) }

func (x *typedMove[A]) open(t uint32, first, count int) {
	x.first, x.opened = first, x.rows.rows(t, first, count)
	if !x.rows.packed {
		x.rows.read(t, first, x.opened)
	}
}

func (x *typedMove[A]) of(i, count int) {
	from, to := (i-x.first)*x.rows.elems, (i-x.first+count)*x.rows.elems
	*x.shown = x.opened[from:to:to]
}

func (x *typedMove[A]) choices() (*described, int, []uint32) {
	if x.desc.DType != hostabi.I32 {
		return nil, 0, nil
	}
	return x.desc, x.rows.elems, asUint32(x.opened)
}
