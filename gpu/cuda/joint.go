package cuda

import (
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy"
)

// action is the distribution of one action tensor. The log-probability of several is the sum.
type action struct {
	policy.ActionSize
	kind   kernels.Kind
	counts []int32 // of choices, by element
	draws  int32   // numbers of the random stream
	first  int32   // of these

	low, high float32 // of the logarithms of a Box's deviations
}

// heads are the sections that tell kernels of a network's distributions.
type heads struct {
	table  section
	counts []section // by action
	edges  []section // likewise
}

// take takes the sections.
func (h *heads) take(s *staged, l *layout) {
	h.table, h.counts, h.edges = s.section(len(l.actions)*sizeOf[kernels.Head]()), h.counts[:0], h.edges[:0]
	for i := range l.actions {
		h.counts = append(h.counts, s.section(4*len(l.actions[i].counts)))
		h.edges = append(h.edges, s.section(3*4*len(l.actions[i].Edges)))
	}
}

// fill writes them, with where the actions of a pass's rows and their masks lie, by action.
func (h *heads) fill(s *staged, p *pass, drawn, masks []kernels.Address) {
	for i := range p.actions {
		a := &p.actions[i]
		copy(view[int32](s, h.counts[i]), a.counts)
		to := kernels.Head{Params: p.out[p.plan.Policy[i].At], Counts: s.address(h.counts[i]), Mask: masks[i], Kind: a.kind,
			Elements: int32(a.Size), Choices: int32(a.Choices), Draw: a.first, Low: a.low, High: a.high}
		if a.Continuous {
			to.Raw, to.Edges = drawn[i], s.address(h.edges[i])
			edges := view[float32](s, h.edges[i])
			for e, x := range a.Edges {
				edges[e], edges[a.Size+e], edges[2*a.Size+e] = x.Low, x.High, x.Scale
			}
		} else {
			to.Index = drawn[i]
		}
		view[kernels.Head](s, h.table)[i] = to
	}
}
