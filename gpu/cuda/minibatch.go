package cuda

import (
	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
)

// minibatch is rows of a dataset side by side, and the gradient of their loss.
type minibatch struct {
	gradient                          *gradient
	order                             kernels.Address // of the rows in the dataset
	logProb, value, advantage, ret    kernels.Address
	drawn, masks                      []kernels.Address // by action: [elements][capacity], [rows][choices]
	moments, newLogProb, sums, number kernels.Address

	gather     call[kernels.Gather]
	picks      call[kernels.Picks]
	advantages call[kernels.Advantages]
	loss       call[kernels.Loss]
	scatter    call[kernels.Move]
}

// pickColumns is how many columns every minibatch takes, besides two for each action.
const pickColumns = 4

// orderSections is how many sections a step's order has at most: how many rows, the rows, and how they follow one another.
const orderSections = 4

// newMinibatch makes room for minibatches of so many rows, of which an optimiser step has at most accumulate.
func newMinibatch(w *work, l *layout, params, control kernels.Address, capacity, accumulate int) *minibatch {
	p := newPass(w, l, params, control, capacity, &steps{})
	b := &minibatch{gradient: newGradient(p)}
	b.logProb, b.value, b.advantage, b.ret = p.floats(capacity), p.floats(capacity), p.floats(capacity), p.floats(capacity)
	for i := range l.actions {
		a := &l.actions[i]
		b.drawn, b.masks = append(b.drawn, p.floats(a.Size*capacity)), append(b.masks, p.floats((a.Choices*capacity+3)/4))
	}
	b.moments, b.newLogProb = p.floats(4), p.floats(capacity)
	b.sums = p.floats(2 * kernels.LossSums * kernels.Blocks(capacity).X * accumulate)
	o := &p.owner
	b.gather, b.picks, b.loss = prepare(o, kernels.GatherKernel), prepare(o, kernels.PicksKernel), prepare(o, kernels.LossKernel)
	b.advantages, b.scatter = prepare(o, kernels.AdvantagesKernel), p.move(1)
	return b
}

// describe fills in the arguments that are the same for all steps of an update: the heads and the picks.
func (b *minibatch) describe(k *engine) {
	d := &k.data
	picks := view[kernels.Pick](&d.staged, d.picks)[:0]
	number := func(from, to kernels.Address) {
		picks = append(picks, kernels.Pick{From: from, To: to, Size: 1, Bytes: 4, Row: 1, Column: 1})
	}
	number(d.address(d.logProb), b.logProb)
	number(d.address(d.value), b.value)
	number(k.aims.advantage, b.advantage)
	number(k.aims.target, b.ret)
	for i := range b.gradient.actions {
		a, from := &b.gradient.actions[i], d.index[i]
		if a.Continuous {
			from = d.raw[i]
		}
		picks = append(picks, kernels.Pick{From: d.address(from), To: b.drawn[i], Size: int32(a.Size), Bytes: 4, Row: 1, Column: int32(b.gradient.ld)})
		d.masksAt[i] = 0
		if d.mask[i].bytes > 0 {
			d.masksAt[i] = b.masks[i]
			picks = append(picks, kernels.Pick{From: d.address(d.mask[i]), To: b.masks[i], Size: int32(a.Choices), Bytes: 1, Row: int32(a.Choices), Column: 1})
		}
	}
	b.picks.args.Picks, b.picks.args.Control, b.picks.Grid.Y = d.address(d.picks), b.gradient.control, len(picks)
	d.heads.fill(&d.staged, b.gradient.pass, b.drawn, d.masksAt)
	d.describe(b.gather.args, k.round.Dataset)
	b.gather.args.X, b.gather.args.Control = b.gradient.x, b.gradient.control
}

// arrange sends the next rows to the device.
func (b *minibatch) arrange(k *engine, rows []uint32) {
	s, from := &k.order, k.order.used
	if b.gradient.net.Chunk > 0 {
		b.gradient.steps.arrange(k.round.Dataset, &b.gradient.net, rows)
		rows = b.gradient.steps.rows
	}
	count, order := s.section(4), s.section(4*len(rows))
	view[int32](s, count)[0] = int32(len(rows))
	copy(view[uint32](s, order), rows)
	b.order, b.number = s.address(order), s.address(count)
	if b.gradient.net.Chunk > 0 {
		prevs, froms := s.section(4*len(rows)), s.section(4*len(rows))
		copy(view[int32](s, prevs), b.gradient.steps.prevs)
		copy(view[int32](s, froms), b.gradient.steps.froms)
		b.gradient.steps.prev, b.gradient.steps.from, b.gradient.steps.stored = s.address(prevs), s.address(froms), k.data.address(k.data.stored)
	}
	s.send(from)
}

// step is the optimiser step that a minibatch is of: its rows, how many blocks of sums its earlier minibatches have, and whether it has
// this one alone.
type step struct {
	rows, blocks int
	one          bool
}

// weighAll submits the moments of the advantages of a step of several minibatches.
func (b *minibatch) weighAll(k *engine, rows []uint32) {
	if !k.config.NormalizeAdvantage {
		return
	}
	s, from := &k.order, k.order.used
	count, order := s.section(4), s.section(4*len(rows))
	view[int32](s, count)[0] = int32(len(rows))
	copy(view[uint32](s, order), rows)
	s.send(from)
	b.order, b.number = s.address(order), s.address(count)
	b.measure(k)
}

// measure submits the moments of the advantages of the rows in order.
func (b *minibatch) measure(k *engine) {
	*b.advantages.args = kernels.Advantages{Advantage: k.aims.advantage, Order: b.order, Ends: b.number, Moments: b.moments, Control: b.gradient.control}
	b.gradient.work.launch(b.advantages.Launch, driver.Dim{X: 1})
}

// enter submits that the rows are copied side by side, and computed, for a loss that is the mean over so many rows.
func (b *minibatch) enter(k *engine, rows []uint32, of int) {
	b.arrange(k, rows)
	n := len(rows)
	b.gather.args.Order, b.gather.args.Rows = b.order, int32(n)
	b.gradient.work.launch(b.gather.Launch, kernels.Blocks(n*b.gradient.row))
	b.picks.args.Order, b.picks.args.Rows = b.order, int32(n)
	b.gradient.work.launch(b.picks.Launch, driver.Dim{X: kernels.Blocks(n).X, Y: b.picks.Grid.Y})
	b.gradient.forward(n, true)
	r := lossOf(&k.config, k.round.Rates, n, of)
	r.Heads, r.Value, r.LogProb, r.Control = k.data.address(k.data.heads.table), b.gradient.out[b.gradient.plan.Value.At], b.newLogProb, b.gradient.control
	r.Count, r.LD = int32(len(b.gradient.actions)), int32(b.gradient.ld)
	*b.loss.args = r
}

// weigh writes the log-probabilities of rows to the dataset's.
func (b *minibatch) weigh(k *engine, rows []uint32) {
	b.enter(k, rows, len(rows))
	b.gradient.work.launch(b.loss.Launch, kernels.Blocks(len(rows)))
	a := b.scatter.args
	a.From, a.FromRow, a.To, a.ToRow, a.Target = b.newLogProb, 1, k.aims.newLogProb, 1, b.order
	b.gradient.moveRows(b.scatter, len(rows))
}

// learn submits the gradient of the loss of rows.
func (b *minibatch) learn(k *engine, rows []uint32, of step) {
	b.enter(k, rows, of.rows)
	a := b.loss.args
	if k.config.NormalizeAdvantage {
		if of.one {
			b.measure(k)
		}
		a.Moments = b.moments
	}
	sums := at(b.sums, 2*kernels.LossSums*of.blocks)
	a.OldLogProb, a.OldValue, a.Advantage, a.Target, a.Sums, a.Descend = b.logProb, b.value, b.advantage, b.ret, sums, 1
	b.gradient.work.launch(b.loss.Launch, kernels.Blocks(len(rows)))
	b.gradient.backward(len(rows))
}
