package cuda

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy"
)

// actor implements policy.Actor.
type actor struct {
	*pass
	weights policy.WeightsFormat
	vectors *vectors
	entry   *policy.Entry
	loaded  bool

	parts    []part // of the batch
	in, back staged
	heads    heads
	keys, x  section
	states   section
	block    section // of rows of bytes
	masks    []section
	values   section
	logProbs section
	after    section
	drawn    []section
	drawnAt  []kernels.Address
	masksAt  []kernels.Address
	gather   call[kernels.Gather]
	sample   call[kernels.Sample]
	keeps    []func(to kernels.Address, rows int) // by core
}

// part is rows lo to hi of a request, from row at of a batch on.
type part struct{ request, lo, hi, at int }

// maxActing bounds the rows that are acted on together.
const maxActing = 1 << 14

func newActor(d *device, l *layout, maxRows int) (policy.Actor, error) {
	w, err := newWork(d, driver.High)
	if err != nil {
		return nil, err
	}
	n := len(l.actions)
	a := &actor{weights: l.net.Weights(), entry: policy.NewEntry(&l.net, l.starts), in: staged{work: w}, back: staged{work: w},
		masks: make([]section, n), drawn: make([]section, n), drawnAt: make([]kernels.Address, n), masksAt: make([]kernels.Address, n)}
	own := owner{work: w}
	a.vectors = newVectors(&own, l)
	a.pass = newPass(w, l, own.floats(l.size), 0, min(max(maxRows, 1), maxActing), nil)
	a.made = append(own.made, a.made...)
	a.sample = prepare(&a.owner, kernels.SampleKernel)
	a.gather = prepare(&a.owner, kernels.GatherKernel)
	for _, o := range l.ops {
		if c, ok := o.(*core); ok {
			a.keeps = append(a.keeps, c.keep(a.pass))
		}
	}
	a.take(a.capacity, true)
	w.wait()
	if err := w.take(); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// take takes the sections of a batch.
func (a *actor) take(rows int, masked bool) {
	a.in.begin()
	a.heads.take(&a.in, a.layout)
	a.keys = a.in.section(rows * sizeOf[kernels.Key]())
	a.states = a.in.section(4 * rows * a.kept)
	for i := range a.actions {
		bytes := 0
		if masked {
			bytes = rows * a.actions[i].Choices
		}
		a.masks[i] = a.in.section(bytes)
	}
	if a.net.Pixels() {
		a.block, a.x = a.in.section(sizeOf[kernels.Block]()), a.in.section(rows*a.elems)
	} else {
		a.x = a.in.section(4 * rows * a.row)
	}
	a.in.fit()
	a.back.begin()
	a.values, a.logProbs = a.back.section(4*rows), a.back.section(4*rows)
	for i := range a.actions {
		a.drawn[i] = a.back.section(4 * rows * a.actions[i].Size)
	}
	a.after = a.back.section(4 * rows * a.kept)
	a.back.fit()
}

// Load copies the weights to the device.
func (a *actor) Load(w policy.Weights) error {
	if err := a.weights.Check(&w); err != nil {
		return err
	}
	a.vectors.put(a.params, w.Params)
	a.work.wait()
	if err := a.work.take(); err != nil {
		return err
	}
	a.entry.Mean, a.entry.Scale = append(a.entry.Mean[:0], w.ObsMean...), append(a.entry.Scale[:0], w.ObsScale...)
	a.loaded = true
	return nil
}

// Act puts rows of several requests into as few batches as possible. On an error the outputs of rows before the row that it
// names may be written or not.
func (a *actor) Act(requests []policy.Request) error {
	if !a.loaded {
		return policy.ErrNoWeights
	}
	a.parts = a.parts[:0]
	rows := 0
	for i := range requests {
		r := &requests[i]
		if err := a.sizes.Check(r); err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
		for lo, n := 0, r.Len(); lo < n; {
			hi := min(n, lo+a.capacity-rows)
			a.parts = append(a.parts, part{i, lo, hi, rows})
			rows += hi - lo
			if lo = hi; rows == a.capacity {
				if err := a.run(requests, rows); err != nil {
					return err
				}
				a.parts, rows = a.parts[:0], 0
			}
		}
	}
	if rows == 0 {
		return nil
	}
	return a.run(requests, rows)
}

// run acts on the parts of a batch.
func (a *actor) run(requests []policy.Request, rows int) error {
	acts, masked := false, false
	for _, p := range a.parts {
		r := &requests[p.request]
		acts = acts || r.Action != nil || r.StateOut.Rows > 0
		masked = masked || r.Action != nil && len(r.Mask) > 0
	}
	a.take(rows, masked)
	if a.work.err != nil {
		return a.work.take()
	}
	for _, p := range a.parts {
		if err := a.stage(&requests[p.request], p, masked); err != nil {
			return err
		}
	}
	a.submit(rows, acts, masked)
	a.work.wait()
	if err := a.work.take(); err != nil {
		return err
	}
	for _, p := range a.parts {
		a.finish(&requests[p.request], p, rows)
	}
	return nil
}

// submit submits the work of a batch whose rows are staged.
func (a *actor) submit(rows int, acts, masked bool) {
	a.ld = rows
	for i := range a.actions {
		a.drawnAt[i], a.masksAt[i] = a.back.address(a.drawn[i]), 0
		if masked && a.actions[i].Choices > 0 {
			a.masksAt[i] = a.in.address(a.masks[i])
		}
	}
	a.out[a.plan.Value.At] = a.back.address(a.values)
	a.heads.fill(&a.in, a.pass, a.drawnAt, a.masksAt)
	own := a.x
	if a.net.Pixels() {
		view[kernels.Block](&a.in, a.block)[0] = kernels.Block{Obs: a.in.address(own)}
	}
	a.in.send(0)
	a.state = a.in.address(a.states)
	entered := a.pass.x
	if a.net.Pixels() {
		n := int32(a.elems)
		*a.gather.args = kernels.Gather{Blocks: a.in.address(a.block), X: entered, Rows: int32(rows), Row: int32(a.row), Width: n,
			Envs: int32(rows), BlockEnvs: int32(rows), EnvStride: n, ElemStride: 1, Bytes: 1, Factor: a.net.PixelScale()}
		a.work.launch(a.gather.Launch, kernels.Blocks(rows*a.row))
	} else {
		a.pass.x = a.in.address(own)
	}
	a.forward(rows, acts)
	a.pass.x = entered
	if acts {
		*a.sample.args = kernels.Sample{Heads: a.in.address(a.heads.table), Keys: a.in.address(a.keys), LogProb: a.back.address(a.logProbs),
			Count: int32(len(a.actions)), Rows: int32(rows), LD: int32(rows)}
		a.work.launch(a.sample.Launch, kernels.Blocks(rows))
		for _, keep := range a.keeps {
			keep(a.back.address(a.after), rows)
		}
	}
	a.back.fetch()
}

// stage copies the rows of a part.
func (a *actor) stage(r *policy.Request, p part, masked bool) error {
	a.observe(r, p)
	keys := view[kernels.Key](&a.in, a.keys)[p.at:]
	greedy := int32(0)
	if r.Greedy {
		greedy = 1
	}
	for row := p.lo; row < p.hi; row++ {
		keys[row-p.lo] = kernels.Key{Seed: r.Seed, Step: r.Step, Env: r.Env(row), Greedy: greedy}
	}
	if a.kept > 0 {
		a.begin(r, p)
	}
	for i := range a.actions {
		if !masked || a.actions[i].Choices == 0 {
			continue
		}
		if row := a.forbid(r, i, p); row >= 0 {
			return &policy.RowError{Request: p.request, Row: row, Err: policy.ErrNoLegalAction}
		}
	}
	return nil
}

// observe copies what enters.
func (a *actor) observe(r *policy.Request, p part) {
	if a.net.Pixels() {
		n := a.elems
		to := a.in.bytes(a.x)[p.at*n:]
		for row := p.lo; row < p.hi; row++ {
			a.entry.Request(policy.EnteredRow{Bytes: to[(row-p.lo)*n:][:n]}, r, row)
		}
		return
	}
	to := view[float32](&a.in, a.x)[p.at*a.row:]
	plain, n := a.net.Plain(), a.elems
	for row := p.lo; row < p.hi; row++ {
		own := to[(row-p.lo)*a.row:][:a.row]
		clear(own)
		if plain {
			m := &r.Obs[0]
			policy.NormalizeRow(own[:n], m.Float32()[row*m.StrideRow/4:], m.StrideElem/4, a.entry.Mean, a.entry.Scale)
			continue
		}
		a.entry.Request(policy.EnteredRow{Numbers: own}, r, row)
	}
}

// begin copies the states that rows begin from.
func (a *actor) begin(r *policy.Request, p part) {
	to, x := view[float32](&a.in, a.states)[p.at*a.kept:], r.State.Float32()
	for row := p.lo; row < p.hi; row++ {
		own := to[(row-p.lo)*a.kept:][:a.kept]
		if r.Age[row] == 0 {
			clear(own)
		} else {
			copy(own, x[row*r.State.StrideRow/4:])
		}
	}
}

// forbid copies the mask of an action; the guest can rewrite its own at any time, so it is read once. It returns the first row with
// an element without a legal choice, or -1.
func (a *actor) forbid(r *policy.Request, action int, p part) int {
	of := &a.actions[action]
	to := a.in.bytes(a.masks[action])[p.at*of.Choices : (p.at+p.hi-p.lo)*of.Choices]
	m := r.ActionMask(action)
	if r.Action == nil || m.Rows == 0 {
		for i := range to {
			to[i] = 1
		}
		return -1
	}
	for row := p.lo; row < p.hi; row++ {
		choice := 0
		for _, n := range of.counts {
			legal := byte(0)
			for range n {
				own := &to[(row-p.lo)*of.Choices+choice]
				*own = 0
				if m.Data[row*m.StrideRow+choice*m.StrideElem] != 0 {
					*own, legal = 1, 1
				}
				choice++
			}
			if legal == 0 {
				return row
			}
		}
	}
	return -1
}

// finish writes the device's outputs to a request.
func (a *actor) finish(r *policy.Request, p part, rows int) {
	copy(r.Value[p.lo:p.hi], view[float32](&a.back, a.values)[p.at:])
	if r.StateOut.Rows > 0 {
		to, x := r.StateOut.Float32(), view[float32](&a.back, a.after)
		for row := p.lo; row < p.hi; row++ {
			copy(to[row*r.StateOut.StrideRow/4:][:a.kept], x[(p.at+row-p.lo)*a.kept:])
		}
	}
	if r.Action == nil {
		return
	}
	copy(r.LogProb[p.lo:p.hi], view[float32](&a.back, a.logProbs)[p.at:])
	for i := range a.actions {
		if a.actions[i].Continuous {
			a.place(r, i, p, rows)
			continue
		}
		m, x, start := &r.Action[i], view[int32](&a.back, a.drawn[i]), a.net.Policy[i].Start
		to := m.Int32()
		for e := range a.actions[i].Size {
			for row := p.lo; row < p.hi; row++ {
				to[(row*m.StrideRow+e*m.StrideElem)/4] = x[e*rows+p.at+row-p.lo] + start
			}
		}
	}
}

// place writes the numbers drawn for a Box, and the action made from them.
func (a *actor) place(r *policy.Request, action int, p part, rows int) {
	m, x := &r.Raw[action], view[float32](&a.back, a.drawn[action])
	to := m.Float32()
	for e := range a.actions[action].Size {
		for row := p.lo; row < p.hi; row++ {
			to[(row*m.StrideRow+e*m.StrideElem)/4] = x[e*rows+p.at+row-p.lo]
		}
	}
	a.net.Policy[action].Place(m, &r.Action[action], p.lo, p.hi)
}

// Close frees the device's memory.
func (a *actor) Close() error {
	return errors.Join(a.owner.close(), a.in.close(), a.back.close(), a.vectors.close(), a.work.stream.Close())
}
