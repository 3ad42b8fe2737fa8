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
