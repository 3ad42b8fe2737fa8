package policy

import (
	"math"
	"slices"
	"testing"
	"unsafe"
)

func TestInitIsOrthogonalTimesTheGain(t *testing.T) {
	n := Network{Obs: 12, Actions: 3, Hidden: []int{40, 16}, Activation: Tanh, PolicyGain: 0.5}
	params := Init(&n, 9)
	gains := map[string]float64{"actor.0.weight": math.Sqrt2, "actor.1.weight": math.Sqrt2, "actor.head.weight": 0.5,
		"critic.0.weight": math.Sqrt2, "critic.1.weight": math.Sqrt2, "critic.head.weight": 1}
	for _, p := range n.Params() {
		w := params[p.Offset : p.Offset+p.Rows*p.Cols]
		gain, ok := gains[p.Name]
		if !ok {
			if slices.ContainsFunc(w, func(x float32) bool { return x != 0 }) {
				t.Errorf("%s is not zero", p.Name)
			}
			continue
		}
		checkOrthogonal(t, p, w, gain)
	}
	if !slices.Equal(params, Init(&n, 9)) || slices.Equal(params, Init(&n, 10)) {
		t.Error("Init is not a function of the seed")
	}
}

// checkOrthogonal compares the products of all pairs along the shorter side with gain² times the identity.
func checkOrthogonal(t *testing.T, p Param, w []float32, gain float64) {
	t.Helper()
	short, long, at := p.Cols, p.Rows, func(i, k int) float64 { return float64(w[k*p.Cols+i]) }
	if p.Rows < p.Cols {
		short, long, at = p.Rows, p.Cols, func(i, k int) float64 { return float64(w[i*p.Cols+k]) }
	}
	for i := range short {
		for j := range short {
			sum, want := 0.0, 0.0
			for k := range long {
				sum += at(i, k) * at(j, k)
			}
			if i == j {
				want = gain * gain
			}
			if math.Abs(sum-want) > 1e-5 {
				t.Fatalf("%s: product of vectors %d and %d = %v, want %v", p.Name, i, j, sum, want)
			}
		}
	}
}

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
	m := &Minibatch{Rows: 3, Action: []int32{0, 2, 1}, LogProb: []float32{-0.9, -1.4, -0.2},
		Value: []float32{0.1, 0.2, 0.3}, Advantage: []float32{1, -2, 0.5}, Return: []float32{0.5, -1, 2},
		Mask: []byte{1, 1, 0, 1, 1, 1, 0, 1, 1}}
	c := Defaults()
	c.ValueClip = 0.5
	r := Rates{Clip: 0.2, Entropy: 0.1}
	logits := []float64{0.3, -0.2, 9, 0.1, 0.4, -0.3, 5, 0.2, 0.9}
	value := []float64{0.4, -0.2, 1.9}
	dLogits, dValue := make([]float64, 9), make([]float64, 3)
	PPOLoss(m, &c, r, logits, value, dLogits, dValue)
	loss := func() float64 {
		s := PPOLoss(m, &c, r, logits, value, make([]float64, 9), make([]float64, 3))
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

func TestWeightsRoundTripThroughABlock(t *testing.T) {
	n := Network{Obs: 3, Actions: 2, Hidden: []int{5}, Activation: ReLU, NormalizeObs: true}
	block := make([]byte, WeightsBytes(&n))
	w, err := FormatWeights(&n, block, 77)
	if err != nil {
		t.Fatal(err)
	}
	copy(w.Params, Init(&n, 1))
	copy(w.ObsMean, []float32{1, 2, 3})
	got, err := ReadWeights(&n, block)
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != 77 || !slices.Equal(got.Params, Init(&n, 1)) || got.ObsMean[2] != 3 || got.Check(&n) != nil {
		t.Errorf("weights came back as version %d, mean %v", got.Version, got.ObsMean)
	}
	n.Obs = 4
	if _, err := ReadWeights(&n, make([]byte, WeightsBytes(&n))); err == nil {
		t.Error("ReadWeights took weights of another network")
	}
}

// Another process writes weights; whatever it writes is read or refused.
func FuzzReadWeights(f *testing.F) {
	n := Network{Obs: 2, Actions: 2, Hidden: []int{3}, Activation: Tanh, NormalizeObs: true}
	good := make([]byte, WeightsBytes(&n))
	if _, err := FormatWeights(&n, good, 5); err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:40])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, block []byte) {
		aligned := make([]float32, len(block)/4+1) // blocks are page aligned
		copy(bytesOf(aligned), block)
		w, err := ReadWeights(&n, bytesOf(aligned)[:len(block)])
		if err == nil && w.Check(&n) != nil {
			t.Errorf("ReadWeights took what Check refuses: %v", w.Check(&n))
		}
	})
}

func bytesOf(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}
