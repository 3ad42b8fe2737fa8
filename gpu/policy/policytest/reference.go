package policytest

import (
	"cmp"
	"math"
	"slices"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// Reference learns in float64, by the policy package's reference functions and nothing else. It is an engine whose state
// is its graph's parameters.
type Reference struct {
	ppo.Host
	stateless
	Graph *policy.Graph
	dists []head.Dist
	m, v  []float64
	steps uint64
	batch ppo.Minibatch

	learner ppo.Learner // over this engine
}

// stateless has the methods of ppo.Engine besides the updates, which no test calls.
type stateless struct{ ppo.Engine }

// NewReference returns the reference of a network with the given parameters.
func NewReference(n policy.Network, params []float32, c ppo.Config) *Reference {
	r := &Reference{Host: ppo.Host{Config: c}, Graph: policy.NewGraph(&n, params), dists: n.Dists(),
		m: make([]float64, len(params)), v: make([]float64, len(params))}
	var err error
	if r.learner, err = ppo.Over(r, &n, n.Params(), c); err != nil {
		panic(err)
	}
	return r
}

// Update is ppo.Learner's.
func (r *Reference) Update(d *policy.Dataset, rates ppo.Rates) (ppo.Stats, error) {
	return r.learner.Update(d, rates)
}

// Rescale is ppo.Engine's.
func (r *Reference) Rescale(h ppo.Head, scale, shift float64) {
	for i := range h.Weight.Rows {
		r.Graph.Params[h.Weight.Offset+i] *= scale
	}
	b := &r.Graph.Params[h.Bias.Offset]
	*b = *b*scale + shift
}

// Target is ppo.Engine's.
func (r *Reference) Target() {
	if r.Over() {
		return
	}
	if !r.Config.VTrace {
		r.Aim(nil)
		return
	}
	params, value := r.forward(r.Dataset)
	newLogProb := make([]float32, len(value))
	for i := range newLogProb {
		logProb, _ := ppo.LogProb(r.dists, r.Samples.Actions, i, params)
		newLogProb[i] = float32(logProb)
	}
	r.Aim(newLogProb)
}

// forward computes all rows of a dataset.
func (r *Reference) forward(d *policy.Dataset) (params [][]float64, value []float64) {
	n := &r.Graph.Network
	rows := make([]uint32, d.Rows())
	for i := range rows {
		rows[i] = uint32(i)
	}
	if n.Chunk > 0 { // a row comes after the previous row of its chunk
		slices.SortStableFunc(rows, func(a, b uint32) int { return cmp.Compare(d.ChunkOf(n, a), d.ChunkOf(n, b)) })
	}
	obs := make([]float32, len(rows)*n.Obs())
	d.GatherObs(n, rows, obs)
	r.follow(d, rows)
	params, value = r.Graph.Forward(obs, len(rows))
	for _, list := range append([][]float64{value}, params...) {
		width := len(list) / len(rows)
		inOrder := slices.Clone(list)
		for i, row := range rows {
			copy(inOrder[int(row)*width:], list[i*width:(i+1)*width])
		}
		copy(list, inOrder)
	}
	return params, value
}

// follow tells the graph the previous row of each row of the next pass.
func (r *Reference) follow(d *policy.Dataset, rows []uint32) {
	n := &r.Graph.Network
	if n.Chunk == 0 {
		return
	}
	r.Graph.Prev, r.Graph.State = make([]int32, len(rows)), make([]float32, len(rows)*n.State())
	d.Follow(n, rows, r.Graph.Prev, r.Graph.State)
}

// Step is ppo.Engine's.
func (r *Reference) Step(lo int, ends []int) {
	if r.Over() {
		return
	}
	hi := ends[len(ends)-1]
	r.batch.Gather(r.Dataset, &r.Graph.Network, &r.Samples, &r.Targets, r.Rows[lo:hi])
	r.MomentsOf(r.Rows[lo:hi]).Normalize(r.batch.Advantage)
	sums := r.Gradient(&r.batch, r.Rates)
	norms := ppo.ClipGrad(&r.Config, r.Graph.Network.Params(), r.Graph.Grad)
	r.steps++
	ppo.Adam(&r.Config, float64(r.NextRates(sums, hi-lo).LearningRate), r.steps, r.Graph.Params, r.m, r.v, r.Graph.Grad)
	r.Stepped(sums, hi-lo, norms)
}

// Gradient leaves the gradient of the loss of a minibatch in Grad and returns the loss's sums.
func (r *Reference) Gradient(b *ppo.Minibatch, rates ppo.Rates) ppo.LossSums {
	clear(r.Graph.Grad)
	r.Graph.Prev, r.Graph.State = b.Prev, b.State
	params, value := r.Graph.Forward(b.Obs, b.Rows)
	dParams, dValue := like(params), make([]float64, len(value))
	sums := ppo.Loss(r.dists, b, &r.Config, rates, params, value, dParams, dValue)
	r.Graph.Backward(dParams, dValue)
	return sums
}

// Loss returns the loss of a minibatch under the current parameters, for finite differences around those whose heads are
// before.
func (r *Reference) Loss(b *ppo.Minibatch, rates ppo.Rates, before [][]float64) float64 {
	r.Graph.Prev, r.Graph.State = b.Prev, b.State
	params, value := r.Graph.Forward(b.Obs, b.Rows)
	s := ppo.Loss(r.dists, b, &r.Config, rates, params, value, like(params), make([]float64, len(value)))
	sum := s.PolicyLoss + r.Config.ValueCoef*s.ValueLoss - float64(rates.Entropy)*r.entropy(b, rates, before, params) + r.Config.KLCoef*s.ApproxKL
	for row := range b.Rows {
		sum += r.Config.BoundsLossCoef * ppo.BoundsLoss(b.Actions, row, params)
	}
	return sum / float64(b.Rows)
}

// heads returns what distributions are made from under the current parameters.
func (r *Reference) heads(b *ppo.Minibatch) [][]float64 {
	r.Graph.Prev, r.Graph.State = b.Prev, b.State
	params, _ := r.Graph.Forward(b.Obs, b.Rows)
	kept := like(params)
	for i := range params {
		copy(kept[i], params[i])
	}
	return kept
}

// entropy returns the sum of the entropies of a minibatch's rows. Entropies of squashed distributions are
// estimated: the actions take the same noise with the new parameters, and are weighted with their previous ratios.
func (r *Reference) entropy(b *ppo.Minibatch, rates ppo.Rates, before, params [][]float64) (sum float64) {
	for row := range b.Rows {
		logProb, _ := ppo.LogProb(r.dists, b.Actions, row, before)
		for k, d := range r.dists {
			width, action, weight := d.Elems(), make([]float64, d.Size()), 1.0
			was, now := before[k][row*width:][:width], params[k][row*width:][:width]
			b.Actions[k].Row(row, action)
			if head.EstimatesEntropy(d) {
				weight = ppo.EntropyWeight(b, row, rates, logProb)
				log := d.(*head.Gaussian).LogStdRange().Clamp
				for i, x := range action {
					action[i] = now[i] + math.Exp(log(now[len(action)+i])-log(was[len(action)+i]))*(x-was[i])
				}
			}
			_, h := d.LogProb(now, b.Actions[k].Masks(row, row+1), action)
			sum += weight * h
		}
	}
	return sum
}

// like returns slices of the same lengths.
func like(all [][]float64) [][]float64 {
	same := make([][]float64, len(all))
	for i := range all {
		same[i] = make([]float64, len(all[i]))
	}
	return same
}

// LogProbs returns the log-probabilities of every choice of a Discrete action, under a mask.
func LogProbs(d head.Dist, params []float64, mask []byte) []float64 {
	out := make([]float64, d.Choices())
	for a := range out {
		out[a], _ = d.LogProb(params, mask, []float64{float64(a)})
	}
	return out
}
