package trajectory

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/rlhost/rlhost/hostabi"
)

// MaxFigures is how many numbers of an environment's infos have a name and are gathered over episodes. Further ones are in their columns alone.
const MaxFigures = 256

// Figure is one number of an Info or ResetInfo column.
type Figure struct {
	Name   string // the tensor's path, info without one; of several numbers with /0, /1, …
	Column Column
	Elem   int
	Gather hostabi.TensorFlags // how the values of an episode become one: of hostabi.TensorGather; 0 = the last one
	Agents bool                // each agent has its own
	// First is the first agent of the group that has it, Count how many there are.
	First, Count int
	AtEnd        bool // only the row in which the environment ends an episode counts
	AtBegin      bool // only the row in which an episode begins counts, with that episode
}

// Figures returns the numbers in the environment's infos, those at reset behind the others, at most MaxFigures, each in the order of the
// description.
func (s *Schema) Figures() []Figure { return s.figures(s.figures(nil, Info), ResetInfo) }

// figures appends the numbers in the infos of a kind.
func (s *Schema) figures(list []Figure, kind Column) []Figure {
	for i, d := range s.Spec.All(hostabi.Role(kind >> kindAt)) {
		first, agents := s.Spec.AgentsOf(d.Group)
		for elem := range min(d.Elems(hostabi.MaxTensorElems), MaxFigures-len(list)) {
			list = append(list, Figure{Name: figureName(&d, elem), Column: kind.At(i), Elem: elem,
				Gather: d.Flags & hostabi.TensorGather, Agents: d.Flags&hostabi.TensorPerAgent != 0,
				First: first, Count: agents, AtEnd: d.Flags&hostabi.TensorEpisode != 0, AtBegin: kind == ResetInfo})
		}
	}
	return list
}

// CheckBegun returns the first environment whose figure of an episode that begins in a row is no finite number, and the error; -1 and nil if
// there is none, and for a figure of others. begins reports whether the episode of an agent's, or environment's, place in the row begins there.
func (t Trajectory) CheckBegun(f *Figure, row int, begins func(i int) bool) (env int, err error) {
	if !f.AtBegin {
		return -1, nil
	}
	each, m := t.Schema.Agents, t.Row(f.Column, row)
	for i := range t.Schema.Rows() {
		if agent := i%each - f.First; agent < 0 || agent >= f.Count || !f.Agents && agent > 0 || !begins(i) {
			continue
		}
		if v := m.Value(i, f.Elem); math.IsNaN(v) || math.IsInf(v, 0) {
			return i / each, fmt.Errorf("%w: %v %q is %v", ErrOutput, f.Column, f.Name, v)
		}
	}
	return -1, nil
}

// absent are the bits of an AtEnd figure that was not written: a NaN.
const absent = 0x7fc0ab5e

// IsAbsent reports whether a figure of an episode's end was never written; see EndUnwritten.
func IsAbsent(figure float32) bool { return math.Float32bits(figure) == absent }

// EndUnwritten is for an environment, or agent, whose episode something else has ended in a row: the environment does not know,
// so its figures of an episode's end are absent.
func EndUnwritten(t Trajectory, env, row int) {
	for _, c := range t.Schema.atEnd {
		m := t.at(c, row)
		for i := range m.Elems {
			binary.LittleEndian.PutUint32(m.Data[env*m.StrideRow+i*m.StrideElem:], absent)
		}
	}
}

// absent reports whether all elements of a row are.
func (m Matrix) absent(row int) bool {
	for i := range m.Elems {
		if m.Bits(row, i) != absent {
			return false
		}
	}
	return true
}

func figureName(d *hostabi.Tensor, elem int) string {
	name := d.Path
	if name == "" {
		name = Info.String()
		if d.Role == hostabi.RoleResetInfo {
			name = ResetInfo.String()
		}
	}
	if d.Rank > 0 {
		name += "/" + strconv.Itoa(elem)
	}
	return name
}
