package wrap

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// layer is a wrapper's work around the calls of a batch. None of its methods but bind allocates.
type layer interface {
	// bind is for a block that following calls read and write.
	bind(tr trajectory.Trajectory)
	// begin is for an environment that begins a new episode by Reset, with a seed where seeded, or that has been lost.
	begin(index int, seed uint64, seeded bool)
	// before is called before step t of the environments in w.part.
	before(t int)
	// after is called after it. The flags of the episodes are in w.ends; it ends others with w.ends.cut. An error that
	// names lost environments says that a reset has lost them.
	after(t int) error
	// bytes is the length of the state that save writes for one environment, and load reads. A batch of a layer
	// without such a state snapshots as the inner one does.
	bytes() int
	save(index int, dst []byte)
	load(index int, src []byte)
}

// replacing is a layer that makes the environments read another action than the policy's.
type replacing interface{ replaces() }

// observing is a layer that changes observations.
type observing interface {
	// first is called after a Reset of the environments in mask, or of all, which has written the observations of row t.
	first(t int, mask []uint8) error
}

// probed is a layer that reports trespasses of its module; see env.EnvProber.
type probed interface{ probe() (trespass string) }

// copier is a layer whose module reads or writes copies of the block's columns.
type copier interface {
	// copiedBytes returns how many bytes it has copied.
	copiedBytes() uint64
}

// plain is a layer that does nothing.
type plain struct{}

func (plain) bind(trajectory.Trajectory) {}
func (plain) begin(int, uint64, bool)    {}
func (plain) before(int)                 {}
func (plain) after(int) error            { return nil }
func (plain) bytes() int                 { return 0 }
func (plain) save(int, []byte)           {}
func (plain) load(int, []byte)           {}

// wrapped is a batch of environments with one wrapper around it. It implements env.Env and its optional interfaces; where
// the inner batch does not offer one, it returns env.ErrUnsupported.
type wrapped struct {
	passing
	starter env.Starter // inner, or nil
	layer   layer
	steps   stepper // layer, if it makes steps itself, else nil
	acts    bool    // layer is a replacing one
	ends    ends

	tr      trajectory.Trajectory // bound
	rows    int                   // steps of the bound block, 0 if none is bound
	schemas []schemas             // of blocks that were bound
	part    []byte                // 1 for the environments that the step under way is for
	reset   []byte                // which environments to reset
	pending int                   // row of a step that was begun
	broken  bool                  // a fault of the wrapper has poisoned the batch
	copied  uint64                // by layers before the present one
}

// schemas are one layout as both sides describe it.
type schemas struct{ outer, inner *trajectory.Schema }

var (
	_ env.Env         = (*wrapped)(nil)
	_ env.Starter     = (*wrapped)(nil)
	_ env.PartStepper = (*wrapped)(nil)
	_ env.Renderer    = (*wrapped)(nil)
	_ env.Asked       = (*wrapped)(nil)
	_ env.BlockMapper = (*wrapped)(nil)
	_ env.Copying     = (*wrapped)(nil)
)

// fresh makes the wrapper's own state that of a new batch.
func (w *wrapped) fresh() (err error) {
	w.rows, w.broken = 0, false
	if w.ends, err = newEnds(w.o.Envs, &w.plugin.spec, w.o.Autoreset); err != nil {
		return err
	}
	if err := w.closeLayer(); err != nil {
		return err
	}
	switch c := w.plugin.wrapper.(type) {
	case opened:
		w.layer, err = c.open(w)
	case layered:
		w.layer = c.around(w)
	}
	if w.steps, _ = w.layer.(stepper); w.steps != nil {
		w.starter = nil
	}
	_, w.acts = w.layer.(replacing)
	return err
}

// Copied is the sum of the inner batch's and the layer's copied bytes; see env.Copying.
func (w *wrapped) Copied() uint64 {
	n := w.copied + env.Copied(w.inner)
	if c, ok := w.layer.(copier); ok {
		n += c.copiedBytes()
	}
	return n
}

// Spec returns the description of the wrapped environments.
func (w *wrapped) Spec() *hostabi.EnvSpec { return &w.plugin.spec }

// schemaFor returns the layout of a block in the words of the inner environments.
func (w *wrapped) schemaFor(outer *trajectory.Schema) (*trajectory.Schema, error) {
	if i := slices.IndexFunc(w.schemas, func(s schemas) bool { return s.outer == outer }); i >= 0 {
		return w.schemas[i].inner, nil
	}
	inner, err := outer.As(w.plugin.inner)
	if err == nil {
		w.schemas = append(w.schemas, schemas{outer, inner})
	}
	return inner, err
}

// Bind binds the block for both sides; see env.Env.
func (w *wrapped) Bind(b env.Block) error {
	if err := w.usable(); err != nil {
		return err
	}
	if b.Schema == nil {
		return w.inner.Bind(b) // which refuses it
	}
	schema, err := w.schemaFor(b.Schema)
	if err != nil {
		return errors.Join(env.ErrUnsupported, err)
	}
	w.rows = 0
	outer := b.Trajectory
	b.Schema = schema
	err = w.inner.Bind(b)
	if err != nil && env.Lost(err) == nil {
		return err
	}
	w.tr, w.rows = outer, outer.Schema.Shape.Steps
	w.layer.bind(outer)
	w.lose(err)
	return err
}

// usable returns an error once a fault of the wrapper has poisoned the batch.
func (w *wrapped) usable() error {
	if w.broken {
		return fmt.Errorf("%s: %w", w.o.Name, env.ErrPoisoned)
	}
	return nil
}

// fault returns the error of a call of the wrapper that the environments cannot do without, or nil where they continue.
func (w *wrapped) fault(f *env.Fault) error {
	if w.o.Metric != nil {
		w.o.Metric(env.Metric{Env: -1, Name: metricFaults, Value: 1})
	}
	if w.o.Tolerate != nil && w.o.Tolerate(f) {
		return nil
	}
	w.broken = f.Poisons()
	return f
}

// Probe is the inner batch's, with the trespasses of a module around it; see env.EnvProber.
func (w *wrapped) Probe() (trespass, words string, err error) {
	trespass, words, err = w.passing.Probe()
	if l, ok := w.layer.(probed); ok {
		trespass = cmp.Or(trespass, l.probe())
	}
	return trespass, words, err
}

// lose forgets the episodes of the environments that an error reports lost.
func (w *wrapped) lose(err error) {
	for _, span := range env.Lost(err) {
		for index := max(span.First, 0); index < min(span.First+span.Count, w.o.Envs); index++ {
			w.begin(index, 0, false)
			w.ends.idle[index] = 1
		}
	}
}

func (w *wrapped) begin(index int, seed uint64, seeded bool) {
	w.ends.begin(index)
	w.layer.begin(index, seed, seeded)
}

// report passes on the reports of inner environments, except for a step between two episodes.
func (w *wrapped) report(m env.Metric) {
	if m.Env < 0 || m.Env >= len(w.ends.phantom) || w.ends.phantom[m.Env] == 0 {
		w.o.Metric(m)
	}
}

// Reset begins episodes; see env.Env.
func (w *wrapped) Reset(t int, mask []uint8, seeds []uint64) error {
	if err := w.usable(); err != nil {
		return err
	}
	if err := w.o.CheckReset(w.rows, t, mask, seeds); err != nil {
		return err
	}
	err := w.inner.Reset(t, mask, seeds)
	if err != nil && env.Lost(err) == nil {
		return err
	}
	for index := range w.part {
		switch {
		case mask != nil && mask[index] == 0:
		case seeds == nil:
			w.begin(index, 0, false)
		default:
			w.begin(index, seeds[index], true)
		}
	}
	w.lose(err)
	if l, ok := w.layer.(observing); ok {
		err = bothLost(err, l.first(t, mask))
	}
	return err
}

// Step makes one step; see env.Env.
func (w *wrapped) Step(t int) error {
	if err := w.usable(); err != nil {
		return err
	}
	if err := w.o.CheckStep(w.rows, t); err != nil {
		return err
	}
	if w.steps != nil {
		return w.steps.step(t)
	}
	w.before(t)
	return w.finish(t, w.inner.Step(t))
}

// before prepares a step of the inner environments. Their actions are noted as executed: the innermost layer has the last word.
func (w *wrapped) before(t int) {
	w.layer.before(t)
	if !w.acts || !w.tr.Schema.Has(trajectory.Executed) {
		return
	}
	for index, part := range w.part {
		for row, end := w.tr.Schema.RowsOf(index); part != 0 && row < end; row++ {
			w.tr.ExecuteOf(row, t)
		}
	}
}

// finish completes a step of the inner environments.
func (w *wrapped) finish(t int, err error) error {
	if err != nil && env.Lost(err) == nil {
		return err
	}
	w.ends.step(w.tr, t, w.part)
	w.lose(err)
	return bothLost(err, w.layer.after(t))
}

// StartStep begins a step; see env.Starter. Where the inner environments step here, it is over at once.
func (w *wrapped) StartStep(t int, ready func()) (over bool, err error) {
	if w.starter == nil {
		return true, w.Step(t)
	}
	if err := w.usable(); err != nil {
		return true, err
	}
	if err := w.o.CheckStep(w.rows, t); err != nil {
		return true, err
	}
	w.before(t)
	w.pending = t
	if over, err = w.starter.StartStep(t, ready); over {
		err = w.finish(t, err)
	}
	return over, err
}

// FinishStep ends a step that was begun.
func (w *wrapped) FinishStep() error { return w.finish(w.pending, w.starter.FinishStep()) }

// StepParts steps some environments; see env.PartStepper.
func (w *wrapped) StepParts(t int, parts []env.Span) error {
	inner, ok := w.inner.(env.PartStepper)
	if !ok || w.ends.agents != nil {
		return w.unsupported("step parts")
	}
	if err := w.usable(); err != nil {
		return err
	}
	if err := w.o.CheckStep(w.rows, t); err != nil {
		return err
	}
	clear(w.part)
	for _, p := range parts {
		for index := max(p.First, 0); index < min(p.First+p.Count, w.o.Envs); index++ {
			w.part[index] = 1
		}
	}
	var err error
	if w.steps != nil {
		err = w.steps.step(t)
	} else {
		w.before(t)
		err = w.finish(t, inner.StepParts(t, parts))
	}
	for index := range w.part {
		w.part[index] = 1
	}
	return err
}

// Renew makes the batch as good as new.
func (w *wrapped) Renew() error {
	if err := w.inner.Renew(); err != nil {
		return err
	}
	return w.fresh()
}

// Close frees the environments.
func (w *wrapped) Close() error { return errors.Join(w.closeLayer(), w.inner.Close()) }

func (w *wrapped) closeLayer() error {
	if c, ok := w.layer.(copier); ok {
		w.copied += c.copiedBytes()
	}
	c, ok := w.layer.(io.Closer)
	w.layer = nil
	if !ok {
		return nil
	}
	return c.Close()
}
