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
	raw    []float32 // [elements][block] what was drawn
	unused []float32 // [block]
	normal kern.Normal
}

func gaussianOf(of *head.Gaussian) func(p *pass, action int, first uint32) part {
	return func(p *pass, action int, first uint32) part {
		g := &gaussian{pass: p, action: action, of: of, raw: aligned(of.N * p.block), unused: aligned(p.block)}
		params := p.columns(p.policy[action])
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
	n.Weigh(g.set)
}

func (g *gaussian) descend(slope, ratio []float32, coef float32, rows int) {
	n := &g.normal
	n.Rows, n.Slope, n.Weight, n.Coef = rows, slope, ratio, coef
	n.Descend(g.set)
}
