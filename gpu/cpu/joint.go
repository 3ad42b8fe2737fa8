package cpu

import (
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// joint is the distribution of all actions of a network: log-probabilities and entropies are the sums of its parts'.
type joint struct {
	*pass
	parts            []part
	entropies, slope []float32 // [block]
	scratch          []float32 // [block] log-probabilities while acting
	loss             kern.Loss
}

// part is the distribution of one action over what one pass computes.
type part interface {
	// draw writes the action of rows lo to hi of a request, whose outputs the pass has just computed. It returns the first
	// row without a legal choice, or -1. weigh follows with the same rows, b nil.
	draw(r *policy.Request, lo, hi int) (illegal int)
	// weigh adds the log-probabilities and entropies of the rows that were drawn, or of rows lo to hi of a minibatch.
	weigh(b *ppo.Actions, ld, lo, rows int, logProb, entropy []float32)
	// descend replaces the parameters by their gradient; coef is the coefficient of the entropy over the rows.
	descend(slope []float32, coef float32, rows int)
	// draws is how many numbers of the random stream an action takes.
	draws() uint32
}

// newJoint makes the parts of a network's actions.
func newJoint(p *pass, of []func(p *pass, action int, firstDraw uint32) part) *joint {
	j := &joint{pass: p, entropies: aligned(p.block), slope: aligned(p.block), scratch: aligned(p.block)}
	j.loss.NewLogProb = aligned(p.block)
	first := uint32(0)
	for i, make := range of {
		j.parts = append(j.parts, make(p, i, first))
		first += j.parts[i].draws()
	}
	return j
}

func (j *joint) act(r *policy.Request, lo, hi int) (illegal int) {
	for _, p := range j.parts {
		if row := p.draw(r, lo, hi); row >= 0 {
			return row
		}
	}
	clear(j.scratch[:hi-lo])
	for _, p := range j.parts {
		p.weigh(nil, 0, 0, hi-lo, j.scratch, j.entropies)
	}
	copy(r.LogProb[lo:hi], j.scratch)
	return -1
}

func (j *joint) begin(config *ppo.Config, r ppo.Rates, rows int) {
	logProb := j.loss.NewLogProb
	j.loss = lossOf(config, r, rows)
	j.loss.NewLogProb, j.loss.Entropies, j.loss.Slope = logProb, j.entropies, j.slope
}

func (j *joint) learn(b *minibatch, lo, hi int) {
	l, rows := &j.loss, hi-lo
	clear(l.NewLogProb)
	clear(l.Entropies)
	for i, p := range j.parts {
		p.weigh(&b.actions[i], b.ld, lo, rows, l.NewLogProb, l.Entropies)
	}
	l.Rows, l.Value = rows, j.columns(j.layout.value)
	l.OldLogProb, l.OldValue = b.logProb[lo:], b.value[lo:]
	l.Advantage, l.Return = b.advantage[lo:], b.ret[lo:]
	l.Surrogate(j.set)
	for _, p := range j.parts {
		p.descend(l.Slope, l.Entropy, rows)
	}
}

func (j *joint) logProbs() []float32 { return j.loss.NewLogProb }

func (j *joint) sums() ppo.LossSums { return sumsOf(&j.loss.Sums) }

// choices is an action of categorical elements: Categorical, MultiCategorical and, with a logit of 0 for every 0, Bernoulli.
type choices struct {
	*pass
	action  int
	from    op
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
		c := &choices{pass: p, action: action, from: p.policy[action], counts: counts, pairs: pairs, first: first,
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

func (c *choices) descend(slope []float32, coef float32, rows int) {
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
