package cpu

import (
	"math"

	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
)

func (k *Learner) prepareLoss(r policy.Rates, rows int) {
	mean := 1 / float64(rows)
	bound := float32(math.Inf(1))
	if k.config.ValueClip > 0 {
		bound = float32(k.config.ValueClip)
	}
	k.loss = kern.Loss{Actions: k.net.Actions, LD: k.block, NewLogProb: k.loss.NewLogProb, Scratch: k.scratch,
		Low: 1 - r.Clip, High: 1 + r.Clip, Clip: r.Clip, Mean: float32(mean),
		Entropy: float32(float64(r.Entropy) * mean), ValueCoef: float32(k.config.ValueCoef * mean), ValueClip: bound}
}

// evaluate runs rows lo to hi of the minibatch forward and through the loss, which leaves the gradients of logits
// and values in their place.
func (k *Learner) evaluate(lo, hi int) (x matrix) {
	n := hi - lo
	b := &k.batch
	x = matrix{b.obs.data[lo*b.obs.row:], b.obs.row, 1}
	if len(k.layers) == 0 {
		x = k.stage(x, n, nil, nil)
	}
	k.forward(x, n, true, k.value[:k.block])
	k.forbid(lo, hi)
	l := &k.loss
	l.Rows, l.Logits, l.Value = n, k.logits, k.value
	l.Action, l.OldLogProb, l.OldValue = b.action[lo:], b.logProb[lo:], b.value[lo:]
	l.Advantage, l.Return = b.advantage[lo:], b.ret[lo:]
	k.set.Loss(l)
	return x
}

// forbid makes the logits of masked actions impossible.
func (k *Learner) forbid(lo, hi int) {
	if len(k.source.mask) == 0 {
		return
	}
	for row := lo; row < hi; row++ {
		for a, legal := range k.batch.mask[row*k.net.Actions : (row+1)*k.net.Actions] {
			if legal == 0 {
				k.logits[a*k.block+row-lo] = kern.Illegal
			}
		}
	}
}

// gradient adds the gradient of rows lo to hi of the minibatch.
func (k *Learner) gradient(lo, hi int) {
	n := hi - lo
	x := k.evaluate(lo, hi)
	k.headBackward(&k.actorHead, x, n, k.logits)
	k.headBackward(&k.criticHead, x, n, k.value)
	for e := range k.encoders {
		for i := len(k.layers) - 1; i >= 0; i-- {
			in := x
			if i > 0 {
				in = k.activations(k.hidden, i-1, e)
			}
			k.layerBackward(i, e, in, n)
		}
	}
}

// headBackward adds the gradient of a head, given that of its outputs [outputs][block], and passes it on to the
// encoder. The critic of a shared trunk adds to what the actor passed on.
func (k *Learner) headBackward(h *head, x matrix, rows int, delta []float32) {
	in := k.headInput(h, x)
	// dW[a][j] += Σ_r delta[a][r] · in[r][j]
	k.product = kern.Gemm{M: h.outputs, N: k.width, K: rows, A: delta, ARow: k.block, ACol: 1,
		B: in.data, BRow: in.row, BPanel: kern.Panel,
		C: k.grad[h.weight:], CRow: k.width, CPanel: kern.Panel, Add: true}
	k.set.Gemm(&k.product)
	for a := range h.outputs {
		k.grad[h.bias+a] += sum(delta[a*k.block : a*k.block+rows])
	}
	if len(k.layers) == 0 {
		return
	}
	out := k.activations(k.delta, len(k.layers)-1, h.encoder)
	// d[r][j] = Σ_a delta[a][r] · W[a][j], times the activation's derivative
	g := &k.product
	*g = kern.Gemm{M: rows, N: k.width, K: h.outputs, A: delta, ARow: 1, ACol: k.block,
		B: k.params[h.weight:], BRow: k.width, BPanel: kern.Panel,
		C: out.data, CRow: out.row, CPanel: kern.Panel}
	if k.encoders == 1 && h == &k.actorHead {
		k.set.Gemm(g)
		return
	}
	g.Add = k.encoders == 1
	g.Epilogue, g.H = k.activation.backward, in.data
	k.set.Gemm(g)
}

// sum adds in four interleaved partial sums.
func sum(x []float32) float32 {
	var s [4]float32
	for ; len(x) >= 4; x = x[4:] {
		s[0] += x[0]
		s[1] += x[1]
		s[2] += x[2]
		s[3] += x[3]
	}
	for _, v := range x {
		s[0] += v
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// layerBackward adds the gradient of layer i of encoder e, which read in, and passes it on to the layer below.
func (k *Learner) layerBackward(i, e int, in matrix, rows int) {
	y, d := &k.layers[i], k.activations(k.delta, i, e)
	k.sums = kern.ColumnSums{Rows: rows, N: y.out, X: d.data, XRow: d.row, Out: k.grad[y.bias+e*y.out:]}
	k.set.ColumnSums(&k.sums)
	// dW[j][o] += Σ_r in[r][j] · d[r][o]
	g := &k.product
	*g = kern.Gemm{M: y.in, N: y.out, K: rows, A: in.data, ARow: in.col, ACol: in.row,
		B: d.data, BRow: d.row, BPanel: kern.Panel, Strip: k.strip,
		C: k.grad[y.weight+e*y.in*y.out:], CRow: kern.Panel, CPanel: y.in * kern.Panel, Add: true}
	k.set.Gemm(g)
	if i == 0 {
		return
	}
	// d'[r][j] = Σ_o d[r][o] · W[j][o], times the activation's derivative
	below := k.activations(k.delta, i-1, e)
	*g = kern.Gemm{M: rows, N: k.layers[i-1].out, K: y.real, A: d.data, ARow: d.row, ACol: 1,
		B: k.back[i][e*pad(y.in)*y.real:], BRow: kern.Panel, BPanel: y.real * kern.Panel,
		C: below.data, CRow: below.row, CPanel: kern.Panel, H: in.data, Epilogue: k.activation.backward}
	k.set.Gemm(g)
}

// logProbs computes the log-probability of every stored action under the current policy, for V-trace's ratios. Rows
// that are not valid get a number without a meaning.
func (k *Learner) logProbs(d *policy.Dataset) {
	rows := d.Rows()
	k.logProb = grown(k.logProb, rows)
	k.prepareLoss(policy.Rates{}, rows)
	for lo := 0; lo < rows; lo += k.block {
		n := min(k.block, rows-lo)
		k.order = k.order[:0]
		for i := range n {
			k.order = append(k.order, uint32(lo+i))
		}
		k.gather(d, k.order)
		k.evaluate(0, n)
		copy(k.logProb[lo:], k.loss.NewLogProb[:n])
	}
}

func lossSums(s *kern.LossSums) policy.LossSums {
	total := func(lanes *[kern.Lanes]float32) (sum float64) {
		for _, x := range lanes {
			sum += float64(x)
		}
		return sum
	}
	largest := 0.0
	for _, x := range s.Ratio {
		largest = max(largest, float64(x))
	}
	return policy.LossSums{PolicyLoss: -total(&s.Surrogate), ValueLoss: total(&s.Value) / 2,
		Entropy: total(&s.Entropy), ApproxKL: total(&s.KL), OldApproxKL: -total(&s.LogRatio),
		Clipped: total(&s.Clipped), RatioError: largest}
}
