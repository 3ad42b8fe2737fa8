package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// gaussian is head.Gaussian.
type gaussian struct {
	*pass
	action int
	of     *head.Gaussian
	raw    []float32 // [elements][block] drawn numbers
	unused []float32 // [block]
	normal kern.Normal

	edges []policy.Edges
	mean  []float32 // [elements][block] the network's means, for bring

	low, high float32   // of the logarithms of deviations
	log       []float32 // [elements][block] the network's logarithms, which limit saves for descend
}

func gaussianOf(of *head.Gaussian) func(p *pass, action int, first uint32) part {
	return func(p *pass, action int, first uint32) part {
		bounds := of.LogStdRange()
		g := &gaussian{pass: p, action: action, of: of, raw: aligned(of.N * p.block), unused: aligned(p.block),
			low: float32(bounds.Min), high: float32(bounds.Max), log: aligned(of.N * p.block),
			edges: p.net.Sizes().Actions[action].Edges, mean: aligned(of.N * p.block)}
		params := p.columns(p.plan.Policy[action])
		g.normal = kern.Normal{N: of.N, Mean: params, Log: params[of.N*p.block:], LD: p.block, FirstDraw: first, Tanh: of.Squash == head.Tanh}
		return g
	}
}

func (g *gaussian) draws() uint32 { return uint32(g.of.N+1) / 2 }

func (g *gaussian) draw(r *policy.Request, lo, hi int) (illegal int) {
	n := &g.normal
	n.Rows, n.Raw, n.RawLD = hi-lo, g.raw, g.block
	n.LogProb, n.Entropy, n.Slope, n.Weight = g.unused, g.unused, g.unused, g.unused
	n.Seed, n.Step, n.Greedy = r.Seed, r.Step, r.Greedy
	n.Env, n.Places = r.Keys(lo, hi)
	g.limit(hi - lo)
	n.Draw(g.set)
	m := &r.Raw[g.action]
	to := m.Float32()
	for i := range g.of.N {
		for row, x := range g.raw[i*g.block:][:hi-lo] {
			to[((lo+row)*m.StrideRow+i*m.StrideElem)/4] = x
		}
	}
	g.net.Policy[g.action].Place(m, &r.Action[g.action], lo, hi)
	return -1
}

func (g *gaussian) weigh(b *ppo.Actions, ld, lo, rows int, logProb, entropy []float32) {
	n := &g.normal
	n.Rows, n.LogProb, n.Entropy, n.Slope, n.Weight = rows, logProb, entropy, g.unused, g.unused
	if n.Raw, n.RawLD = g.raw, g.block; b != nil {
		n.Raw, n.RawLD = b.Raw[lo:], ld
	}
	g.limit(rows)
	n.Weigh(g.set)
}

// limit brings the logarithms of deviations within their bounds. NaN stays NaN.
func (g *gaussian) limit(rows int) {
	for i := range g.of.N {
		log := g.normal.Log[i*g.block:][:rows]
		copy(g.log[i*g.block:], log)
		for r, x := range log {
			switch {
			case x < g.low:
				log[r] = g.low
			case x > g.high:
				log[r] = g.high
			}
		}
	}
}

// hold leaves no gradient to logarithms of deviations that were beyond their bounds.
func (g *gaussian) hold(rows int) {
	for i := range g.of.N {
		d := g.normal.Log[i*g.block:][:rows]
		for r, x := range g.log[i*g.block:][:rows] {
			if x < g.low || x > g.high {
				d[r] = 0
			}
		}
	}
}

func (g *gaussian) descend(slope, ratio []float32, coef, bounds float32, rows int) {
	n := &g.normal
	if bounds > 0 {
		copy(g.mean, n.Mean[:len(g.mean)])
	}
	n.Rows, n.Slope, n.Weight, n.Coef = rows, slope, ratio, coef
	n.Descend(g.set)
	g.hold(rows)
	if bounds > 0 {
		g.bring(bounds, rows)
	}
}

// bring adds the gradient that brings means within their edges.
func (g *gaussian) bring(bounds float32, rows int) {
	for i := range g.of.N {
		e := &g.edges[i]
		d, slope := g.normal.Mean[i*g.block:][:rows], bounds*e.Scale*e.Scale
		for r, mean := range g.mean[i*g.block:][:rows] {
			d[r] += float32(slope * e.Beyond(mean))
		}
	}
}
