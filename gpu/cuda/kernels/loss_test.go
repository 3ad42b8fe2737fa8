package kernels

import (
	"math"
	"slices"
	"testing"
)

// lossRow is the loss of one row in plain Go, with the operations of the kernel.
type lossRow struct {
	args *Loss
	sums [LossSums]float64
}

// element is a categorical element of a row.
type element struct {
	logProbs []float32
	entropy  float32
}

func newElement(logits []float32, mask []byte) (e element) {
	x := slices.Clone(logits)
	for a := range x {
		if mask != nil && mask[a] == 0 {
			x[a] = -1e30
		}
	}
	largest := slices.Max(x)
	sum := float32(0)
	for a := range x {
		x[a] -= largest
		sum += exp(x[a])
	}
	logSum := log(sum)
	for a := range x {
		x[a] -= logSum
		e.entropy = fma(-exp(x[a]), x[a], e.entropy)
	}
	e.logProbs = x
	return e
}

func (e *element) gradient(taken int, slope, coef float32) []float32 {
	d := make([]float32, len(e.logProbs))
	for a, x := range e.logProbs {
		d[a] = float32(float32(float32(x+e.entropy)*coef)+slope) * exp(x)
		if a == taken {
			d[a] -= slope
		}
	}
	return d
}

// normal is the log-probability and entropy of normal elements.
func normal(raw, mean, l []float32, squashed bool) (logProb, entropy float32) {
	for i := range raw {
		l := limited(l[i])
		z := (raw[i] - mean[i]) * exp(-l)
		logProb -= float32(float32(0.5*z)*z) + (l + 0.918938533204672742)
		entropy += l + 1.418938533204672742
		if squashed {
			soft := log(exp(float32(-2*float32(math.Abs(float64(raw[i])))))+1) + max(-2*raw[i], 0)
			slope := float32(0.693147180559945309-raw[i]) - soft
			logProb -= slope + slope
		}
	}
	if squashed {
		entropy = -logProb
	}
	return logProb, entropy
}

func (l *lossRow) surrogate(logProb, oldLogProb, advantage, entropy float32) (slope float32) {
	a := l.args
	logRatio := logProb - oldLogProb
	ratio := exp(logRatio)
	free, clipped := ratio*advantage, min(max(ratio, a.Low), a.High)*advantage
	if free <= clipped {
		slope = free * a.Mean
	}
	slope = fma(-min(ratio-1, math.MaxFloat32), a.Penalty, slope)
	deviation := max(ratio-1, 1-ratio)
	for i, x := range []float32{min(free, clipped), 0, entropy, ratio - 1 - logRatio, logRatio} {
		l.sums[i] = float64(x)
	}
	l.sums[5], l.sums[6] = 0, float64(deviation)
	if deviation > a.Clip {
		l.sums[5] = 1
	}
	return slope
}

func (l *lossRow) value(v, old, ret float32) (gradient float32) {
	free := v - ret
	square := free * free
	change := v - old
	clipped := min(max(change, -l.args.ValueClip), l.args.ValueClip) + old - ret
	if bound := clipped * clipped; float32(math.Abs(float64(change))) > l.args.ValueClip && bound > square {
		l.sums[1] = float64(bound)
		return 0
	}
	l.sums[1] = float64(square)
	return free * l.args.ValueCoef
}

// lossRig is a minibatch with four actions.
type lossRig struct {
	*rig
	rows, ld               int
	logits, means, squash  []float32 // [elements][ld]
	press                  []float32
	index, pressed         []int32
	raw, rawSquash         []float32
	mask                   []byte
	value, oldLogProb      []float32
	oldValue, adv, returns []float32
	args                   Loss
}

var lossCounts = []int{3, 2, 4}

// Some of the logarithms of deviations are beyond these bounds.
const lossLow, lossHigh = -0.6, 0.7

// lossEdges are the bounds of three elements' means, and their scales: one has no lower bound.
var lossEdges = [9]float32{-0.3, -math.MaxFloat32, -0.8, 0.4, 0, 0.9, 2, 1, 0.5}

// outside is what brings a mean within its edges.
func (l *lossRig) outside(mean, least, most, scale float32) float32 {
	beyond := float32(0)
	if mean < least {
		beyond = mean - least
	} else if mean > most {
		beyond = mean - most
	}
	return float32(float32(l.args.Bounds*scale)*scale) * beyond
}

func limited(l float32) float32 { return min(max(l, lossLow), lossHigh) }

func newLossRig(t *testing.T, rows int) *lossRig {
	r := newRig(t)
	ld := rows + 3
	l := &lossRig{rig: r, rows: rows, ld: ld, logits: r.floats(9 * ld), means: r.floats(6 * ld), squash: r.floats(2 * ld), press: r.floats(2 * ld),
		raw: r.floats(3 * ld), rawSquash: r.floats(ld), mask: r.masks(rows, lossCounts), value: r.floats(rows), oldLogProb: r.floats(rows),
		oldValue: r.floats(rows), adv: r.floats(rows), returns: r.floats(rows), index: make([]int32, 3*ld), pressed: make([]int32, 2*ld)}
	for row := range rows {
		at := 0
		for i, n := range lossCounts {
			for l.mask[row*9+at+int(l.index[i*ld+row])] == 0 {
				l.index[i*ld+row] = int32(r.random.IntN(n))
			}
			at += n
		}
		for i := range 2 {
			l.pressed[i*ld+row] = int32(r.random.IntN(2))
		}
		l.oldLogProb[row] -= 7
	}
	return l
}

// heads puts what distributions are made from; buffers are exactly as long as the last row needs.
func (l *lossRig) heads() Address {
	r, cut := l.rig, l.ld-l.rows
	return put(r,
		Head{Params: put(r, l.logits[:9*l.ld-cut]...), Index: put(r, l.index[:3*l.ld-cut]...), Counts: put[int32](r, 3, 2, 4), Mask: put(r, l.mask...), Elements: 3, Choices: 9},
		Head{Params: put(r, l.means[:6*l.ld-cut]...), Raw: put(r, l.raw[:3*l.ld-cut]...), Kind: Normal, Elements: 3, Edges: put(r, lossEdges[:]...), Low: lossLow, High: lossHigh},
		Head{Params: put(r, l.press[:2*l.ld-cut]...), Index: put(r, l.pressed[:2*l.ld-cut]...), Counts: put[int32](r, 2, 2), Kind: Pairs, Elements: 2, Choices: 4},
		Head{Params: put(r, l.squash[:2*l.ld-cut]...), Raw: put(r, l.rawSquash[:l.rows]...), Kind: TanhNormal, Elements: 1, Edges: put[float32](r, -0.5, 0.5, 1), Low: lossLow, High: lossHigh})
}

// column returns elements of a row.
func (l *lossRig) column(x []float32, row, first, count int) []float32 {
	var c []float32
	for i := first; i < first+count; i++ {
		c = append(c, x[i*l.ld+row])
	}
	return c
}

func (l *lossRig) put(x []float32, row, first int, values []float32) {
	for i, v := range values {
		x[(first+i)*l.ld+row] = v
	}
}

// row computes a row as the kernel does, in place.
func (l *lossRig) row(row int) (logProb float32, sums [LossSums]float64) {
	var elements []element
	entropy, at := float32(0), 0
	add := func(lp, h float32) { logProb, entropy = lp+logProb, h+entropy }
	for i, n := range lossCounts {
		e := newElement(l.column(l.logits, row, at, n), l.mask[row*9+at:][:n])
		add(e.logProbs[l.index[i*l.ld+row]], e.entropy)
		elements = append(elements, e)
		at += n
	}
	add(normal(l.column(l.raw, row, 0, 3), l.column(l.means, row, 0, 3), l.column(l.means, row, 3, 3), false))
	for i := range 2 {
		e := newElement([]float32{0, l.press[i*l.ld+row]}, nil)
		add(e.logProbs[l.pressed[i*l.ld+row]], e.entropy)
		elements = append(elements, e)
	}
	add(normal(l.column(l.rawSquash, row, 0, 1), l.column(l.squash, row, 0, 1), l.column(l.squash, row, 1, 1), true))
	c := &lossRow{args: &l.args}
	advantage := float32((float64(l.adv[row]) - 0.25) * 1.5)
	slope := c.surrogate(logProb, l.oldLogProb[row], advantage, entropy)
	l.value[row] = c.value(l.value[row], l.oldValue[row], l.returns[row])
	at = 0
	for i, n := range lossCounts {
		l.put(l.logits, row, at, elements[i].gradient(int(l.index[i*l.ld+row]), slope, l.args.Entropy))
		at += n
	}
	for i := range 2 {
		l.press[i*l.ld+row] = elements[3+i].gradient(int(l.pressed[i*l.ld+row]), slope, l.args.Entropy)[1]
	}
	l.descend(l.means, l.raw, row, 3, slope, -1)
	l.descend(l.squash, l.rawSquash, row, 1, slope, min(exp(logProb-l.oldLogProb[row]), l.args.High))
	return logProb, c.sums
}

// descend replaces the parameters of normal elements by their gradient; the weight is that of an estimated entropy, else negative.
func (l *lossRig) descend(params, raw []float32, row, n int, slope, weight float32) {
	for i := range n {
		mean, deviation := &params[i*l.ld+row], &params[(n+i)*l.ld+row]
		apart, inverse := raw[i*l.ld+row]-*mean, exp(-limited(*deviation))
		z := apart * inverse
		coef, dMean, dLog := l.args.Entropy, -(float32(slope*z) * inverse), float32(slope*(1-float32(z*z)))
		if weight >= 0 {
			coef *= weight
			bend := float32(tanh(raw[i*l.ld+row]) * coef)
			bend += bend
			dMean += bend
			dLog += float32(bend * apart)
		}
		if l.args.Bounds > 0 && n == 3 {
			dMean += float32(l.outside(*mean, lossEdges[i], lossEdges[3+i], lossEdges[6+i]))
		} else if l.args.Bounds > 0 {
			dMean += float32(l.outside(*mean, -0.5, 0.5, 1))
		}
		if *mean = dMean; limited(*deviation) != *deviation {
			*deviation = 0
			continue
		}
		*deviation = dLog - coef
	}
}

func TestLoss_IsThatOfEachRow(t *testing.T) {
	for _, rows := range []int{1, 300} {
		l := newLossRig(t, rows)
		heads := l.heads()
		blocks := Blocks(rows).X
		l.args = Loss{Heads: heads, Value: put(l.rig, l.value...), OldLogProb: put(l.rig, l.oldLogProb...), OldValue: put(l.rig, l.oldValue...),
			Advantage: put(l.rig, l.adv...), Target: put(l.rig, l.returns...), Moments: put(l.rig, 0.25, 1.5),
			LogProb: room[float32](l.rig, rows), Sums: room[float64](l.rig, blocks*LossSums), Count: 4, Rows: int32(rows), LD: int32(l.ld), Descend: 1,
			Low: 0.8, High: 1.2, Clip: 0.2, Mean: float32(1 / float64(rows)), Entropy: 0.01, ValueCoef: 0.5, ValueClip: 0.5, Penalty: 0.02, Bounds: 0.07}
		run(l.rig, LossKernel, Blocks(rows), l.args)
		logProbs, total := make([]float32, rows), make([]float64, LossSums)
		for row := range rows {
			var sums [LossSums]float64
			logProbs[row], sums = l.row(row)
			for i, x := range sums {
				if i == LossSums-1 {
					total[i] = max(total[i], x)
				} else {
					total[i] += x
				}
			}
		}
		same(t, "log-probabilities", get[float32](l.rig, l.args.LogProb, rows), logProbs)
		same(t, "gradients of values", get[float32](l.rig, l.args.Value, rows), l.value)
		for i, want := range [][]float32{l.logits, l.means, l.press, l.squash} {
			h := get[Head](l.rig, heads, 4)[i]
			want = want[:len(want)-(l.ld-rows)]
			same(t, "gradients of an action", get[float32](l.rig, h.Params, len(want)), want)
		}
		got := make([]float64, LossSums)
		for i, x := range get[float64](l.rig, l.args.Sums, blocks*LossSums) {
			if i %= LossSums; i == LossSums-1 {
				got[i] = max(got[i], x)
			} else {
				got[i] += x
			}
		}
		for i := range got {
			if math.Abs(got[i]-total[i]) > 1e-12*(1+math.Abs(total[i])) {
				t.Errorf("sum %d is %v, want %v", i, got[i], total[i])
			}
		}
		runShort(l.rig, LossKernel, Blocks(rows), l.args, heads)
	}
}

// V-trace asks for log-probabilities alone: nothing else is touched, and no column of a minibatch is read.
func TestLoss_WithoutDescentWritesLogProbabilities(t *testing.T) {
	l := newLossRig(t, 5)
	heads := l.heads()
	args := Loss{Heads: heads, LogProb: room[float32](l.rig, 5), Count: 4, Rows: 5, LD: int32(l.ld)}
	run(l.rig, LossKernel, Blocks(5), args)
	h := get[Head](l.rig, heads, 4)[1]
	same(t, "parameters", get[float32](l.rig, h.Params, 10), l.means[:10])
	want := make([]float32, 5)
	for row := range want {
		want[row], _ = l.row(row)
	}
	same(t, "log-probabilities", get[float32](l.rig, args.LogProb, 5), want)
}
