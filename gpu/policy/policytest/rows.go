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
		for step := range d.Steps() {
			for _, m := range append(b.Rows(nil, trajectory.Action, step), b.RawActions(nil, step)...) {
				for e := range m.Rows * m.Elems { // whatever the strides are
					all = append(all, m.Data[e/m.Elems*m.StrideRow+e%m.Elems*m.StrideElem:][:4]...)
				}
			}
		}
		for _, c := range []trajectory.Column{trajectory.LogProb, trajectory.Value} {
			all = append(all, b.Bytes(c)...)
		}
	}
	return all
}

// rowsAreIndependent: no bit of a row depends on the batch it was in, its place there, or strides.
func (s *suite) rowsAreIndependent(t *testing.T) {
	params := s.params(1)
	d := s.dataset(t, 1)
	Act(t, &s.shape.net, s.actor(t, params, d), d, s.shape.envs)
	want := acted(d)
	for _, rows := range []int{1, 2, 3, 5, 8} {
		d := s.dataset(t, 1)
		Act(t, &s.shape.net, s.actor(t, params, d), d, rows)
		if !bytes.Equal(acted(d), want) {
			t.Errorf("%d rows a request act differently from %d", rows, s.shape.envs)
		}
	}
	d = s.dataset(t, 1)
	s.actPicked(t, s.actor(t, params, d), d)
	if !bytes.Equal(acted(d), want) {
		t.Error("picked rows act differently from whole requests")
	}
	other := *s
	other.shape.soa = !s.shape.soa
	d = other.dataset(t, 1)
	Act(t, &s.shape.net, s.actor(t, params, d), d, s.shape.envs)
	if !bytes.Equal(acted(d), want) {
		t.Error("observations as [elem][env] act differently from [env][elem]")
	}
}

// actPicked acts on every row of a dataset as three policies would with the same weights, every third row each.
func (s *suite) actPicked(t *testing.T, a policy.Actor, d *policy.Dataset) {
	var picked policy.Picked
	for _, b := range d.Blocks {
		for step := range d.Steps() + 1 {
			r := &Requests(&s.shape.net, d, b, step, s.shape.envs)[0]
			var parts []policy.Request
			for first := range 3 {
				var rows []uint32
				for row := first; row < r.Len(); row += 3 {
					rows = append(rows, uint32(row))
				}
				parts = append(parts, picked.Pick(r, rows))
			}
			if half := parts[0].Len() / 2; half > 0 { // picked rows are cut like others
				rest := parts[0].Slice(half, parts[0].Len(), new(policy.Views))
				parts[0] = parts[0].Slice(0, half, new(policy.Views))
				parts = append(parts, rest)
			}
			if err := a.Act(parts); err != nil {
				t.Fatal(err)
			}
			picked.Return()
		}
	}
}

// largeBatches: the same, for batches of more rows than any backend takes at once.
func (s *suite) largeBatches(t *testing.T) {
	large := *s
	large.shape.envs, large.shape.steps = 531, 1
	d := large.dataset(t, 1)
	a := large.actor(t, s.params(1), d)
	Act(t, &s.shape.net, a, d, 531)
	want := acted(d)
	Act(t, &s.shape.net, a, d, 97)
	if !bytes.Equal(acted(d), want) {
		t.Error("531 rows in one request act differently from 97 a request")
	}
}

// greedy takes the first of the most probable actions, and the log-probability of sampling it.
func (s *suite) greedy(t *testing.T) {
	d := s.dataset(t, 1)
	params := s.params(1)
	a := s.actor(t, params, d)
	requests := Requests(&s.shape.net, d, d.Blocks[0], 0, s.shape.envs)
	requests[0].Greedy = true
	if err := a.Act(requests); err != nil {
		t.Fatal(err)
	}
	heads, _ := NewReference(s.shape.net, params, s.config()).forward(d)
	for row := range s.shape.envs {
		want := 0.0
		for k, of := range s.shape.net.Dists() {
			p, mask := heads[k][row*of.Elems():(row+1)*of.Elems()], rowMask(d, k, row)
			action := s.action(&requests[0], k, row)
			logProb, _ := of.LogProb(p, mask, action)
			want += logProb
			if of.Continuous() {
				for i, x := range action {
					if math.Abs(x-p[i]) > s.tol.Output*(1+math.Abs(x)) {
						t.Errorf("row %d: element %d is %v, the mean %v", row, i, x, p[i])
					}
				}
				continue
			}
			for i, logProbs := range elements(&s.shape.net.Policy[k], p, mask) {
				if !(logProbs[int(action[i])] >= slices.Max(logProbs)-s.tol.Output) {
					t.Errorf("row %d: element %d is %v of %v", row, i, action[i], logProbs)
				}
			}
		}
		if got := float64(requests[0].LogProb[row]); !(math.Abs(got-want) <= s.tol.Output*(1+math.Abs(want))) {
			t.Errorf("row %d: log_prob %v, want %v", row, got, want)
		}
	}
	clear(params) // every legal choice is as probable
	requests[0].Mask = nil
	if err := s.actor(t, params, d).Act(requests); err != nil {
		t.Fatal(err)
	}
	for row := range s.shape.envs {
		for k := range s.shape.net.Policy {
			if a := s.action(&requests[0], k, row); slices.Max(a) != 0 || slices.Min(a) != 0 {
				t.Fatalf("row %d: action %v of equals, want the first", row, a)
			}
		}
	}
}

// action returns an action of a row of an answered request, as head.Dist takes it.
func (s *suite) action(r *policy.Request, k, row int) (action []float64) {
	size, m := s.shape.net.Sizes().Actions[k], r.Action[k]
	if size.Continuous {
		m = r.Raw[k]
	}
	for i := range size.Size {
		at := (row*m.StrideRow + i*m.StrideElem) / 4
		if size.Continuous {
			action = append(action, float64(m.Float32()[at]))
		} else {
			action = append(action, float64(m.Int32()[at]-s.shape.net.Policy[k].Start))
		}
	}
	return action
}

// rowMask returns the mask of an action in a row of a dataset of one block, nil without a mask.
func rowMask(d *policy.Dataset, action, row int) []byte {
	b := d.Blocks[0]
	l := b.Schema.MaskOf(action)
	if l == nil {
		return nil
	}
	mask := make([]byte, l.Elems)
	for a := range mask {
		mask[a] = b.Bytes(l.Column)[row/l.Envs*l.StrideT+row%l.Envs*l.StrideEnv+a*l.StrideElem]
	}
	return mask
}

// valueOnly: a request without actions writes values and nothing else, the same bits as with actions.
func (s *suite) valueOnly(t *testing.T) {
	d := s.dataset(t, 1)
	a := s.actor(t, s.params(1), d)
	requests := Requests(&s.shape.net, d, d.Blocks[0], 0, s.shape.envs)
	if err := a.Act(requests); err != nil {
		t.Fatal(err)
	}
	want := append([]float32(nil), requests[0].Value...)
	clear(requests[0].Value)
	requests[0].Action, requests[0].Raw, requests[0].LogProb = nil, nil, nil
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
	requests := Requests(&s.shape.net, d, d.Blocks[0], 0, 5)
	for k := range requests[1].Mask {
		m := requests[1].Mask[k]
		if m.Rows == 0 {
			continue
		}
		counts := s.shape.net.Policy[k].Counts()
		for c := m.Elems - counts[len(counts)-1]; c < m.Elems; c++ { // of the last element
			m.Data[3*m.StrideRow+c*m.StrideElem] = 0
		}
		err := a.Act(requests)
		var row *policy.RowError
		if !errors.Is(err, policy.ErrNoLegalAction) || !errors.As(err, &row) {
			t.Fatalf("Act with an empty mask = %v, want ErrNoLegalAction", err)
		}
		if row.Request != 1 || row.Row != 3 {
			t.Errorf("Act with an empty mask names request %d, row %d; want 1, 3", row.Request, row.Row)
		}
		break
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
		requests := Requests(&s.shape.net, d, d.Blocks[0], 0, s.shape.envs)
		requests[0].Greedy = greedy
		if err := a.Act(requests); err != nil {
			t.Fatal(err)
		}
		for k := range s.shape.net.Policy {
			for row := range s.shape.envs {
				s.legal(t, d, &requests[0], k, row)
			}
		}
	}
}

// legal fails unless the environment can take an action.
func (s *suite) legal(t *testing.T, d *policy.Dataset, r *policy.Request, k, row int) {
	t.Helper()
	if b := s.shape.net.Policy[k].Bounds; b != nil {
		m := r.Action[k]
		for i := range m.Elems {
			if x := m.Float32()[(row*m.StrideRow+i*m.StrideElem)/4]; !(x >= b.Low[i] && x <= b.High[i]) {
				t.Fatalf("row %d: element %d is %v, its bounds are %v..%v", row, i, x, b.Low[i], b.High[i])
			}
		}
		return
	}
	at, mask, action := 0, rowMask(d, k, row), s.action(r, k, row)
	for i, n := range s.shape.net.Policy[k].Counts() {
		if a := int(action[i]); a < 0 || a >= n || mask != nil && mask[at+a] == 0 {
			t.Fatalf("row %d: element %d is %d, which is not legal", row, i, a)
		}
		at += n
	}
}
