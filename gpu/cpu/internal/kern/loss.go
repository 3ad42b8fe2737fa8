package kern

import "math"

// Loss describes the clipped-surrogate loss of a block of rows and its gradient. All slices have room for Rows
// rounded up to Lanes.
type Loss struct {
	Rows, Actions int
	Logits        []float32 // [Actions][LD]; replaced by the gradient
	LD            int
	Value         []float32 // replaced by the gradient
	Action        []int32   // in range
	OldLogProb    []float32
	OldValue      []float32
	Advantage     []float32
	Return        []float32
	NewLogProb    []float32 // written, by Surrogate read
	Scratch       []float32 // Actions*Lanes
	Entropies     []float32 // for Surrogate: of the rows; replaced by the ratios, at most High
	Slope         []float32 // written by Surrogate: over the log-probability, negative

	// The assembly reads these in this order.
	Low, High float32 // bounds of the ratio: 1-ε, 1+ε
	Clip      float32 // ε, above which |ratio-1| counts as clipped
	Mean      float32 // 1/N of the minibatch
	Entropy   float32 // coefficient times Mean
	ValueCoef float32 // coefficient times Mean
	ValueClip float32 // +Inf for none
	Penalty   float32 // of the divergence: coefficient times Mean

	Sums LossSums // added to
}

// LossSums are sums over rows, each in eight lanes: row r goes to lane r mod 8.
type LossSums struct {
	Surrogate [Lanes]float32 // min(ratio·A, clipped ratio·A)
	Value     [Lanes]float32 // squared error
	Entropy   [Lanes]float32
	KL        [Lanes]float32 // ratio - 1 - log ratio
	LogRatio  [Lanes]float32
	Clipped   [Lanes]float32
	Ratio     [Lanes]float32 // largest |ratio-1|
}

func (l *Loss) check() {
	rows := (l.Rows + Lanes - 1) / Lanes * Lanes
	if l.Rows < 0 || l.Actions < 1 || l.LD < rows {
		panic("kern: size of a loss")
	}
	if l.Rows > 0 {
		_, _, _, _ = l.Logits[l.Actions*l.LD-1], l.Value[rows-1], l.Action[rows-1], l.OldLogProb[rows-1]
		_, _, _, _ = l.OldValue[rows-1], l.Advantage[rows-1], l.Return[rows-1], l.NewLogProb[rows-1]
		_ = l.Scratch[l.Actions*Lanes-1]
	}
}

func (l *Loss) generic() {
	for r := range l.Rows {
		l.row(r)
	}
}

func (l *Loss) row(r int) {
	largest := l.Logits[r]
	for a := 1; a < l.Actions; a++ {
		largest = max(largest, l.Logits[a*l.LD+r])
	}
	var sum, entropy float32
	for a := range l.Actions {
		sum += exp(l.Logits[a*l.LD+r] - largest)
	}
	logSum := log(sum)
	for a := range l.Actions {
		logProb := l.Logits[a*l.LD+r] - largest - logSum
		l.Logits[a*l.LD+r] = logProb
		entropy -= exp(logProb) * logProb
	}
	action := int(l.Action[r])
	logProb := l.Logits[action*l.LD+r]
	slope := l.surrogate(r, logProb-l.OldLogProb[r], entropy)
	for a := range l.Actions {
		x := l.Logits[a*l.LD+r]
		d := (l.Entropy*(x+entropy) + slope) * exp(x)
		if a == action {
			d -= slope
		}
		l.Logits[a*l.LD+r] = d
	}
	l.NewLogProb[r] = logProb
	l.value(r)
}

// surrogate adds a row to the sums and returns the slope of its surrogate over the log-probability.
func (l *Loss) surrogate(r int, logRatio, entropy float32) (slope float32) {
	ratio := exp(logRatio)
	free := ratio * l.Advantage[r]
	clipped := min(max(ratio, l.Low), l.High) * l.Advantage[r]
	if free <= clipped {
		slope = free * l.Mean
	}
	slope -= l.Penalty * min(ratio-1, math.MaxFloat32)
	s, lane := &l.Sums, r%Lanes
	s.Surrogate[lane] += min(free, clipped)
	s.Entropy[lane] += entropy
	s.KL[lane] += ratio - 1 - logRatio
	s.LogRatio[lane] += logRatio
	deviation := max(ratio-1, 1-ratio)
	s.Ratio[lane] = max(s.Ratio[lane], deviation)
	if deviation > l.Clip {
		s.Clipped[lane]++
	}
	return slope
}

func (l *Loss) checkSurrogate() {
	rows := (l.Rows + Lanes - 1) / Lanes * Lanes
	if l.Rows > 0 {
		_, _, _, _ = l.Entropies[rows-1], l.Slope[rows-1], l.Value[rows-1], l.OldLogProb[rows-1]
		_, _, _, _ = l.OldValue[rows-1], l.Advantage[rows-1], l.Return[rows-1], l.NewLogProb[rows-1]
	}
}

func (l *Loss) value(r int) {
	v, old, ret := l.Value[r], l.OldValue[r], l.Return[r]
	free := v - ret
	square := free * free
	if change := v - old; change > l.ValueClip || -change > l.ValueClip {
		clipped := old + min(max(change, -l.ValueClip), l.ValueClip) - ret
		if bound := clipped * clipped; bound > square {
			l.Sums.Value[r%Lanes] += bound
			l.Value[r] = 0
			return
		}
	}
	l.Sums.Value[r%Lanes] += square
	l.Value[r] = free * l.ValueCoef
}
