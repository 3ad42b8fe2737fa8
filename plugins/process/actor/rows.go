package actor

import (
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
)

// textRoom is the room for an error's words.
const textRoom = 4096

// layoutOf lays out the scratch area of a network.
func layoutOf(n *policy.Network, s *policy.Sizes, rows int) native.PolicyScratch {
	l := native.PolicyScratch{Rows: rows, Text: textRoom}
	room := func(bytes int) int {
		at := l.Bytes
		l.Bytes += (bytes + 63) &^ 63
		return at
	}
	column := func(path string, dtype hostabi.DType, elems int) native.PolicyColumn {
		return native.PolicyColumn{Path: path, DType: dtype.String(), Elems: elems, At: room(rows * elems * dtype.Bytes())}
	}
	for i, o := range s.Obs {
		l.Obs = append(l.Obs, column(n.Inputs[i].Path, o.DType, o.Elems))
	}
	for i, a := range s.Actions {
		dtype := hostabi.I32
		if a.Continuous {
			dtype = hostabi.F32
		}
		l.Masks = append(l.Masks, column(n.Policy[i].Action, hostabi.U8, a.Choices))
		l.Actions = append(l.Actions, column(n.Policy[i].Action, dtype, a.Size))
	}
	l.StateAt, l.AfterAt = room(4*rows*s.State), room(4*rows*s.State)
	l.ValueAt, l.LogProbAt = room(4*rows), room(4*rows)
	l.ParamsAt, l.TextAt = room(4*n.ParamCount()), room(textRoom)
	return l
}

// floats is a part of the scratch area.
func (a *actor) floats(at, n int) []float32 {
	return trajectory.Matrix{DType: hostabi.F32, Data: a.scratch.Bytes()[at : at+4*n]}.Float32()
}

// column returns rows of a column.
func (a *actor) column(c *native.PolicyColumn, dtype hostabi.DType, at, rows int) trajectory.Matrix {
	size := dtype.Bytes()
	row := c.Elems * size
	return trajectory.Matrix{DType: dtype, Data: a.scratch.Bytes()[c.At+at*row:][:rows*row], Rows: rows, Elems: c.Elems, StrideRow: row, StrideElem: size}
}

// fill copies what a request asks about.
func (a *actor) fill(p *part) error {
	r, rows := p.request, p.request.Len()
	for i := range r.Obs {
		to := a.column(&a.layout.Obs[i], a.sizes.Obs[i].DType, p.at, rows)
		move(&to, &r.Obs[i])
	}
	for i, size := range a.sizes.Actions {
		if size.Choices == 0 {
			continue
		}
		to, mask := a.column(&a.layout.Masks[i], hostabi.U8, p.at, rows), r.ActionMask(i)
		if mask.Rows == 0 {
			for k := range to.Data {
				to.Data[k] = 1
			}
			continue
		}
		move(&to, &mask)
		if row := unlawful(&to, a.network.Policy[i].Counts()); row >= 0 {
			return &policy.RowError{Request: p.index, Row: row, Err: policy.ErrNoLegalAction}
		}
	}
	if a.sizes.State == 0 {
		return nil
	}
	to := a.floats(a.layout.StateAt+4*p.at*a.sizes.State, rows*a.sizes.State)
	for row := range rows {
		own := to[row*a.sizes.State:][:a.sizes.State]
		if r.Age[row] == 0 {
			clear(own)
			continue
		}
		copy(own, r.State.Float32()[row*r.State.StrideRow/4:])
	}
	return nil
}

// unlawful returns the first row in which an element of an action has no legal choice, -1 where all have one.
func unlawful(mask *trajectory.Matrix, counts []int) int {
	for row := range mask.Rows {
		at := row * mask.StrideRow
		for _, n := range counts {
			legal := byte(0)
			for _, b := range mask.Data[at : at+n] {
				legal |= b
			}
			if at += n; legal == 0 {
				return row
			}
		}
	}
	return -1
}

// move copies a matrix to one of the same type and size whose elements lie side by side.
func move(to, from *trajectory.Matrix) {
	size := from.DType.Bytes()
	for row := range from.Rows {
		src, dst := from.Data[row*from.StrideRow:], to.Data[row*to.StrideRow:][:to.Elems*size]
		if from.StrideElem == size {
			copy(dst, src)
			continue
		}
		for i := range from.Elems {
			copy(dst[i*size:][:size], src[i*from.StrideElem:])
		}
	}
}

// take checks what the program has answered to a request, and copies it.
func (a *actor) take(p *part) error {
	r, rows := p.request, p.request.Len()
	if err := a.numbers(p, "value", r.Value[:rows], a.floats(a.layout.ValueAt+4*p.at, rows)); err != nil {
		return err
	}
	if r.StateOut.Rows > 0 {
		if err := a.takeState(p); err != nil {
			return err
		}
	}
	if r.Action == nil {
		return nil
	}
	if err := a.numbers(p, "log_prob", r.LogProb[:rows], a.floats(a.layout.LogProbAt+4*p.at, rows)); err != nil {
		return err
	}
	for i := range r.Action {
		if err := a.takeAction(p, i); err != nil {
			return err
		}
	}
	return nil
}

// numbers copies one number a row. Each is read once: the program can rewrite it.
func (a *actor) numbers(p *part, what string, to, from []float32) error {
	copy(to, from)
	for row, x := range to {
		if !finite(x) {
			return a.wrong(p, row, "%s is %v", what, x)
		}
	}
	return nil
}

func (a *actor) takeState(p *part) error {
	r, n := p.request, a.sizes.State
	to := r.StateOut.Float32()
	for row := range r.StateOut.Rows {
		own := to[row*r.StateOut.StrideRow/4:][:n]
		copy(own, a.floats(a.layout.AfterAt+4*(p.at+row)*n, n))
		for i, x := range own {
			if !finite(x) {
				return a.wrong(p, row, "element %d of the state is %v", i, x)
			}
		}
	}
	return nil
}

// takeAction copies an action: of a Box as it was drawn and as the environment reads it, of others the environment's numbers.
func (a *actor) takeAction(p *part, i int) error {
	r, rows, d := p.request, p.request.Len(), &a.network.Policy[i]
	if a.sizes.Actions[i].Continuous {
		from, to := a.column(&a.layout.Actions[i], hostabi.F32, p.at, rows).Float32(), &r.Raw[i]
		for row := range rows {
			for k := range to.Elems {
				x := from[row*to.Elems+k]
				if !finite(x) {
					return a.wrong(p, row, "element %d of %s is %v", k, d.Action, x)
				}
				to.Float32()[(row*to.StrideRow+k*to.StrideElem)/4] = x
			}
		}
		d.Place(to, &r.Action[i], 0, rows)
		return nil
	}
	counts, mask := d.Counts(), r.ActionMask(i)
	from, to := a.column(&a.layout.Actions[i], hostabi.I32, p.at, rows).Int32(), &r.Action[i]
	for row := range rows {
		first := 0
		for k, n := range counts {
			x := from[row*len(counts)+k]
			if x < 0 || int(x) >= n {
				return a.wrong(p, row, "element %d of %s is %d, want 0 to %d", k, d.Action, x, n-1)
			}
			if mask.Rows > 0 && mask.Data[row*mask.StrideRow+(first+int(x))*mask.StrideElem] == 0 {
				return a.wrong(p, row, "element %d of %s is %d, which the mask forbids", k, d.Action, x)
			}
			to.Int32()[(row*to.StrideRow+k*to.StrideElem)/4] = x + d.Start
			first += n
		}
	}
	return nil
}

// wrong is the error of an answer.
func (a *actor) wrong(p *part, row int, format string, args ...any) error {
	return &policy.RowError{Request: p.index, Row: row, Err: a.failure(fmt.Sprintf("answers nonsense: "+format, args...), "correct its act")}
}

func finite(x float32) bool { return !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0) }
