package cpu

import (
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/plan"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// choices is an action of categorical elements: Categorical, MultiCategorical and, with a logit of 0 for every 0, Bernoulli.
type choices struct {
	*pass
	action  int
	from    *plan.Step
	counts  []int
	pairs   bool      // of each two logits the first is 0
	logits  []float32 // [all counts][block]
	index   []int32   // [elements][block]
	own     []float32 // [elements][block]
	ignored []float32 // [block]
	first   uint32
	scratch []float32
	start   int32
	sample  kern.Sample
	choice  kern.Choice
}

func choicesOf(counts []int, pairs bool) func(p *pass, action int, first uint32) part {
	return func(p *pass, action int, first uint32) part {
		all, largest := 0, 0
		for _, n := range counts {
			all, largest = all+n, max(largest, n)
		}
		c := &choices{pass: p, action: action, from: p.plan.Policy[action], counts: counts, pairs: pairs, first: first,
			start: p.net.Policy[action].Start, index: make([]int32, len(counts)*p.block), own: aligned(len(counts) * p.block),
			ignored: aligned(p.block), scratch: aligned(largest * kern.Lanes)}
		c.logits = p.columns(c.from)
		if pairs {
			c.logits = aligned(all * p.block)
		}
		return c
	}
}

func (c *choices) draws() uint32 { return uint32(len(c.counts)) }

// load takes the logits from the pass.
func (c *choices) load() {
	if !c.pairs {
		return
	}
	from := c.columns(c.from)
	for i := range c.counts {
		clear(c.logits[2*i*c.block:][:c.block])
		copy(c.logits[(2*i+1)*c.block:][:c.block], from[i*c.block:])
	}
}

func (c *choices) draw(r *policy.Request, lo, hi int) (illegal int) {
	c.load()
	mask := r.ActionMask(c.action)
	if row := c.forbid(&mask, lo, hi); row >= 0 {
		return row
	}
	env, places := r.Keys(lo, hi)
	at := 0
	for i, n := range c.counts {
		c.sample = kern.Sample{Rows: hi - lo, Actions: n, Logits: c.logits[at*c.block:], LD: c.block, Seed: r.Seed, Step: r.Step,
			Draw: c.first + uint32(i), Env: env, Places: places, Greedy: r.Greedy,
			Action: c.index[i*c.block:][:c.block], LogProb: c.ignored, Scratch: c.scratch}
		c.set.Sample(&c.sample)
		at += n
	}
	c.place(&mask, &r.Action[c.action], lo, hi)
	return -1
}

// forbid makes the logits of masked choices impossible. It returns the first row with an element without a legal one, or -1.
func (c *choices) forbid(mask *trajectory.Matrix, lo, hi int) int {
	if mask.Rows == 0 {
		return -1
	}
	for row := lo; row < hi; row++ {
		at := 0
		for _, n := range c.counts {
			legal := false
			for a := at; a < at+n; a++ {
				if mask.Data[row*mask.StrideRow+a*mask.StrideElem] != 0 {
					legal = true
					continue
				}
				c.logits[a*c.block+row-lo] = kern.Illegal
			}
			if !legal {
				return row
			}
			at += n
		}
	}
	return -1
}

// place writes the actions where the environment reads them, legal ones even where logits are not numbers. The mask is the
// guest's, and may have changed: nothing depends on there being a legal choice.
func (c *choices) place(mask, action *trajectory.Matrix, lo, hi int) {
	to := action.Int32()
	for row := lo; row < hi; row++ {
		at := 0
		for i, n := range c.counts {
			taken := &c.index[i*c.block+row-lo]
			for a := 0; mask.Rows > 0 && a < n && mask.Data[row*mask.StrideRow+(at+int(*taken))*mask.StrideElem] == 0; a++ {
				if mask.Data[row*mask.StrideRow+(at+a)*mask.StrideElem] != 0 {
					*taken = int32(a)
				}
			}
			to[(row*action.StrideRow+i*action.StrideElem)/4] = *taken + c.start
			at += n
		}
	}
}

func (c *choices) weigh(b *ppo.Actions, ld, lo, rows int, logProb, entropy []float32) {
	if b != nil {
		c.load()
		c.hide(b, lo, rows)
	}
	at := 0
	for i, n := range c.counts {
		index := c.index[i*c.block:]
		if b != nil {
			index = b.Index[i*ld+lo:]
		}
		c.choice = kern.Choice{Rows: rows, Actions: n, Logits: c.logits[at*c.block:], LD: c.block, Action: index,
			LogProb: logProb, Entropy: entropy, Own: c.own[i*c.block:], Slope: c.ignored, Scratch: c.scratch}
		c.choice.Weigh(c.set)
		if b != nil { // for descend
			copy(c.index[i*c.block:][:c.block], index)
		}
		at += n
	}
}

// hide makes the logits of choices impossible that were masked in rows of a minibatch.
func (c *choices) hide(b *ppo.Actions, lo, rows int) {
	for row := range rows {
		for a, legal := range b.Masks(lo+row, lo+row+1) {
			if legal == 0 {
				c.logits[a*c.block+row] = kern.Illegal
			}
		}
	}
}

func (c *choices) descend(slope, _ []float32, coef, _ float32, rows int) {
	at := 0
	for i, n := range c.counts {
		c.choice = kern.Choice{Rows: rows, Actions: n, Logits: c.logits[at*c.block:], LD: c.block, Action: c.index[i*c.block:],
			LogProb: c.ignored, Entropy: c.ignored, Own: c.own[i*c.block:], Slope: slope, Scratch: c.scratch, Coef: coef}
		c.choice.Descend(c.set)
		at += n
	}
	if c.pairs {
		to := c.columns(c.from)
		for i := range c.counts {
			copy(to[i*c.block:][:c.block], c.logits[(2*i+1)*c.block:])
		}
	}
}
