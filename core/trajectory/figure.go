package trajectory

import (
	"strconv"

	"github.com/rlhost/rlhost/hostabi"
)

// MaxFigures is how many numbers of an environment's infos have a name and are gathered over episodes. Those beyond it
// stand in their columns alone.
const MaxFigures = 256

// Figure is one number of an Info column.
type Figure struct {
	Name   string // the tensor's path, info without one; of several numbers with /0, /1, …
	Column Column
	Elem   int
	Gather hostabi.TensorFlags // how those of an episode become one: of hostabi.TensorGather; 0 = the last one
	Agents bool                // each agent has its own
	// First is the first agent of the group that has it, Count how many there are.
	First, Count int
	AtEnd        bool // only the row in which the environment ends an episode counts
}

// Figures returns the numbers that the environment's infos tell, MaxFigures at most, in the order of the description.
func (s *Schema) Figures() (list []Figure) {
	for i, d := range s.Spec.All(hostabi.RoleInfo) {
		first, agents := s.Spec.AgentsOf(d.Group)
		for elem := range min(d.Elems(hostabi.MaxTensorElems), MaxFigures-len(list)) {
			list = append(list, Figure{Name: figureName(&d, elem), Column: Info.At(i), Elem: elem,
				Gather: d.Flags & hostabi.TensorGather, Agents: d.Flags&hostabi.TensorPerAgent != 0,
				First: first, Count: agents, AtEnd: d.Flags&hostabi.TensorEpisode != 0})
		}
	}
	return list
}

func figureName(d *hostabi.Tensor, elem int) string {
	name := d.Path
	if name == "" {
		name = Info.String()
	}
	if d.Rank > 0 {
		name += "/" + strconv.Itoa(elem)
	}
	return name
}
