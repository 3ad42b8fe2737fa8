package ppo

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
)

// warming is a learner that first has an actor of its own parameters run the burn-in of a dataset's chunks, from the states that are
// stored where they begin. The actor computes each row as it does when it acts: parameters that acted leave the states that were kept
// then, bit for bit.
type warming struct {
	Learner
	program policy.Program
	network policy.Network
	rows    int // of a chunk

	actor  policy.Actor // nil before the first dataset
	most   int          // rows that it takes at a time
	params []float32

	bound    *policy.Binding
	states   trajectory.Matrix // [chunks][Network.State] by Dataset.ChunkOf
	value    []float32         // nobody reads it
	valid    []uint32
	requests []policy.Request
	views    policy.Views
	picked   policy.Picked
	copied   uint64 // bytes of observations
}

func newWarming(l Learner, p policy.Program, n *policy.Network, rows int) *warming {
	return &warming{Learner: l, program: p, network: n.Clone(), rows: rows, params: make([]float32, n.ParamCount())}
}

// Update warms the states up and learns from the rows behind them.
func (w *warming) Update(d *policy.Dataset, r Rates) (Stats, error) {
	d.BurnInRows, d.Warm = 0, nil
	if err := d.Check(&w.network); err != nil {
		return Stats{}, err
	}
	if err := w.warm(d); err != nil {
		return Stats{}, fmt.Errorf("burn-in: %w", err)
	}
	d.BurnInRows, d.Warm = w.rows, w.states.Float32()
	stats, err := w.Learner.Update(d, r)
	stats.Gathered += w.copied
	return stats, err
}

// warm leaves the states after the burn-in of each chunk.
func (w *warming) warm(d *policy.Dataset) error {
	if err := w.load(d); err != nil {
		return err
	}
	if s := d.Blocks[0].Schema; w.bound == nil || w.bound.Schema != s {
		w.bound, _ = w.network.Bind(s)
	}
	w.copied = 0
	w.value = sized(w.value, d.BlockEnvs())
	rows, elems := d.Chunks(&w.network), w.network.State()
	w.states = trajectory.Matrix{DType: hostabi.F32, Data: sized(w.states.Data, 4*rows*elems), Rows: rows, Elems: elems, StrideRow: 4 * elems, StrideElem: 4}
	d.Stored(&w.network, w.states.Float32())
	for step := range w.rows {
		w.requests, w.views = w.requests[:0], w.views[:0]
		for first := 0; first < d.Steps(); first += w.network.Chunk {
			for block := range d.Blocks {
				w.ask(d, block, first+step)
			}
		}
		err := w.actor.Act(w.requests)
		w.picked.Return()
		if err != nil {
			return err
		}
	}
	return nil
}

// load gives the actor the parameters as they are.
func (w *warming) load(d *policy.Dataset) error {
	if rows := d.Chunks(&w.network); rows > w.most {
		if err := w.close(); err != nil {
			return err
		}
		a, err := w.program.NewActor(rows)
		if err != nil {
			return err
		}
		w.actor, w.most = a, rows
	}
	if err := w.Params(w.params); err != nil {
		return err
	}
	return w.actor.Load(policy.Weights{Params: w.params, ObsMean: d.ObsMean, ObsScale: d.ObsScale})
}

// ask adds a request for the valid rows of a block at one time. Their states are replaced; other rows, in which an agent does not act,
// leave them as they are.
func (w *warming) ask(d *policy.Dataset, block, t int) {
	b, width := d.Blocks[block], d.BlockEnvs()
	w.valid = w.valid[:0]
	for e, valid := range d.Valid(block)[t*width : (t+1)*width] {
		if valid != 0 {
			w.valid = append(w.valid, uint32(e))
		}
	}
	if len(w.valid) == 0 {
		return
	}
	n := len(w.views)
	w.views = w.bound.Row(w.views, b, t)
	first := int(d.ChunkOf(&w.network, uint32(t*d.Envs()+block*width)))
	state := w.states.Slice(first, first+width)
	r := policy.Request{Obs: w.views.From(n), Age: w.bound.Ages(b, t), State: state, StateOut: state, Value: w.value}
	w.requests = append(w.requests, w.picked.Pick(&r, w.valid))
	for _, m := range w.requests[len(w.requests)-1].Obs {
		w.copied += uint64(len(m.Data))
	}
}

func (w *warming) close() error {
	if w.actor == nil {
		return nil
	}
	a := w.actor
	w.actor, w.most = nil, 0
	return a.Close()
}

// Close closes the actor, too.
func (w *warming) Close() error { return errors.Join(w.close(), w.Learner.Close()) }
