package gorgonia

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/gpu/ppo"
)

// engine is ppo.Engine by graphs, which compute losses and gradients; targets, clip and Adam are package ppo's own. A
// step is done when it is submitted.
type engine struct {
	ppo.Host
	*model
	params  []float32        // canonical vector, read in place by every graph
	learn   *shapes[float32] // with loss and gradient
	forward *shapes[float32] // without
	state   adam

	batch   ppo.Minibatch
	block   []uint32 // rows that logProbs takes at a time
	obs     []float32
	logProb []float32 // per dataset row, under the current policy; only for V-trace
}

var _ ppo.Engine = (*engine)(nil)

func newEngine(acting, learning *model, params []float32) (*engine, error) {
	if len(params) != learning.size {
		return nil, fmt.Errorf("parameters: %d, the network has %d", len(params), learning.size)
	}
	l := &engine{Host: ppo.Host{Config: learning.config}, model: learning, params: append([]float32(nil), params...)}
	l.learn = newShapes(learning, l.params, learning.config.Minibatch)
	l.forward = newShapes(acting.evaluating(), l.params, maxActorRows)
	l.state.set(ppo.State{Params: params, AdamM: make([]float32, len(params)), AdamV: make([]float32, len(params))})
	_, err := l.learn.fit(1) // a model that cannot be computed is found out early
	return l, err
}

// Target computes advantages and returns.
func (l *engine) Target() {
	if !l.Over() && l.Config.VTrace {
		l.Fail(l.logProbs())
	}
	if !l.Over() {
		l.Aim(l.logProb)
	}
}

// Step makes one optimiser step.
func (l *engine) Step(lo int, ends []int) {
	if !l.Over() {
		l.Fail(l.step(lo, ends))
	}
}

func (l *engine) step(lo int, ends []int) error {
	all := l.Rows[lo:ends[len(ends)-1]]
	moments, sums := l.MomentsOf(all), ppo.LossSums{}
	clear(l.state.grad)
	for _, hi := range ends {
		own, err := l.descend(l.Rows[lo:hi], len(all), moments)
		if err != nil {
			return err
		}
		sums.Add(own)
		lo = hi
	}
	norms := ppo.ClipGrad(&l.Config, l.layout, l.state.grad)
	if l.Finite(norms, l.state.steps+1) {
		l.state.step(&l.Config, l.NextRates(sums, len(all)), l.params)
		l.Stepped(sums, len(all), norms)
	}
	return nil
}

// descend adds the gradient of some rows' loss, over that number of them, and returns the loss's sums.
func (l *engine) descend(rows []uint32, of int, moments ppo.Moments) (ppo.LossSums, error) {
	l.Gathered(l.batch.Gather(l.Dataset, &l.network, &l.Samples, &l.Targets, rows))
	moments.Normalize(l.batch.Advantage)
	p, err := l.learn.fit(len(rows))
	if err != nil {
		return ppo.LossSums{}, err
	}
	p.load(l.joint, &l.batch, l.Rates, of)
	p.follow(l.batch.Prev, l.batch.State)
	if err := p.run(); err != nil {
		return ppo.LossSums{}, err
	}
	for i, g := range p.grad {
		l.state.grad[i] += float64(g)
	}
	return p.sums(&l.batch, &l.Config, l.Rates), nil
}

// logProbs computes the log-probability of every row's stored action under the current policy. Rows that are not
// valid get some number.
func (l *engine) logProbs() error {
	if l.network.Chunk > 0 {
		return l.logProbsOfChunks(l.Samples.Entered)
	}
	l.logProb = l.logProb[:0]
	for total := l.Dataset.Rows(); len(l.logProb) < total; {
		first := len(l.logProb)
		p, err := l.forward.fit(total - first)
		if err != nil {
			return err
		}
		if err := l.forwardRows(p, first, min(first+p.rows, total)); err != nil {
			return err
		}
	}
	return nil
}

// logProbsOfChunks is logProbs for a network that keeps a state, of valid rows in one run.
func (l *engine) logProbsOfChunks(rows []uint32) error {
	l.logProb = append(l.logProb[:0], make([]float32, l.Dataset.Rows())...)
	l.forward.full = max(l.forward.full, len(rows))
	p, err := l.forward.fit(len(rows))
	if err != nil {
		return err
	}
	l.obs = append(l.obs[:0], make([]float32, len(rows)*l.network.Obs())...)
	l.Dataset.GatherObs(&l.network, rows, l.obs)
	p.loadObs(l.obs, nil)
	prev, state := make([]int32, len(rows)), make([]float32, len(rows)*l.network.State())
	l.Dataset.Follow(&l.network, rows, prev, state)
	p.follow(prev, state)
	actions := l.network.Actions()
	for slot, row := range rows {
		if l.joint != nil {
			p.loadRow(l.joint, l.Samples.Actions, int(row), slot)
			continue
		}
		for a, legal := range l.Samples.Actions[0].Masks(int(row), int(row)+1) {
			p.mask[slot*actions+a] = float32(legal)
		}
	}
	if err := p.run(); err != nil {
		return err
	}
	for slot, row := range rows {
		at := slot
		if l.joint == nil {
			at = slot*actions + int(l.Samples.Actions[0].Index[row])
		}
		l.logProb[row] = p.logProbs[at]
	}
	return nil
}

func (l *engine) forwardRows(p *program[float32], first, end int) error {
	actions := l.network.Actions()
	l.block = l.block[:0]
	for row := first; row < end; row++ {
		l.block = append(l.block, uint32(row))
	}
	l.obs = append(l.obs[:0], make([]float32, len(l.block)*l.network.Obs())...)
	l.Dataset.GatherObs(&l.network, l.block, l.obs)
	if l.joint != nil {
		p.loadObs(l.obs, nil)
		p.loadActions(l.joint, l.Samples.Actions, first, end-first)
	} else {
		p.loadObs(l.obs, l.Samples.Actions[0].Masks(first, end))
	}
	if err := p.run(); err != nil {
		return err
	}
	if l.joint != nil {
		l.logProb = append(l.logProb, p.logProbs[:len(l.block)]...)
		return nil
	}
	for i := range l.block {
		l.logProb = append(l.logProb, p.logProbs[i*actions+int(l.Samples.Actions[0].Index[first+i])])
	}
	return nil
}

// Rescale changes the head of the value.
func (l *engine) Rescale(h ppo.Head, scale, shift float64) {
	h.Rescale(l.params, scale, shift)
	l.state.params = widen(l.params)
}

// Params copies the canonical vector.
func (l *engine) Params(dst []float32) error {
	if len(dst) != len(l.params) {
		return fmt.Errorf("parameters: room for %d, the network has %d", len(dst), len(l.params))
	}
	copy(dst, l.params)
	return nil
}

// State copies parameters and moments.
func (l *engine) State() (ppo.State, error) {
	s := l.state.get()
	s.LearningRate = l.LearningRate()
	return s, nil
}

// SetState replaces parameters and moments.
func (l *engine) SetState(s ppo.State) error {
	n := len(l.params)
	if len(s.Params) != n || len(s.AdamM) != n || len(s.AdamV) != n {
		return fmt.Errorf("state of %d parameters and %d and %d moments, the network has %d",
			len(s.Params), len(s.AdamM), len(s.AdamV), n)
	}
	copy(l.params, s.Params)
	l.state.set(s)
	l.SetLearningRate(s.LearningRate)
	return nil
}

// Close frees the graphs.
func (l *engine) Close() error { return errors.Join(l.learn.close(), l.forward.close()) }
