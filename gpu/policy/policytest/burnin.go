package policytest

import (
	"math"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// burnsIn: rows of burn-in leave the states that the current parameters make of them, and nothing else of them is learned.
func (s *suite) burnsIn(t *testing.T) {
	chunk := s.shape.net.Chunk
	c := s.config()
	c.BurnInRows = max(chunk, 1)
	if _, err := ppo.NewLearner(s, &s.shape.net, s.params(1), c); err == nil || !strings.Contains(err.Error(), "burn_in_rows") {
		t.Errorf("burn-in of whole chunks of %d: %v, want an error that names the key", chunk, err)
	}
	for rows := 1; rows < chunk; rows++ {
		s.warmsAsActed(t, rows)
		for _, vtrace := range []bool{false, true} {
			c.BurnInRows, c.VTrace = rows, vtrace
			s.warmsAsReferred(t, c)
		}
	}
	if chunk > 1 {
		s.burnsInAsOthersStore(t)
	}
}

// storing returns the suite with blocks that keep the state of every row, acted on by the parameters that are returned.
func (s *suite) storing(t *testing.T, steps int) (d *policy.Dataset, params []float32) {
	t.Helper()
	o := s.shape.options(2)
	o.Network = o.Network.Clone()
	o.Network.Chunk, o.Steps = 1, steps
	params = s.params(1)
	return Acted(t, s, params, o), params
}

// warmsAsActed: with the parameters that acted, the states after burn-in are the stored ones bit for bit.
func (s *suite) warmsAsActed(t *testing.T, rows int) {
	t.Helper()
	d, params := s.storing(t, s.shape.steps)
	c := s.config()
	c.BurnInRows = rows
	_, stats := s.update(t, params, c, d, 1)
	if stats.FirstRatioError != 0 {
		t.Errorf("%d rows of burn-in: the first ratios are off by %g, want exactly 0", rows, stats.FirstRatioError)
	}
	elems, compared := s.shape.net.State(), 0
	for k := range d.Chunks(&s.shape.net) {
		e, at := k%d.Envs(), k/d.Envs()*s.shape.net.Chunk+rows
		b, env := &d.Blocks[e/d.BlockEnvs()], e%d.BlockEnvs()
		if b.Ages(at)[env] == 0 {
			continue // it begins from zero
		}
		stored := b.Row(trajectory.CoreState, b.Schema.StateRow(at))
		for i, got := range d.Warm[k*elems : (k+1)*elems] {
			if want := stored.Float32()[env*stored.StrideRow/4+i]; math.Float32bits(got) != math.Float32bits(want) {
				t.Fatalf("%d rows of burn-in: element %d of the state before t = %d of environment %d is %v, stored is %v", rows, i, at, e, got, want)
			}
			compared++
		}
	}
	if compared == 0 {
		t.Fatal("no episode runs on behind burn-in")
	}
}

// warmsAsReferred: with other parameters than acted, states after burn-in and what is learned behind it equal the reference's.
func (s *suite) warmsAsReferred(t *testing.T, c ppo.Config) {
	t.Helper()
	d, params := s.stale(t)
	n := &s.shape.net
	l, r := s.learner(t, params, c), NewReference(*n, params, c)
	if err := r.Warm(d, c.BurnInRows); err != nil {
		t.Fatal(err)
	}
	want := d.Warm
	got, err := l.Update(d, rates)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range d.Warm {
		if !(math.Abs(float64(x-want[i])) <= s.tol.Output) {
			t.Fatalf("%d rows of burn-in: element %d of the states is %v, want %v", c.BurnInRows, i, x, want[i])
		}
	}
	told, err := r.Update(d, rates) // from the states that the backend has left
	if err != nil {
		t.Fatal(err)
	}
	s.compareStats(t, &got, &told)
	s.compareParams(t, stateOf(t, l).Params, r.Graph.Params)
	valid, learned := 0.0, 0.0
	for i := range d.Blocks {
		for row, ok := range d.Valid(i) {
			if ok != 0 {
				valid++
				if row/d.BlockEnvs()%n.Chunk >= c.BurnInRows {
					learned++
				}
			}
		}
	}
	if got.Rows != valid || got.ValidRows != learned {
		t.Errorf("%d rows of burn-in: %v rows, %v of them learned from, want %v and %v", c.BurnInRows, got.Rows, got.ValidRows, valid, learned)
	}
}

// Warm leaves the states after so many rows of burn-in of each chunk in a dataset, as the graph makes them.
func (r *Reference) Warm(d *policy.Dataset, rows int) error {
	n := &r.Graph.Network
	d.BurnInRows, d.Warm = 0, nil
	if err := d.Check(n); err != nil || rows == 0 {
		return err
	}
	order := d.Chunked(n, nil)
	obs := make([]float32, len(order)*n.Obs())
	d.GatherObs(n, order, obs)
	r.follow(d, order)
	r.Graph.Forward(obs, len(order))
	elems := n.State()
	warm := make([]float32, d.Chunks(n)*elems)
	d.Stored(n, warm)
	for i, row := range order { // in order of time within a chunk
		if int(row)/d.Envs()%n.Chunk < rows {
			copy(warm[int(d.ChunkOf(n, row))*elems:], r.Graph.StateOut[i*elems:(i+1)*elems])
		}
	}
	d.BurnInRows, d.Warm = rows, warm
	return nil
}

// burnsInAsOthersStore: with the parameters that acted, a chunk of two rows of which the first is burn-in is learned from like the second
// row alone, in blocks that keep its state.
func (s *suite) burnsInAsOthersStore(t *testing.T) {
	t.Helper()
	d, params := s.storing(t, 8)
	c := s.config()
	c.Gamma = 0 // a row's targets do not depend on which rows are there
	x, alone := *s, *s
	x.shape.net, alone.shape.net = s.shape.net.Clone(), s.shape.net.Clone()
	x.shape.net.Chunk, alone.shape.net.Chunk, c.BurnInRows = 2, 1, 1
	got, stats := x.update(t, params, c, d, 1)
	c.BurnInRows = 0
	for _, b := range d.Blocks {
		for i := range b.Bytes(trajectory.Valid) {
			if i/d.BlockEnvs()%2 == 0 {
				b.Bytes(trajectory.Valid)[i] = 0
			}
		}
	}
	want, told := alone.update(t, params, c, d, 1)
	s.compareStats(t, &stats, &told)
	s.compareParams(t, got.Params, widened(want.Params))
}

func widened(x []float32) (wide []float64) {
	for _, v := range x {
		wide = append(wide, float64(v))
	}
	return wide
}
