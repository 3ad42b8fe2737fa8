package policytest

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
)

// acted returns the columns that acting wrote, as bytes.
func acted(d *policy.Dataset) []byte {
	var all []byte
	for _, b := range d.Blocks {
		for _, c := range []trajectory.Column{trajectory.Action, trajectory.LogProb, trajectory.Value} {
			all = append(all, b.Bytes(c)...)
		}
	}
	return all
}

// rowsAreIndependent: no bit of a row depends on the batch it was in, its place there, or strides.
func (s *suite) rowsAreIndependent(t *testing.T) {
	params := s.params(1)
	d := s.dataset(t, 1)
	Act(t, s.actor(t, params, d), d, s.shape.envs)
	want := acted(d)
	for _, rows := range []int{1, 2, 3, 5, 8} {
		d := s.dataset(t, 1)
		Act(t, s.actor(t, params, d), d, rows)
		if !bytes.Equal(acted(d), want) {
			t.Errorf("%d rows a request act differently from %d", rows, s.shape.envs)
		}
	}
	other := *s
	other.shape.soa = !s.shape.soa
	d = other.dataset(t, 1)
	Act(t, s.actor(t, params, d), d, s.shape.envs)
	if !bytes.Equal(acted(d), want) {
		t.Error("observations as [elem][env] act differently from [env][elem]")
	}
}

// largeBatches: the same, for batches of more rows than any backend takes at once.
func (s *suite) largeBatches(t *testing.T) {
	large := *s
	large.shape.envs, large.shape.steps = 531, 1
	d := large.dataset(t, 1)
	a := large.actor(t, s.params(1), d)
	Act(t, a, d, 531)
	want := acted(d)
	Act(t, a, d, 97)
	if !bytes.Equal(acted(d), want) {
		t.Error("531 rows in one request act differently from 97 a request")
	}
}

// greedy takes the first of the most probable actions, and the log-probability of sampling it.
func (s *suite) greedy(t *testing.T) {
	d := s.dataset(t, 1)
	params := s.params(1)
	a := s.actor(t, params, d)
	requests := Requests(d, d.Blocks[0], 0, s.shape.envs)
	requests[0].Greedy = true
	if err := a.Act(requests); err != nil {
		t.Fatal(err)
	}
	all, _ := s.reference(d, params)
	for i, action := range requests[0].Action[0].Int32() {
		logProbs := all[i]
		if !(logProbs[action] >= slices.Max(logProbs)-s.tol.Output) {
			t.Errorf("row %d: action %d of %v", i, action, logProbs)
		}
		if got := float64(requests[0].LogProb[i]); !(math.Abs(got-logProbs[action]) <= s.tol.Output) {
			t.Errorf("row %d: log_prob %v, want %v", i, got, logProbs[action])
		}
	}
	clear(params) // every legal action is as probable
	requests[0].Mask = nil
	if err := s.actor(t, params, d).Act(requests); err != nil {
		t.Fatal(err)
	}
	for i, action := range requests[0].Action[0].Int32() {
		if action != 0 {
			t.Fatalf("row %d: action %d of equals, want the first", i, action)
		}
	}
}

// rowMask returns the mask of a row of a dataset of one block, nil without a mask.
func rowMask(d *policy.Dataset, row int) []byte {
	if !d.HasMask() {
		return nil
	}
	b := d.Blocks[0]
	l, _ := b.Schema.Layout(trajectory.Mask)
	mask := make([]byte, l.Elems)
	for a := range mask {
		mask[a] = b.Bytes(trajectory.Mask)[row/l.Envs*l.StrideT+row%l.Envs*l.StrideEnv+a*l.StrideElem]
	}
	return mask
}

// valueOnly: a request without actions writes values and nothing else, the same bits as with actions.
func (s *suite) valueOnly(t *testing.T) {
	d := s.dataset(t, 1)
	a := s.actor(t, s.params(1), d)
	requests := Requests(d, d.Blocks[0], 0, s.shape.envs)
	if err := a.Act(requests); err != nil {
		t.Fatal(err)
	}
	want := append([]float32(nil), requests[0].Value...)
	clear(requests[0].Value)
	requests[0].Action, requests[0].LogProb = nil, nil
	if err := a.Act(requests); err != nil {
		t.Fatal(err)
	}
	for i, got := range requests[0].Value {
		if got != want[i] {
			t.Fatalf("value of row %d = %v without actions, %v with", i, got, want[i])
		}
	}
}

// noLegalAction is an error that names request and row; so are weights of another network and missing ones.
func (s *suite) noLegalAction(t *testing.T) {
	masked := *s
	masked.shape.masked = true
	d := masked.dataset(t, 1)
	a := masked.actor(t, s.params(1), d)
	requests := Requests(d, d.Blocks[0], 0, 5)
	for action := range s.shape.net.Actions() {
		m := requests[1].Mask[0]
		m.Data[3*m.StrideRow+action*m.StrideElem] = 0
	}
	err := a.Act(requests)
	var row *policy.RowError
	if !errors.Is(err, policy.ErrNoLegalAction) || !errors.As(err, &row) {
		t.Fatalf("Act with an empty mask = %v, want ErrNoLegalAction", err)
	}
	if row.Request != 1 || row.Row != 3 {
		t.Errorf("Act with an empty mask names request %d, row %d; want 1, 3", row.Request, row.Row)
	}
	requests[1].Value = nil
	if err := a.Act(requests); err == nil {
		t.Error("Act took a request without room for values")
	}
	fresh, err := policy.NewActor(s, &s.shape.net, 8)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	if err := fresh.Act(requests); !errors.Is(err, policy.ErrNoWeights) {
		t.Errorf("Act before Load = %v, want ErrNoWeights", err)
	}
	if err := fresh.Load(policy.Weights{Params: make([]float32, 3)}); err == nil {
		t.Error("Load took weights of another network")
	}
}

// strangeNumbers: no numbers in observations or parameters lead to an action that does not exist or is not legal.
func (s *suite) strangeNumbers(t *testing.T) {
	d, params := s.dataset(t, 1), s.params(1)
	obs := d.Blocks[0].Float32(trajectory.Obs)
	for i := range obs {
		switch i % 5 {
		case 0:
			obs[i] = float32(math.NaN())
		case 1:
			obs[i] = float32(math.Inf(i%2*2 - 1))
		case 2:
			obs[i] = math.MaxFloat32
		}
	}
	s.actsLegally(t, params, d)
	d = s.dataset(t, 1)
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32} {
		strange := slices.Clone(params)
		for i := range strange {
			strange[i] *= bad
		}
		s.actsLegally(t, strange, d)
	}
}

func (s *suite) actsLegally(t *testing.T, params []float32, d *policy.Dataset) {
	t.Helper()
	a := s.actor(t, params, d)
	for _, greedy := range []bool{false, true} {
		requests := Requests(d, d.Blocks[0], 0, s.shape.envs)
		requests[0].Greedy = greedy
		if err := a.Act(requests); err != nil {
			t.Fatal(err)
		}
		for i, action := range requests[0].Action[0].Int32() {
			if action < 0 || int(action) >= s.shape.net.Actions() {
				t.Fatalf("row %d: action %d", i, action)
			}
			if mask := rowMask(d, i); mask != nil && mask[action] == 0 {
				t.Fatalf("row %d: action %d is not legal", i, action)
			}
		}
	}
}
