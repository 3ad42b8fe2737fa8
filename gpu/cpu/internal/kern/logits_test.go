package kern

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// logits makes random logits, some of them of actions that a mask forbids.
func logits(r *rand.Rand, rows, actions, ld int) []float32 {
	x := random(r, actions*ld)
	for row := range rows {
		legal := r.IntN(actions)
		for a := range actions {
			x[a*ld+row] *= 3
			if a != legal && r.IntN(4) == 0 {
				x[a*ld+row] = Illegal
			}
		}
	}
	return x
}

// logSoftmax of one row, in float64.
func logSoftmax(x []float32, row, actions, ld int) []float64 {
	out := make([]float64, actions)
	largest, sum := math.Inf(-1), 0.0
	for a := range out {
		out[a] = float64(x[a*ld+row])
		largest = max(largest, out[a])
	}
	for a := range out {
		sum += math.Exp(out[a] - largest)
	}
	for a := range out {
		out[a] -= largest + math.Log(sum)
	}
	return out
}

func TestSampleInvertsTheDistributionFunctionAtPolicyUniform(t *testing.T) {
	eachSet(t, func(t *testing.T, s Set) {
		r := rng(t)
		for round := range 200 {
			rows, actions := 1+r.IntN(40), 1+r.IntN(20)
			ld := (rows+7)/8*8 + 8*r.IntN(2)
			x := logits(r, rows, actions, ld)
			before := append([]float32(nil), x...)
			a := Sample{Rows: rows, Actions: actions, Logits: x, LD: ld, Seed: r.Uint64(), Step: r.Uint64(),
				Env: r.Uint32(), Greedy: round%4 == 0, Action: make([]int32, rows+1), LogProb: make([]float32, rows+1),
				Scratch: make([]float32, actions*Lanes)}
			if round%3 == 0 {
				for range rows {
					a.Places = append(a.Places, r.Uint32N(1000))
				}
			}
			a.Action[rows], a.LogProb[rows] = 77, 77
			s.Sample(&a)
			for row := range rows {
				want := logSoftmax(before, row, actions, ld)
				u := float64(policy.Uniform(a.Seed, a.Env+place(a.Places, row), a.Step, 0))
				checkAction(t, &a, row, want, u)
			}
			if a.Action[rows] != 77 || a.LogProb[rows] != 77 {
				t.Fatalf("%d rows: wrote behind the last one", rows)
			}
		}
	})
}

func checkAction(t *testing.T, a *Sample, row int, logProbs []float64, u float64) {
	t.Helper()
	action := int(a.Action[row])
	if math.Abs(float64(a.LogProb[row])-logProbs[action]) > 3e-6 {
		t.Fatalf("log_prob of action %d = %v, want %v", action, a.LogProb[row], logProbs[action])
	}
	below, best := 0.0, math.Inf(-1)
	for i, l := range logProbs {
		best = max(best, l)
		if i < action {
			below += math.Exp(l)
		}
	}
	if a.Greedy {
		if logProbs[action] < best-1e-6 {
			t.Fatalf("greedy action %d of %v", action, logProbs)
		}
		return
	}
	if u < below-1e-5 || u > below+math.Exp(logProbs[action])+1e-5 {
		t.Fatalf("action %d of %v at %v", action, logProbs, u)
	}
}

func TestSampleStaysInRangeForLogitsThatAreNotNumbers(t *testing.T) {
	eachSet(t, func(t *testing.T, s Set) {
		strange := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, 0, Illegal}
		r := rng(t)
		for round := range 300 {
			a := Sample{Rows: 11, Actions: 1 + r.IntN(5), LD: 16, Greedy: round%2 == 0, Seed: r.Uint64(),
				Action: make([]int32, 11), LogProb: make([]float32, 11), Scratch: make([]float32, 5*Lanes)}
			for range a.Actions * a.LD {
				a.Logits = append(a.Logits, strange[r.IntN(len(strange))])
			}
			s.Sample(&a)
			for row, action := range a.Action {
				if action < 0 || int(action) >= a.Actions {
					t.Fatalf("row %d: action %d of %d", row, action, a.Actions)
				}
			}
		}
	})
}

// The reference of the loss is ppo.Loss, in float64.
func TestLossEqualsTheReference(t *testing.T) {
	eachSet(t, func(t *testing.T, s Set) {
		r := rng(t)
		for range 200 {
			rows, actions := 1+r.IntN(40), 1+r.IntN(12)
			checkLoss(t, s, r, rows, actions)
		}
	})
}

// nearAClip reports whether rounding decides on which side of a clip a row is: there float32 and float64 may differ,
// and with them the gradient by all of it.
func nearAClip(l *Loss, row int, logProb float64) bool {
	const rounding = 1e-5
	near := func(x, y float64) bool { return math.Abs(x-y) < rounding }
	ratio := math.Exp(logProb - float64(l.OldLogProb[row]))
	change := float64(l.Value[row]) - float64(l.OldValue[row])
	free := float64(l.Value[row]) - float64(l.Return[row])
	clipped := free - change + math.Copysign(float64(l.ValueClip), change)
	return near(ratio, float64(l.Low)) || near(ratio, float64(l.High)) || near(math.Abs(change), float64(l.ValueClip)) ||
		near(math.Abs(free), math.Abs(clipped))
}

func checkLoss(t *testing.T, s Set, r *rand.Rand, rows, actions int) {
	t.Helper()
	ld := (rows + 7) / 8 * 8
	c := ppo.Config{ValueCoef: 0.7, ValueClip: 0.3, KLCoef: 0.4}
	rates := ppo.Rates{Clip: 0.25, Entropy: 0.05}
	m := ppo.Minibatch{Rows: rows, LogProb: random(r, ld), Value: random(r, ld),
		Advantage: random(r, ld), Return: random(r, ld)}
	m.Actions = []ppo.Actions{{ActionSize: policy.ActionSize{Size: 1, Choices: actions}, Index: make([]int32, ld)}}
	taken := &m.Actions[0]
	l := Loss{Rows: rows, Actions: actions, Logits: logits(r, rows, actions, ld), LD: ld, Value: random(r, ld),
		Action: taken.Index, OldLogProb: m.LogProb, OldValue: m.Value, Advantage: m.Advantage, Return: m.Return,
		NewLogProb: make([]float32, ld), Scratch: make([]float32, actions*Lanes),
		Low: 0.75, High: 1.25, Clip: 0.25, Mean: 1 / float32(rows), Entropy: 0.05 / float32(rows),
		ValueCoef: 0.7 / float32(rows), ValueClip: 0.3,
		Penalty: 0.4 / float32(rows)}
	wide, value := make([]float64, rows*actions), make([]float64, rows)
	for row := range rows {
		logProbs := logSoftmax(l.Logits, row, actions, ld)
		for a := range actions {
			legal := byte(0)
			if l.Logits[a*ld+row] != Illegal {
				legal, taken.Index[row] = 1, int32(a)
			}
			taken.Mask = append(taken.Mask, legal)
			wide[row*actions+a] = float64(l.Logits[a*ld+row])
		}
		for again := true; again; again = nearAClip(&l, row, logProbs[taken.Index[row]]) {
			m.LogProb[row] = float32(logProbs[taken.Index[row]] + 0.2*r.NormFloat64())
			m.Value[row] = l.Value[row] + float32(0.4*r.NormFloat64())
		}
		value[row] = float64(l.Value[row])
	}
	for i := rows; i < ld; i++ { // what follows the rows must not matter
		l.Logits[i], l.Value[i], m.Advantage[i] = float32(math.NaN()), float32(math.NaN()), float32(math.Inf(1))
	}
	dLogits, dValue := make([]float64, len(wide)), make([]float64, rows)
	want := ppo.Loss([]head.Dist{&head.Categorical{N: actions}}, &m, &c, rates, [][]float64{wide}, value, [][]float64{dLogits}, dValue)
	s.Loss(&l)
	for row := range rows {
		for a := range actions {
			if got := float64(l.Logits[a*ld+row]); !(math.Abs(got-dLogits[row*actions+a]) <= 1e-5) {
				t.Fatalf("row %d of %d: gradient of logit %d = %v, want %v", row, rows, a, got, dLogits[row*actions+a])
			}
		}
		if got := float64(l.Value[row]); !(math.Abs(got-dValue[row]) <= 1e-5) {
			t.Fatalf("row %d of %d: gradient of value = %v, want %v", row, rows, got, dValue[row])
		}
	}
	total := func(lanes [Lanes]float32) (sum float64) {
		for _, x := range lanes {
			sum += float64(x)
		}
		return sum
	}
	for name, c := range map[string][2]float64{"surrogate": {total(l.Sums.Surrogate), -want.PolicyLoss},
		"value": {total(l.Sums.Value) / 2, want.ValueLoss}, "entropy": {total(l.Sums.Entropy), want.Entropy},
		"kl": {total(l.Sums.KL), want.ApproxKL}, "log ratio": {total(l.Sums.LogRatio), -want.OldApproxKL},
		"clipped": {total(l.Sums.Clipped), want.Clipped}} {
		if !(math.Abs(c[0]-c[1]) <= 1e-4*(1+math.Abs(c[1]))) {
			t.Fatalf("%d rows of %d actions: sum of %s = %v, want %v", rows, actions, name, c[0], c[1])
		}
	}
}

// Where the change of a value is the clip itself, either side is right: that of float32, and that of a clip that is not
// one of its numbers. The gradient is one of the two whole.
func TestLossAtTheClipOfTheValueTakesASideWhole(t *testing.T) {
	const clip, coef = 0.3, 0.7
	eachSet(t, func(t *testing.T, s Set) {
		r := rng(t)
		for range 200 {
			l := Loss{Rows: Lanes, Actions: 1, Logits: make([]float32, Lanes), LD: Lanes, Value: random(r, Lanes),
				Action: make([]int32, Lanes), OldLogProb: make([]float32, Lanes), OldValue: make([]float32, Lanes),
				Advantage: random(r, Lanes), Return: random(r, Lanes), NewLogProb: make([]float32, Lanes),
				Scratch: make([]float32, Lanes), Low: 0.75, High: 1.25, Clip: 0.25, ValueCoef: coef, ValueClip: clip}
			value := append([]float32(nil), l.Value...)
			for i, v := range value {
				l.OldValue[i] = v - float32(math.Copysign(clip, r.Float64()-0.5))
			}
			s.Loss(&l)
			for i, v := range value {
				miss := float64(v - l.Return[i])
				if got := float64(l.Value[i]); got != 0 && !(math.Abs(got-coef*miss) <= 1e-5) {
					t.Fatalf("value %v, was %v, return %v: gradient %v, want %v or 0", v, l.OldValue[i], l.Return[i], got, coef*miss)
				}
				if got := float64(l.Sums.Value[i]); !(math.Abs(got-miss*miss) <= 1e-5*(1+miss*miss)) {
					t.Fatalf("value %v, was %v, return %v: squared error %v, want %v", v, l.OldValue[i], l.Return[i], got, miss*miss)
				}
			}
		}
	})
}
