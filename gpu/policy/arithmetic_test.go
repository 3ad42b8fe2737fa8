package policy

import (
	"math"
	"slices"
	"testing"
	"unsafe"
)

func TestInitIsOrthogonalTimesTheGain(t *testing.T) {
	n := MLP{Obs: 12, Actions: 3, Hidden: []int{40, 16}, Activation: Tanh, Heads: Heads{PolicyGain: 0.5}}.Network()
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
	mlp := MLP{Obs: 3, Actions: 2, Hidden: []int{5}, Activation: ReLU, NormalizeObs: true}
	n := mlp.Network()
	format := n.Weights()
	block := make([]byte, format.Bytes())
	w, err := format.Format(block, 77)
	if err != nil {
		t.Fatal(err)
	}
	copy(w.Params, Init(&n, 1))
	copy(w.ObsMean, []float32{1, 2, 3})
	got, err := format.Read(block)
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != 77 || !slices.Equal(got.Params, Init(&n, 1)) || got.ObsMean[2] != 3 || format.Check(&got) != nil {
		t.Errorf("weights came back as version %d, mean %v", got.Version, got.ObsMean)
	}
	for _, edit := range []func(*MLP){func(m *MLP) { m.Obs = 4 }, func(m *MLP) { m.Activation = Tanh }} {
		other := mlp
		edit(&other)
		n := other.Network()
		format := n.Weights()
		if _, err := format.Read(append(block, make([]byte, 64)...)); err == nil {
			t.Errorf("%v read the weights of %v", n.Lines(), mlp)
		}
	}
	clear(block[weightsHash:weightsHead])
	if _, err := format.Read(block); err != nil {
		t.Errorf("weights without a hash: %v", err)
	}
}

// Another process writes weights; whatever it writes is read or refused.
func FuzzReadWeights(f *testing.F) {
	n := MLP{Obs: 2, Actions: 2, Hidden: []int{3}, Activation: Tanh, NormalizeObs: true}.Network()
	format := n.Weights()
	good := make([]byte, format.Bytes())
	if _, err := format.Format(good, 5); err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:40])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, block []byte) {
		aligned := make([]float32, len(block)/4+1) // blocks are page aligned
		copy(bytesOf(aligned), block)
		w, err := format.Read(bytesOf(aligned)[:len(block)])
		if err == nil && format.Check(&w) != nil {
			t.Errorf("Read took what Check refuses: %v", format.Check(&w))
		}
	})
}

func bytesOf(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}
