package gorgonia

import (
	"fmt"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
)

// actor implements policy.Actor. Unlike other backends' it allocates in Act: gorgonia's machine does, some hundred
// times a run.
type actor struct {
	*model
	shapes      *shapes[float32]
	mean, scale []float32
	normal      bool          // observations are normalised
	enters      *policy.Entry // nil for observations that are read as they lie
	obs         int
	actions     int
	sizes       policy.Sizes
	loaded      bool
	pending     []place // rows staged in the program that is to run next
	mask        []byte  // of the pending rows, [rows][actions]
}

// place is a row of one request.
type place struct{ request, row int }

func newActor(m *model, maxRows int) (policy.Actor, error) {
	n := &m.network
	a := &actor{model: m, normal: n.NormalizeObs(), obs: n.Obs(), actions: n.Actions(), sizes: n.Sizes(), shapes: newShapes(m, make([]float32, m.size), min(maxRows, maxActorRows))}
	if !n.Plain() {
		a.enters = policy.NewEntry(n, nil)
	}
	if _, err := a.shapes.fit(1); err != nil { // a model that cannot be computed is found out early
		return nil, err
	}
	return a, nil
}

// Load copies the weights.
func (a *actor) Load(w policy.Weights) error {
	if len(w.Params) != a.size {
		return fmt.Errorf("weights of %d parameters, the network has %d", len(w.Params), a.size)
	}
	if stats := a.network.Stats(); a.normal && (len(w.ObsMean) != stats || len(w.ObsScale) != stats) {
		return fmt.Errorf("weights with %d means and %d scales, the network normalises %d elements",
			len(w.ObsMean), len(w.ObsScale), stats)
	}
	copy(a.shapes.params, w.Params)
	if a.normal {
		a.mean, a.scale = append(a.mean[:0], w.ObsMean...), append(a.scale[:0], w.ObsScale...)
	}
	if a.enters != nil {
		a.enters.Mean, a.enters.Scale = a.mean, a.scale
	}
	a.loaded = true
	return nil
}

// Act packs the rows of all requests into as few runs as possible. On an error the outputs of rows before the one
// that it names may be written or not.
func (a *actor) Act(requests []policy.Request) error {
	if !a.loaded {
		return policy.ErrNoWeights
	}
	left := 0
	for i := range requests {
		if err := a.sizes.Check(&requests[i]); err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
		left += requests[i].Len()
	}
	a.pending = a.pending[:0]
	var p *program[float32]
	for i := range requests {
		for row := range requests[i].Len() {
			if p == nil {
				var err error
				if p, err = a.shapes.fit(left); err != nil {
					return err
				}
			}
			if err := a.stage(p, &requests[i], place{i, row}); err != nil {
				return err
			}
			left--
			if len(a.pending) < p.rows && left > 0 {
				continue
			}
			if err := a.flush(p, requests); err != nil {
				return err
			}
			p = nil
		}
	}
	return nil
}

// stage enters a row into the next run. The guest can rewrite its mask at any time, so it is read once.
func (a *actor) stage(p *program[float32], r *policy.Request, at place) error {
	n, actions := a.obs, a.actions
	if a.joint != nil {
		actions = 0
	}
	slot := len(a.pending)
	obs, mask := &r.Obs[0], r.ActionMask(0)
	if a.enters != nil {
		a.enters.Request(policy.EnteredRow{Numbers: p.obs[slot*n : (slot+1)*n]}, r, at.row)
	} else {
		x := obs.Float32()[at.row*obs.StrideRow/4:]
		policy.NormalizeRow(p.obs[slot*n:(slot+1)*n], x, obs.StrideElem/4, a.mean, a.scale)
	}
	for i := range a.sizes.State {
		x := float32(0)
		if r.Age[at.row] > 0 {
			x = r.State.Float32()[at.row*r.State.StrideRow/4+i]
		}
		p.state[slot*a.sizes.State+i] = x
	}
	a.pending, a.mask = append(a.pending, at), append(a.mask[:slot*actions], make([]byte, actions)...)
	free, legal := r.Action == nil || mask.Rows == 0, false
	for i := range actions {
		p.mask[slot*actions+i] = 0
		if free || mask.Data[at.row*mask.StrideRow+i*mask.StrideElem] != 0 {
			p.mask[slot*actions+i], a.mask[slot*actions+i], legal = 1, 1, true
		}
	}
	if a.joint != nil {
		return a.stageMasks(p, r, at, slot)
	}
	if !legal {
		return &policy.RowError{Request: at.request, Row: at.row, Err: policy.ErrNoLegalAction}
	}
	return nil
}

// flush runs the program on the staged rows and writes their outputs.
func (a *actor) flush(p *program[float32], requests []policy.Request) error {
	if err := p.run(); err != nil {
		return err
	}
	a.keep(p, requests)
	if a.joint != nil {
		return a.flushJoint(p, requests)
	}
	actions := a.actions
	for slot, at := range a.pending {
		r := &requests[at.request]
		r.Value[at.row] = p.value[slot]
		if r.Action == nil {
			continue
		}
		logProbs := p.logProbs[slot*actions : (slot+1)*actions]
		// Log-probabilities are logits as well, whatever head they are of.
		logits, mask, d := widen(logProbs), a.mask[slot*actions:(slot+1)*actions], head.Categorical{N: actions}
		action := []float64{0}
		if r.Greedy {
			d.Mode(logits, mask, action)
		} else {
			d.Sample(logits, mask, []float32{policy.Uniform(r.Seed, r.Env(at.row), r.Step, 0)}, action)
		}
		taken := int32(action[0])
		r.Action[0].Int32()[at.row], r.LogProb[at.row] = taken+a.network.Policy[0].Start, logProbs[taken]
	}
	a.pending = a.pending[:0]
	return nil
}

// keep writes the state after the staged rows.
func (a *actor) keep(p *program[float32], requests []policy.Request) {
	for slot, at := range a.pending {
		m := &requests[at.request].StateOut
		if m.Rows == 0 {
			continue
		}
		for _, after := range p.after {
			copy(m.Float32()[at.row*m.StrideRow/4+after.at:], after.data[slot*after.cols:][:after.cols])
		}
	}
}

// stageMasks enters the masks of joint actions.
func (a *actor) stageMasks(p *program[float32], r *policy.Request, at place, slot int) (err error) {
	n := max(a.joint.choices, 1)
	a.mask = append(a.mask[:slot*n], make([]byte, n)...)
	for i := range n {
		a.mask[slot*n+i], p.mask[slot*n+i] = 1, 1
	}
	a.joint.each(func(k int, d head.Dist, _, choice, _ int) {
		mask := r.ActionMask(k)
		if r.Action == nil || mask.Rows == 0 {
			return
		}
		c := 0
		for _, count := range a.network.Policy[k].Counts() {
			legal := false
			for range count {
				one := mask.Data[at.row*mask.StrideRow+c*mask.StrideElem] != 0
				if i := slot*n + choice + c; !one {
					a.mask[i], p.mask[i] = 0, 0
				}
				legal = legal || one
				c++
			}
			if !legal {
				err = &policy.RowError{Request: at.request, Row: at.row, Err: policy.ErrNoLegalAction}
			}
		}
	})
	return err
}

// flushJoint draws the actions of the staged rows from the program's outputs, and runs it again for their
// log-probabilities.
func (a *actor) flushJoint(p *program[float32], requests []policy.Request) error {
	for slot, at := range a.pending {
		r := &requests[at.request]
		r.Value[at.row] = p.value[slot]
		if r.Action != nil {
			a.draw(p, r, slot, at.row)
		}
	}
	if err := p.run(); err != nil {
		return err
	}
	for slot, at := range a.pending {
		if r := &requests[at.request]; r.Action != nil {
			r.LogProb[at.row] = p.logProbs[slot]
		}
	}
	a.pending = a.pending[:0]
	return nil
}

// draw writes the actions of a row, to the request and to the program.
func (a *actor) draw(p *program[float32], r *policy.Request, slot, row int) {
	first, n := uint32(0), max(a.joint.choices, 1)
	a.joint.each(func(k int, d head.Dist, elem, choice, column int) {
		u, action := make([]float32, d.Draws()), make([]float64, d.Size())
		first = policy.Draws(d, r.Seed, r.Env(row), r.Step, first, u)
		params := widen(p.params[slot*a.elems+elem:][:d.Elems()])
		mask := a.mask[slot*n+choice:][:d.Choices()]
		if r.Greedy {
			d.Mode(params, mask, action)
		} else {
			d.Sample(params, mask, u, action)
		}
		of, to := &a.network.Policy[k], r.Action[k]
		for i, x := range action {
			if d.Continuous() {
				raw := r.Raw[k]
				raw.Float32()[(row*raw.StrideRow+i*raw.StrideElem)/4] = float32(x)
				action[i] = float64(float32(x))
			} else {
				to.Int32()[(row*to.StrideRow+i*to.StrideElem)/4] = int32(max(x, 0)) + of.Start
			}
		}
		if d.Continuous() {
			of.Place(&r.Raw[k], &to, row, row+1)
		}
		a.joint.enter(k, d, action, slot*a.joint.action+column, func(i int, x float64) { p.train.action[i] = float32(x) })
	})
}

// Close frees the graphs.
func (a *actor) Close() error { return a.shapes.close() }
