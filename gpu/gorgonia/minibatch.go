package gorgonia

import (
	"math"

	"github.com/rlhost/rlhost/gpu/ppo"
)

// load enters a minibatch of at most p.rows rows, of so many that the loss is the mean of. The rows after it get the weight 0 and contents that give finite
// numbers, because 0 times infinity would not be 0.
func (p *program[F]) load(j *joint, b *ppo.Minibatch, r ppo.Rates, of int) {
	t := &p.train
	if j != nil {
		p.loadObs(b.Obs, nil)
		p.loadActions(j, b.Actions, 0, b.Rows)
	} else {
		p.loadObs(b.Obs, b.Actions[0].Mask)
		clear(t.action)
		actions := len(t.action) / p.rows
		for i, a := range b.Actions[0].Index {
			t.action[i*actions+int(a)] = 1
		}
	}
	convert(t.oldLogProb, b.LogProb)
	convert(t.oldValue, b.Value)
	convert(t.advantage, b.Advantage)
	convert(t.returns, b.Return)
	clear(t.weight)
	for i := range b.Rows {
		t.weight[i] = 1 / F(of)
	}
	for i := range p.rows {
		t.clipLow[i], t.clipHigh[i], t.entropy[i] = F(1-r.Clip), F(1+r.Clip), F(r.Entropy)
	}
}

// loadActions enters joint actions and their masks of some rows.
func (p *program[F]) loadActions(j *joint, actions []ppo.Actions, first, rows int) {
	clear(p.train.action)
	for slot := range rows {
		p.loadRow(j, actions, first+slot, slot)
	}
}

// loadRow enters joint actions and their masks of one row.
func (p *program[F]) loadRow(j *joint, actions []ppo.Actions, row, slot int) {
	j.loadRow(actions, row, slot, func(i int, x float64) { p.train.action[i] = F(x) }, func(i int, x float64) { p.mask[i] = F(x) })
}

// loadObs enters rows of observations and masks; without a mask every action is legal.
func (p *program[F]) loadObs(obs []float32, mask []byte) {
	convert(p.obs, obs)
	for i := range p.mask {
		p.mask[i] = 1
	}
	for i, legal := range mask {
		p.mask[i] = F(legal)
	}
}

// convert copies src to the start of dst and clears the rest.
func convert[F float](dst []F, src []float32) {
	for i, x := range src {
		dst[i] = F(x)
	}
	clear(dst[len(src):])
}

// sums returns the terms of the loss and its companions for the minibatch that was loaded and run.
func (p *program[F]) sums(b *ppo.Minibatch, c *ppo.Config, r ppo.Rates) ppo.LossSums {
	var s ppo.LossSums
	if p.params != nil {
		for i := range b.Rows {
			s.AddRow(b, i, c, r, float64(p.logProbs[i]), float64(p.entropy[i]), float64(p.value[i]))
		}
		return s
	}
	actions := len(p.logProbs) / p.rows
	for i, action := range b.Actions[0].Index {
		row, entropy := p.logProbs[i*actions:(i+1)*actions], 0.0
		for a, logProb := range row {
			if p.mask[i*actions+a] != 0 {
				entropy -= math.Exp(float64(logProb)) * float64(logProb)
			}
		}
		s.AddRow(b, i, c, r, float64(row[action]), entropy, float64(p.value[i]))
	}
	return s
}
