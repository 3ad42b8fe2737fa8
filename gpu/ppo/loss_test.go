package ppo

import (
	"math"
	"testing"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
)

// The expected numbers are PyTorch's for Adam(lr=0.1, betas=(0.9, 0.999), eps=1e-5) worked out by hand: with a
// constant gradient both bias-corrected moments are constant, so every step has the same length.
func TestAdamWithConstantGradientMovesByTheLearningRate(t *testing.T) {
	c := Defaults()
	params, m, v := []float64{1, -2}, make([]float64, 2), make([]float64, 2)
	grad := []float64{0.5, -4}
	for step := range uint64(5) {
		Adam(&c, 0.1, step+1, params, m, v, grad)
	}
	for i, want := range []float64{1 - 5*0.1*0.5/(0.5+1e-5), -2 + 5*0.1*4/(4+1e-5)} {
		if math.Abs(params[i]-want) > 1e-12 {
			t.Errorf("parameter %d = %v, want %v", i, params[i], want)
		}
	}
}

func TestGradScaleClipsTheGlobalNorm(t *testing.T) {
	for _, c := range []struct{ norm, max, want float64 }{
		{3, 0, 1}, {0.4, 0.5, 1}, {0.5, 0.5, 1}, {5, 0.5, 0.5 / 5.000001},
	} {
		if got := GradScale(c.norm, c.max); got != c.want {
			t.Errorf("GradScale(%v, %v) = %v, want %v", c.norm, c.max, got, c.want)
		}
	}
}

func TestNormalizeAdvantageUsesTheSampleDeviation(t *testing.T) {
	a := []float32{1, 2, 3, 6}
	NormalizeAdvantage(a) // mean 3, squared deviations 4+1+0+9 over 3
	deviation := math.Sqrt(14.0 / 3)
	for i, want := range []float64{-2 / deviation, -1 / deviation, 0, 3 / deviation} {
		if math.Abs(float64(a[i])-want) > 1e-6 {
			t.Errorf("advantage %d = %v, want %v", i, a[i], want)
		}
	}
	one := []float32{4}
	NormalizeAdvantage(one)
	if one[0] != 4 {
		t.Errorf("a single advantage became %v, want 4", one[0])
	}
	NormalizeAdvantage(nil)
}

// PPOLoss against a restatement of the loss without masks, clips or tricks, by central differences.
func TestPPOLossGradientEqualsFiniteDifferences(t *testing.T) {
	m := &Minibatch{Rows: 3, LogProb: []float32{-0.9, -1.4, -0.2},
		Value: []float32{0.1, 0.2, 0.3}, Advantage: []float32{1, -2, 0.5}, Return: []float32{0.5, -1, 2},
		Actions: []Actions{{ActionSize: policy.ActionSize{Size: 1, Choices: 3}, Index: []int32{0, 2, 1}, Mask: []byte{1, 1, 0, 1, 1, 1, 0, 1, 1}}}}
	c := Defaults()
	c.ValueClip = 0.5
	r := Rates{Clip: 0.2, Entropy: 0.1}
	logits := []float64{0.3, -0.2, 9, 0.1, 0.4, -0.3, 5, 0.2, 0.9}
	value := []float64{0.4, -0.2, 1.9}
	dLogits, dValue := make([]float64, 9), make([]float64, 3)
	dists, params := []head.Dist{&head.Categorical{N: 3}}, [][]float64{logits}
	Loss(dists, m, &c, r, params, value, [][]float64{dLogits}, dValue)
	loss := func() float64 {
		s := Loss(dists, m, &c, r, params, value, [][]float64{make([]float64, 9)}, make([]float64, 3))
		return (s.PolicyLoss + c.ValueCoef*s.ValueLoss - float64(r.Entropy)*s.Entropy) / 3
	}
	check := func(name string, x, gradient []float64) {
		for i := range x {
			const h = 1e-6
			at := x[i]
			x[i] = at + h
			above := loss()
			x[i] = at - h
			below := loss()
			x[i] = at
			if want := (above - below) / (2 * h); math.Abs(gradient[i]-want) > 1e-8 {
				t.Errorf("gradient of %s %d = %v, want %v", name, i, gradient[i], want)
			}
		}
	}
	check("logit", logits, dLogits)
	check("value", value, dValue)
}
