package cuda

import "github.com/rlhost/rlhost/gpu/cuda/kernels"

// added is the sum of its inputs.
type added struct{ node }

func (a *added) forward(p *pass) func(rows int) {
	c := p.move(a.Out)
	return func(rows int) {
		out := p.output(&a.node)
		for i := range a.In {
			in := p.input(&a.In[i])
			c.args.From, c.args.FromRow, c.args.To, c.args.ToRow, c.args.Add = in.Data, in.Row, out.Data, out.Row, min(int32(i), 1)
			p.moveRows(c, rows)
		}
	}
}

func (a *added) backward(g *gradient) func(rows int) {
	var ways []func(rows int)
	for i := range a.In {
		ways = append(ways, g.accumulate(&a.In[i], g.gradientOf(&a.node), a.Out))
	}
	return all(ways)
}

// all submits several things in turn.
func all(of []func(rows int)) func(rows int) {
	return func(rows int) {
		for _, submit := range of {
			submit(rows)
		}
	}
}

// joined is its inputs side by side, along the last axis.
type joined struct{ node }

// part prepares moves between input i and its part of the output, in runs.
func (j *joined) part(p *pass, i int) (c call[kernels.Move], at int) {
	last := func(shape []int) int { return shape[len(shape)-1] }
	for k := range i {
		at += last(j.In[k].Shape)
	}
	own := last(j.In[i].Shape)
	c = p.move(own)
	c.args.Runs = int32(j.Out / last(j.Shape))
	return c, at
}

func (j *joined) forward(p *pass) func(rows int) {
	var ways []func(rows int)
	for i := range j.In {
		c, first := j.part(p, i)
		c.args.FromRun, c.args.ToRun = c.args.Run, int32(j.Shape[len(j.Shape)-1])
		ways = append(ways, func(rows int) {
			in, out := p.input(&j.In[i]), p.output(&j.node)
			c.args.From, c.args.FromRow, c.args.To, c.args.ToRow = in.Data, in.Row, at(out.Data, first), out.Row
			p.moveRows(c, rows)
		})
	}
	return all(ways)
}

func (j *joined) backward(g *gradient) func(rows int) {
	var ways []func(rows int)
	own := g.gradientOf(&j.node)
	for i := range j.In {
		e := &j.In[i]
		if e.From == nil {
			continue
		}
		c, first := j.part(g.pass, i)
		to, passed := g.gradientOf(g.nodes[e.From.At]), g.passed(e)
		c.args.From, c.args.FromRow, c.args.FromRun = at(own.Data, first), own.Row, int32(j.Shape[len(j.Shape)-1])
		c.args.To, c.args.ToRow, c.args.ToRun = to.Data, to.Row, c.args.Run
		if !e.First {
			c.args.Add = 1
		}
		ways = append(ways, func(rows int) {
			g.moveRows(c, rows)
			passed(rows)
		})
	}
	return all(ways)
}
