package cuda

import (
	"errors"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// engine is ppo.Engine on a device.
type engine struct {
	owner
	*layout
	config  ppo.Config
	vectors *vectors

	params, m, v, grad       kernels.Address // by the layout
	squares, actors, control kernels.Address
	reduce                   call[kernels.Reduce]
	decide                   call[kernels.Decide]
	adam                     call[kernels.Adam]
	halt                     call[kernels.Halt]
	targets                  call[kernels.Targets]
	returns                  call[kernels.Returns]
	rescale                  call[kernels.Rescale]

	batch *minibatch // nil before the first update
	data  dataset
	aims  aims
	order staged // orders of all steps, then the control as it comes back
	end   section

	// Of the update under way.
	round  *ppo.Round
	rows   []uint32
	begun  []int // steps submitted before each epoch
	made   int   // steps submitted
	aimed  bool
	chunks []int

	// Of the learner, as of the last update.
	steps uint64
	rate  float32 // with AdaptiveKL
}

var _ ppo.Engine = (*engine)(nil)

// aims are what rows of a dataset are learned for, in room that grows.
type aims struct {
	owner
	rows                          int
	advantage, target, newLogProb kernels.Address
}

// fit makes room for so many rows.
func (a *aims) fit(rows int) {
	if rows <= a.rows || a.work.err != nil {
		return
	}
	a.work.fail(a.close())
	a.rows, a.advantage, a.target, a.newLogProb = rows, a.floats(rows), a.floats(rows), a.floats(rows)
	if a.work.err != nil {
		a.rows = 0
		a.work.fail(a.close())
	}
}

func newEngine(d *device, l *layout, params []float32, c ppo.Config) (*engine, error) {
	w, err := newWork(d, driver.Low)
	if err != nil {
		return nil, err
	}
	k := &engine{owner: owner{work: w}, layout: l, config: c, data: newDataset(w, l), aims: aims{owner: owner{work: w}}, order: staged{work: w}}
	o := &k.owner
	k.vectors = newVectors(o, l)
	k.params, k.m, k.v, k.grad = o.floats(l.size), o.floats(l.size), o.floats(l.size), o.floats(l.size)
	k.squares, k.actors, k.control = o.floats(2*l.size/norms), o.floats(l.size/norms), o.floats(sizeOf[kernels.Control]()/4)
	k.reduce, k.decide, k.adam, k.halt = prepare(o, kernels.ReduceKernel), prepare(o, kernels.DecideKernel), prepare(o, kernels.AdamKernel), prepare(o, kernels.HaltKernel)
	k.targets, k.returns, k.rescale = prepare(o, kernels.TargetsKernel), prepare(o, kernels.ReturnsKernel), prepare(o, kernels.RescaleKernel)
	k.describe()
	k.fit(min(c.Minibatch, firstRows))
	err = w.take()
	if err == nil {
		zero := make([]float32, len(params))
		err = k.SetState(ppo.State{Params: params, AdamM: zero, AdamV: zero})
	}
	if err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

// firstRows is the largest minibatch that there is room for before there is a dataset.
const firstRows = 1 << 14

// describe fills in what never changes.
func (k *engine) describe() {
	c, n := &k.config, k.size
	blocks := n / norms
	part := k.actors
	if k.apart {
		k.work.fill(part, 1, k.critic/norms)
	} else {
		k.work.fill(part, 1, blocks)
	}
	*k.reduce.args = kernels.Reduce{Grad: k.grad, Squares: k.squares, Control: k.control, Part: int64(n), Size: int32(n)}
	*k.decide.args = kernels.Decide{Squares: k.squares, OfActor: k.actors, Control: k.control, Blocks: int32(blocks)}
	*k.adam.args = kernels.Adam{Params: k.params, M: k.m, V: k.v, Grad: k.grad, OfActor: k.actors, Control: k.control, Size: int32(n),
		Beta1: float32(c.AdamBeta1), Keep1: float32(1 - c.AdamBeta1), Beta2: float32(c.AdamBeta2), Keep2: float32(1 - c.AdamBeta2), Eps: float32(c.AdamEps)}
	k.halt.args.Control = k.control
}

// fit makes room for minibatches of so many rows.
func (k *engine) fit(rows int) {
	if k.work.err != nil || k.batch != nil && k.batch.gradient.capacity >= rows {
		return
	}
	if k.batch != nil {
		k.work.fail(k.batch.gradient.close())
	}
	k.batch = newMinibatch(k.work, k.layout, k.params, k.control, rows, k.config.Accumulate)
	if k.work.err != nil {
		k.work.fail(k.batch.gradient.close())
		k.batch = nil
	}
}

// Begin copies the round to the device.
func (k *engine) Begin(r *ppo.Round) {
	if len(k.data.seen) > 0 { // of an update that could not be waited for
		k.leave()
	}
	k.round, k.begun, k.made, k.aimed = r, k.begun[:0], 0, false
	d := r.Dataset
	rows := min(k.config.Minibatch, d.Rows())
	k.fit(rows)
	k.aims.fit(d.Rows())
	k.data.take(r)
	k.takeOrders(d)
	if k.work.err != nil {
		return
	}
	k.data.stage(r)
	k.batch.describe(k)
	view[kernels.Control](&k.data.staged, k.data.control)[0] = k.begins(r)
	k.data.upload()
	k.work.copy(k.control, k.data.address(k.data.control), k.data.control.bytes)
}

// takeOrders makes room for the orders of an update's steps, of which none overwrites another's: the device may come to them late.
func (k *engine) takeOrders(d *policy.Dataset) {
	passes := k.config.Epochs
	switch {
	case k.config.VTrace && k.config.VTraceRecompute == ppo.RecomputeEpoch:
		passes *= 2
	case k.config.VTrace:
		passes++
	}
	chunk := max(k.net.Chunk, 1)
	steps := (d.Rows()/chunk + k.config.Minibatch/chunk - 1) / (k.config.Minibatch / chunk)
	if k.config.Accumulate > 1 { // each step has the order of all its rows besides, and may have a minibatch more
		passes, steps = 2*passes, 2*steps+k.config.Accumulate
	}
	k.order.begin()
	k.end = k.order.section(sizeOf[kernels.Control]())
	from := k.order.used
	k.order.section(passes * (steps*orderSections*line + orderSections*4*d.Rows()))
	k.order.fit()
	k.order.used = from
}

// begins is the control of an update that begins.
func (k *engine) begins(r *ppo.Round) kernels.Control {
	c := &k.config
	to := kernels.Control{Beta1: c.AdamBeta1, Beta2: c.AdamBeta2, MaxNorm: c.MaxGradNorm, TargetKL: c.TargetKL, AdaptiveKL: c.AdaptiveKL,
		RateMin: c.LearningRateMin, RateMax: c.LearningRateMax, LearningRate: r.Rates.LearningRate, Steps: k.steps, FaultPlace: kernels.NoPlace}
	if k.apart {
		to.Apart = 1
	}
	if k.apart && c.SeparateGradNorms {
		to.ClipApart = 1
	}
	if c.AdaptiveKL > 0 {
		if to.Rate = k.rate; to.Rate == 0 {
			to.Rate = max(float32(c.LearningRateMin), min(float32(c.LearningRateMax), r.Rates.LearningRate))
		}
		k.rate = to.Rate
	}
	return to
}

// Target computes advantages and returns.
func (k *engine) Target() {
	if k.work.err != nil {
		return
	}
	d, s, c := k.round.Dataset, &k.round.Samples, &k.config
	a := k.targets.args
	*a = kernels.Targets{Blocks: k.data.address(k.data.blocks), Advantage: k.aims.advantage, Target: k.aims.target, Control: k.control,
		Gamma: c.Gamma, Lambda: c.GAELambda, RhoBar: c.RhoBar, CBar: c.CBar, Steps: int32(d.Steps()), Envs: int32(d.Envs()), BlockEnvs: int32(d.BlockEnvs())}
	if c.Discount == ppo.DiscountMultiply {
		a.Multiply = 1
	}
	if c.VTrace {
		k.logProbs()
		a.NewLogProb = k.aims.newLogProb
	}
	k.work.launch(k.targets.Launch, kernels.Blocks(d.Envs()))
	r := k.returns.args
	*r = kernels.Returns{Target: k.aims.target, Value: k.data.address(k.data.value), Valid: k.data.address(k.data.valid), Control: k.control,
		Mean: k.round.Unit.Mean, Deviation: k.round.Unit.Deviation, Count: int32(len(s.Valid))}
	if !k.aimed {
		r.First, k.aimed = 1, true
	}
	k.work.launch(k.returns.Launch, driver.Dim{X: 1})
}

// logProbs computes the log-probability of the stored action of every valid row under the current policy, for V-trace's ratios.
func (k *engine) logProbs() {
	b := k.batch
	if k.net.Chunk == 0 {
		for rows := k.round.Samples.Valid; len(rows) > 0; {
			n := min(len(rows), b.gradient.capacity)
			b.weigh(k, rows[:n])
			rows = rows[n:]
		}
		return
	}
	rows := k.round.Samples.Entered
	k.chunks = k.round.Dataset.ChunkStarts(&k.net, rows, k.chunks[:0])
	per := b.gradient.capacity / k.net.Chunk
	for first, last := 0, len(k.chunks)-1; first < last; first += per {
		b.weigh(k, rows[k.chunks[first]:k.chunks[min(first+per, last)]])
	}
}

// Epoch is Engine's.
func (k *engine) Epoch(rows []uint32) { k.rows, k.begun = rows, append(k.begun, k.made) }

// Step submits an optimiser step.
func (k *engine) Step(lo int, ends []int) {
	k.made++
	if k.work.err != nil {
		return
	}
	b, all, blocks := k.batch, k.rows[lo:ends[len(ends)-1]], 0
	if len(ends) > 1 {
		b.weighAll(k, all)
	}
	for i, hi := range ends {
		rows := k.rows[lo:hi]
		b.learn(k, rows, step{rows: len(all), blocks: blocks, one: len(ends) == 1})
		k.gather(b.gradient, i, i == len(ends)-1)
		blocks += kernels.Blocks(len(rows)).X
		lo = hi
	}
	k.decide.args.Sums, k.decide.args.LossBlocks, k.decide.args.Rows = b.sums, int32(blocks), int32(len(all))
	k.work.launch(k.decide.Launch, driver.Dim{X: 1})
	k.work.launch(k.adam.Launch, kernels.Blocks(k.size))
	if k.config.TargetKL > 0 {
		k.work.launch(k.halt.Launch, driver.Dim{X: 1})
	}
}

// gather submits that the parts of a minibatch's gradient are added up: with the sum of the step's earlier minibatches, which lies before
// them, and to there or, of the step's last minibatch, to the gradient of the step.
func (k *engine) gather(g *gradient, minibatch int, last bool) {
	a := k.reduce.args
	a.Parts, a.Count, a.Grad = g.parts, int32(g.count), g.sum
	if minibatch > 0 {
		a.Parts, a.Count = g.sum, int32(g.count+1)
	}
	if last {
		a.Grad = k.grad
	}
	k.work.launch(k.reduce.Launch, kernels.Blocks(k.size))
}

// Finish waits and reads how the update ended.
func (k *engine) Finish() (ppo.Stats, error) {
	r := k.round
	k.round, k.rows = nil, nil
	if k.work.err == nil {
		k.work.copy(k.order.host.Address+kernels.Address(k.end.at), k.control, k.end.bytes)
	}
	k.leave()
	if err := k.work.take(); err != nil {
		return ppo.Stats{}, err
	}
	c := view[kernels.Control](&k.order, k.end)[0]
	k.steps = c.Steps
	stats := k.stats(&c, r)
	if k.config.AdaptiveKL > 0 {
		k.rate = c.Rate
	}
	return stats, k.fault(&c, r.Dataset)
}

// leave waits, and gives back blocks that the device has copied; if it cannot wait, it keeps them until it can.
func (k *engine) leave() {
	err := k.work.stream.Synchronize()
	k.work.fail(err)
	if err == nil {
		k.data.leave()
	}
}

// stats returns the statistics of an update.
func (k *engine) stats(c *kernels.Control, r *ppo.Round) ppo.Stats {
	n := float64(len(r.Samples.Valid))
	s := ppo.Stats{PolicyLoss: c.PolicyLoss, ValueLoss: c.ValueLoss, Entropy: c.Entropy, ApproxKL: c.ApproxKL, OldApproxKL: c.OldApproxKL,
		ClipFraction: c.Clipped, FirstClipFraction: c.FirstClipped, FirstRatioError: c.FirstRatioError, ExplainedVariance: c.Explained,
		GradNorm: c.Norm, ActorGradNorm: c.ActorNorm, CriticGradNorm: c.CriticNorm, OptimizerSteps: c.Made, ValidRows: n,
		LearningRate: c.LastRate, Gathered: uint64(len(r.Samples.Valid) * k.data.gathered())}
	if c.Made > 0 && c.Fault == 0 {
		for _, sum := range []*float64{&s.PolicyLoss, &s.ValueLoss, &s.Entropy, &s.ApproxKL, &s.OldApproxKL, &s.ClipFraction, &s.GradNorm, &s.ActorGradNorm, &s.CriticGradNorm} {
			*sum /= c.Made
		}
	}
	if c.Made == 0 {
		s.LearningRate = r.Rates.LearningRate
		if k.config.AdaptiveKL > 0 {
			s.LearningRate = c.Rate
		}
	}
	for _, before := range k.begun {
		if c.Stopped == 0 && c.Fault == 0 || float64(before) < c.Made {
			s.Epochs++
		}
	}
	if k.config.NormalizeReturns && n > 0 {
		s.Returns = ppo.Returns{Count: n, Mean: c.ReturnsMean, M2: c.ReturnsM2}
	}
	return s
}

// fault is the error of an update that the device gave up.
func (k *engine) fault(c *kernels.Control, d *policy.Dataset) error {
	switch c.Fault {
	case kernels.GradientFault:
		return fmt.Errorf("gradient of optimiser step %d: %w", c.Steps+1, policy.ErrNotFinite)
	case kernels.TargetFault:
		column := map[uint64]trajectory.Column{kernels.RewardColumn: trajectory.Reward, kernels.DiscountColumn: trajectory.Discount,
			kernels.BootstrapColumn: trajectory.Bootstrap, kernels.ValueColumn: trajectory.Value}[c.FaultPlace%4]
		place, steps, width := int(c.FaultPlace/4), d.Steps(), d.BlockEnvs()
		block, step, e := place/width/steps, steps-1-place/width%steps, place%width
		return d.RowError(step*d.Envs()+block*width+e, column, policy.ErrNotFinite)
	}
	return nil
}

// Rescale changes the head of the value.
func (k *engine) Rescale(h ppo.Head, scale, shift float64) {
	*k.rescale.args = kernels.Rescale{Own: k.params, Place: k.vectors.places, Scale: scale, Shift: shift,
		Weight: int32(h.Weight.Offset), Bias: int32(h.Bias.Offset), Count: int32(h.Weight.Rows)}
	k.work.launch(k.rescale.Launch, kernels.Blocks(h.Weight.Rows+1))
}

// Params copies the canonical vector.
func (k *engine) Params(dst []float32) error {
	if len(dst) != k.canonical {
		return fmt.Errorf("parameters: room for %d, the network has %d", len(dst), k.canonical)
	}
	k.vectors.get(dst, k.params)
	return k.work.take()
}

// State copies parameters and moments.
func (k *engine) State() (ppo.State, error) {
	canonical := func(own kernels.Address) []float32 {
		v := make([]float32, k.canonical)
		k.vectors.get(v, own)
		return v
	}
	s := ppo.State{Params: canonical(k.params), AdamM: canonical(k.m), AdamV: canonical(k.v), AdamSteps: k.steps, LearningRate: k.rate}
	return s, k.work.take()
}

// SetState replaces parameters and moments.
func (k *engine) SetState(s ppo.State) error {
	n := k.canonical
	if len(s.Params) != n || len(s.AdamM) != n || len(s.AdamV) != n {
		return fmt.Errorf("state of %d parameters and %d and %d moments, the network has %d",
			len(s.Params), len(s.AdamM), len(s.AdamV), n)
	}
	k.vectors.put(k.params, s.Params)
	k.vectors.put(k.m, s.AdamM)
	k.vectors.put(k.v, s.AdamV)
	k.work.wait()
	k.steps, k.rate = s.AdamSteps, s.LearningRate
	return k.work.take()
}

// Close frees the device's memory.
func (k *engine) Close() error {
	err := k.work.stream.Synchronize()
	k.data.leave()
	if k.batch != nil {
		err = errors.Join(err, k.batch.gradient.close())
	}
	return errors.Join(err, k.aims.close(), k.owner.close(), k.data.close(), k.order.close(), k.vectors.close(), k.work.stream.Close())
}

// lossOf returns the numbers of a loss over the rows of a minibatch, which is the mean over so many.
func lossOf(c *ppo.Config, r ppo.Rates, rows, of int) kernels.Loss {
	mean, bound := 1/float64(of), float32(math.Inf(1))
	if c.ValueClip > 0 {
		bound = float32(c.ValueClip)
	}
	return kernels.Loss{Rows: int32(rows), Low: 1 - r.Clip, High: 1 + r.Clip, Clip: r.Clip, Mean: float32(mean),
		Entropy: float32(float64(r.Entropy) * mean), ValueCoef: float32(c.ValueCoef * mean), ValueClip: bound, Penalty: float32(c.KLCoef * mean),
		Bounds: float32(2 * c.BoundsLossCoef * mean)}
}
