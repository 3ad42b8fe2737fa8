package policy

import (
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Picked are some rows of requests, copied side by side for an actor: one policy's rows, where several act in the rows of the
// same block, or the rows of the agents whose turn it is. Return copies the actor's outputs to the picked rows. The zero value
// is ready; it does not allocate once it has grown.
type Picked struct {
	picks  []pick
	rows   []uint32
	views  Views
	memory []byte
	used   int
}

// pick is one request and its copy.
type pick struct{ from, to Request }

// Pick returns a request for rows of another, ascending, which has no Places. Inputs are copied; outputs go to memory that is
// valid until Return.
func (p *Picked) Pick(r *Request, rows []uint32) Request {
	n := len(p.rows)
	p.rows = append(p.rows, rows...)
	to := *r
	to.Places = p.rows[n:len(p.rows):len(p.rows)]
	to.Obs, to.Mask = p.matrices(r.Obs, rows, true), p.matrices(r.Mask, rows, true)
	to.Action, to.Raw = p.matrices(r.Action, rows, false), p.matrices(r.Raw, rows, false)
	to.State, to.StateOut = p.matrix(&r.State, rows, true), p.matrix(&r.StateOut, rows, false)
	if r.Age != nil {
		to.Age = p.take(len(rows))
		for i, row := range rows {
			to.Age[i] = r.Age[row]
		}
	}
	to.Value = p.numbers(len(rows))
	if r.LogProb != nil {
		to.LogProb = p.numbers(len(rows))
	}
	p.picks = append(p.picks, pick{*r, to})
	return to
}

// Return writes the outputs of all picked rows to the rows of their requests, and forgets them.
func (p *Picked) Return() {
	for i := range p.picks {
		from, to := &p.picks[i].from, &p.picks[i].to
		for k, row := range to.Places {
			from.Value[row] = to.Value[k]
			for a := range to.Action {
				from.Action[a].SetRow(int(row), to.Action[a], k)
			}
			for a := range to.Raw {
				from.Raw[a].SetRow(int(row), to.Raw[a], k)
			}
			if to.LogProb != nil {
				from.LogProb[row] = to.LogProb[k]
			}
			if to.StateOut.Rows > 0 {
				from.StateOut.SetRow(int(row), to.StateOut, k)
			}
		}
	}
	clear(p.picks)
	p.picks, p.rows, p.views, p.used = p.picks[:0], p.rows[:0], p.views[:0], 0
}

// matrices is matrix for each of a list, nil for nil.
func (p *Picked) matrices(list []trajectory.Matrix, rows []uint32, read bool) []trajectory.Matrix {
	if list == nil {
		return nil
	}
	n := len(p.views)
	for i := range list {
		p.views = append(p.views, p.matrix(&list[i], rows, read))
	}
	return p.views.From(n)
}

// matrix returns a dense matrix for some rows of another, with their content if they are read; the zero Matrix for one without rows.
func (p *Picked) matrix(m *trajectory.Matrix, rows []uint32, read bool) trajectory.Matrix {
	if m.Rows == 0 {
		return trajectory.Matrix{}
	}
	size := m.DType.Bytes()
	to := trajectory.Matrix{DType: m.DType, Data: p.take(len(rows) * m.Elems * size), Rows: len(rows), Elems: m.Elems,
		StrideRow: m.Elems * size, StrideElem: size}
	if read {
		for i, row := range rows {
			to.SetRow(i, *m, int(row))
		}
	}
	return to
}

// numbers returns room for n numbers.
func (p *Picked) numbers(n int) []float32 {
	m := trajectory.Matrix{DType: hostabi.F32, Data: p.take(4 * n)}
	return m.Float32()
}

// take returns n bytes on separate cache lines.
func (p *Picked) take(n int) []byte {
	const line = 64
	room := (n + line - 1) / line * line
	if p.used+room > len(p.memory) { // requests have views of the old memory
		p.memory, p.used = make([]byte, max(2*len(p.memory), room, 1<<12)), 0
	}
	at := p.used
	p.used += room
	return p.memory[at : at+n : at+n]
}
