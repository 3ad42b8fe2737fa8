package cpu

import "github.com/rlhost/rlhost/gpu/cpu/internal/kern"

// added is the sum of its inputs.
type added struct{ node }

func (a *added) forward(p *pass, rows int) {
	out := p.output(&a.node)
	for i := range a.In {
		in := p.input(&a.In[i])
		for r := range rows {
			p.accumulate(out.data[r*out.row:], in, r, a.Out, i == 0)
		}
	}
}

func (a *added) backward(s *shard, rows int) {
	g := s.gradient(&a.node)
	for i := range a.In {
		e := &a.In[i]
		if e.From == nil {
			continue
		}
		to := s.gradient(s.nodes[e.From.At])
		for r := range rows {
			s.accumulate(to.data[r*to.row:], g, r, a.Out, e.First)
		}
		s.passed(e, rows)
	}
}

// accumulate adds the first n elements of a row of a matrix to others, or puts them there.
func (p *pass) accumulate(to []float32, from matrix, r, n int, first bool) {
	x := from.data[r*from.row:]
	whole := n / kern.Panel * kern.Panel
	switch {
	case from.col != 1:
		whole = 0
		if first {
			clear(to[:n])
		}
	case first:
		copy(to[:n], x)
		return
	default:
		p.sum = kern.ColumnSums{Rows: 1, N: whole, X: x, Out: to}
		p.set.ColumnSums(&p.sum)
	}
	for i := whole; i < n; i++ {
		to[i] += x[i*from.col]
	}
}

// joined is its inputs side by side.
type joined struct{ node }

func (j *joined) forward(p *pass, rows int) {
	out, at := p.output(&j.node), 0
	last := j.Shape[len(j.Shape)-1]
	for i := range j.In {
		in, n := p.input(&j.In[i]), j.part(i)
		for r := range rows {
			for run := range j.Out / last {
				to := out.data[r*out.row+run*last+at:][:n]
				for k := range to {
					to[k] = in.data[r*in.row+(run*n+k)*in.col]
				}
			}
		}
		at += n
	}
}

func (j *joined) backward(s *shard, rows int) {
	g, at := s.gradient(&j.node), 0
	last := j.Shape[len(j.Shape)-1]
	for i := range j.In {
		e, n := &j.In[i], j.part(i)
		if e.From != nil {
			below := s.below(e, rows)
			for r := range rows {
				for run := range j.Out / last {
					to := below.data[r*below.row+run*n:][:n]
					for k, x := range g.data[r*g.row+run*last+at:][:n] {
						to[k] += x
					}
				}
			}
			s.passed(e, rows)
		}
		at += n
	}
}

// part returns how many elements of the last axis are input i's.
func (j *joined) part(i int) int {
	shape := j.In[i].Shape
	return shape[len(shape)-1]
}
