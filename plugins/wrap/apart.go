package wrap

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// paintedPlugin is a plugin with a painter around its environments.
type paintedPlugin struct {
	*plugin
	painter painter
}

// ownRows is how many steps are made in memory of a batch's own before its last row is copied to the front.
const ownRows = 8

// schema lays out separate memory for so many environments.
func (p *paintedPlugin) schema(envs int) (*trajectory.Schema, error) {
	return trajectory.NewSchema(p.inner, trajectory.Shape{Steps: ownRows, Envs: envs, Shaped: env.Shapes(p.Plugin), Memory: trajectory.Memory{Executed: true}})
}

// MemoryFor implements env.Sized for the inner plugin, which steps into one block.
func (p *paintedPlugin) MemoryFor(_ int, s *trajectory.Schema) (least, end uint64) {
	sized, ok := p.Plugin.(env.Sized)
	if !ok {
		return 0, 0
	}
	own, err := p.schema(s.Shape.Envs)
	if err != nil {
		return 0, 0 // NewEnv says why
	}
	return sized.MemoryFor(1, own)
}

// KeptBytes implements env.Keeper: the steps that are made before pictures are.
func (p *paintedPlugin) KeptBytes(envs int) int64 {
	own, err := p.schema(envs)
	if err != nil {
		return 0 // NewEnv says why
	}
	return int64(own.Bytes) + env.KeptBytes(p.Plugin, envs)
}

// NewEnv makes a batch of wrapped environments.
func (p *paintedPlugin) NewEnv(o env.Options) (env.Env, error) {
	inner, err := p.Plugin.NewEnv(o)
	if err != nil {
		return nil, err
	}
	a := &apart{passing: passing{plugin: p.plugin, inner: inner, o: o}, part: slices.Repeat([]byte{1}, o.Envs)}
	a.starter, _ = inner.(env.Starter)
	schema, err := p.schema(o.Envs)
	if err == nil {
		a.segment, err = shm.Create(o.Name+".pictures", schema.Bytes)
	}
	if err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	a.own = trajectory.Trajectory{Schema: schema, Mem: a.segment.Bytes()[:schema.Bytes:schema.Bytes]}
	a.list(p.painter)
	return a, nil
}

// apart is a batch of environments whose observations differ from the caller's. They step in separate memory: new observations are made in the
// caller's block, and everything else is copied between the two. It has no state. It implements env.Env and its optional interfaces, as wrapped
// does.
type apart struct {
	passing
	starter env.Starter // inner, or nil

	segment *shm.Segment
	own     trajectory.Trajectory
	row     int                   // of own that is observed now
	ready   bool                  // own is bound
	tr      trajectory.Trajectory // the caller's
	rows    int                   // its steps, 0 if none is bound
	pending int                   // row of a step that was begun
	part    []byte                // 1 for the environments that the call under way is for
	copied  uint64                // bytes

	given    []trajectory.Column // columns that the caller writes for a step
	outcome  []trajectory.Column
	observed []trajectory.Column // except pictures
	pictures []painted
}

// painted is an observation that a brush makes.
type painted struct {
	obs, final trajectory.Column
	brush      brush // nil: it is as it was
}

var (
	_ env.Env         = (*apart)(nil)
	_ env.Starter     = (*apart)(nil)
	_ env.PartStepper = (*apart)(nil)
	_ env.Stater      = (*apart)(nil)
	_ env.Copier      = (*apart)(nil)
	_ env.Successor   = (*apart)(nil)
	_ env.Renderer    = (*apart)(nil)
	_ env.Asked       = (*apart)(nil)
	_ env.EnvProber   = (*apart)(nil)
	_ env.BlockMapper = (*apart)(nil)
	_ env.Copying     = (*apart)(nil)
)

// list sorts the columns by their treatment.
func (a *apart) list(c painter) {
	tensors := a.plugin.inner.All(hostabi.RoleObservation)
	for _, l := range a.own.Schema.Columns() {
		switch {
		case l.Column.Kind() == trajectory.Action, l.Column == trajectory.ResetParam:
			a.given = append(a.given, l.Column)
		case l.Flags&trajectory.Outcome != 0:
			a.outcome = append(a.outcome, l.Column)
		case l.Flags&(trajectory.Observed|trajectory.AtBegin) == 0:
		case l.Column.Kind() == trajectory.Obs:
			index := l.Column.Index()
			if b, ok := c.paints(index, &tensors[index]); ok {
				a.pictures = append(a.pictures, painted{l.Column, trajectory.FinalObs.At(index), b})
				continue
			}
			a.observed = append(a.observed, l.Column)
		default:
			a.observed = append(a.observed, l.Column)
		}
	}
}

// Spec returns the description of the wrapped environments.
func (a *apart) Spec() *hostabi.EnvSpec { return &a.plugin.spec }

// Copied returns how many bytes were written to keep the environments' columns in both places; see env.Copying.
func (a *apart) Copied() uint64 { return a.copied + env.Copied(a.inner) }

// Bind binds the caller's block, and once the environments' own.
func (a *apart) Bind(b env.Block) error {
	s := b.Schema
	if s == nil || s.Shape.Envs != a.o.Envs || !slices.EqualFunc(s.Spec.Tensors, a.plugin.spec.Tensors, func(x, y hostabi.Tensor) bool { return x.Equal(&y) }) {
		return fmt.Errorf("%w: %s: block %d is laid out for other environments than %s", env.ErrUnsupported, a.o.Name, b.Index, a.plugin.spec.Name)
	}
	a.rows = 0
	var err error
	if !a.ready {
		if err = a.inner.Bind(a.block()); err != nil && env.Lost(err) == nil {
			return err
		}
		a.ready = true
	}
	a.tr, a.rows = b.Trajectory, s.Shape.Steps
	return err
}

func (a *apart) block() env.Block { return env.Block{Trajectory: a.own, FD: a.segment.FD()} }

// Reset begins episodes; see env.Env.
func (a *apart) Reset(t int, mask []uint8, seeds []uint64) error {
	if err := a.o.CheckReset(a.rows, t, mask, seeds); err != nil {
		return err
	}
	a.take(t)
	for _, c := range a.given {
		if c == trajectory.ResetParam {
			a.copyRow(a.own.Row(c, 0), a.tr.Row(c, 0))
		}
	}
	err := a.inner.Reset(a.row, mask, seeds)
	if err != nil && env.Lost(err) == nil {
		return err
	}
	if mask == nil {
		a.tell(t)
		return err
	}
	copy(a.part, mask)
	a.tell(t)
	a.forAll()
	return err
}

// forAll makes the next call one for all environments.
func (a *apart) forAll() {
	for i := range a.part {
		a.part[i] = 1
	}
}

// take copies the observations of row t from the caller's block, where they are the same in both: their reader may have changed some.
func (a *apart) take(t int) {
	for _, c := range a.observed {
		a.copyRow(a.own.Row(c, a.row), a.tr.Row(c, t))
	}
}

// tell writes the present observations to row t of the caller's block.
func (a *apart) tell(t int) {
	for _, c := range a.observed {
		a.copyRow(a.tr.Row(c, t), a.own.Row(c, a.row))
	}
	for i := range a.pictures {
		p := &a.pictures[i]
		dst, src := a.tr.Row(p.obs, t), a.own.Row(p.obs, a.row)
		for row := range dst.Rows {
			if a.part[row/a.tr.Schema.Agents] != 0 {
				a.paint(p, dst, src, row)
			}
		}
	}
}

func (a *apart) paint(p *painted, dst, src trajectory.Matrix, row int) {
	if p.brush == nil {
		dst.CopyRow(row, src)
		a.copied += uint64(dst.Elems * dst.DType.Bytes())
		return
	}
	p.brush.paint(dst.Data[row*dst.StrideRow:][:dst.Elems], src.Data[row*src.StrideRow:][:src.Elems])
	a.copied += uint64(dst.Elems)
}

// copyRow copies a row of a column for the environments in part.
func (a *apart) copyRow(to, from trajectory.Matrix) {
	if to.StrideRow == from.StrideRow && to.StrideElem == from.StrideElem && len(to.Data) == len(from.Data) && !slices.Contains(a.part, 0) {
		a.copied += uint64(copy(to.Data, from.Data))
		return
	}
	for row := range to.Rows {
		if a.part[row/a.tr.Schema.Agents] != 0 {
			to.SetRow(row, from, row)
			a.copied += uint64(to.Elems * to.DType.Bytes())
		}
	}
}

// begin makes row t ready to be stepped in own memory.
func (a *apart) begin(t int) error {
	if err := a.o.CheckStep(a.rows, t); err != nil {
		return err
	}
	if a.row == ownRows {
		a.own.CopyObserved(0, a.own, a.row)
		a.row, a.copied = 0, a.copied+uint64(a.own.Schema.ObservedBytes())
	}
	a.take(t)
	for _, c := range a.given {
		row, from := a.row, t
		if c == trajectory.ResetParam {
			row, from = 0, 0
		}
		a.copyRow(a.own.Row(c, row), a.tr.Row(c, from))
	}
	if a.tr.Schema.Has(trajectory.Executed) {
		a.own.Execute(a.row)
	}
	return nil
}

// Step makes one step; see env.Env.
func (a *apart) Step(t int) error {
	if err := a.begin(t); err != nil {
		return err
	}
	return a.finish(t, a.inner.Step(a.row))
}

// finish copies a step's output to the caller's block.
func (a *apart) finish(t int, err error) error {
	if err != nil && env.Lost(err) == nil {
		return err
	}
	trajectory.ShareOutcome(a.own, a.row)
	for _, c := range a.outcome {
		if a.tr.Schema.Has(c) {
			a.copyRow(a.tr.Row(c, t), a.own.Row(c, a.row))
		}
	}
	if a.o.Autoreset == hostabi.SameStep {
		a.tellFinal()
	}
	a.row++
	a.tell(t + 1)
	return err
}

// tellFinal writes the last observations of the episodes that have ended in the step, of all agents of an environment.
func (a *apart) tellFinal() {
	terminated, truncated := a.own.Row(trajectory.Terminated, a.row).Data, a.own.Row(trajectory.Truncated, a.row).Data
	for index, part := range a.part {
		first, end := a.own.Schema.RowsOf(index)
		if part == 0 || !slices.Contains(terminated[first:end], 1) && !slices.Contains(truncated[first:end], 1) {
			continue
		}
		for _, c := range a.observed {
			if c.Kind() != trajectory.Obs {
				continue
			}
			c = trajectory.FinalObs.At(c.Index())
			to, from := a.tr.Row(c, 0), a.own.Row(c, 0)
			for row := first; row < end; row++ {
				to.SetRow(row, from, row)
				a.copied += uint64(to.Elems * to.DType.Bytes())
			}
		}
		for i := range a.pictures {
			p := &a.pictures[i]
			to, from := a.tr.Row(p.final, 0), a.own.Row(p.final, 0)
			for row := first; row < end; row++ {
				a.paint(p, to, from, row)
			}
		}
	}
}

// StartStep begins a step; see env.Starter. Where the inner environments step here, it is over at once.
func (a *apart) StartStep(t int, ready func()) (over bool, err error) {
	if a.starter == nil {
		return true, a.Step(t)
	}
	if err := a.begin(t); err != nil {
		return true, err
	}
	a.pending = t
	if over, err = a.starter.StartStep(a.row, ready); over {
		err = a.finish(t, err)
	}
	return over, err
}

// FinishStep ends a step that was begun.
func (a *apart) FinishStep() error { return a.finish(a.pending, a.starter.FinishStep()) }

// StepParts steps some environments; see env.PartStepper.
func (a *apart) StepParts(t int, parts []env.Span) error {
	inner, ok := a.inner.(env.PartStepper)
	if !ok {
		return a.unsupported("step parts")
	}
	if err := a.begin(t); err != nil {
		return err
	}
	clear(a.part)
	for _, p := range parts {
		for index := max(p.First, 0); index < min(p.First+p.Count, a.o.Envs); index++ {
			a.part[index] = 1
		}
	}
	for index, part := range a.part {
		if first, end := a.own.Schema.RowsOf(index); part == 0 { // its observation has not changed
			for row := first; row < end; row++ {
				a.own.CopyObservedOf(row, a.row+1, a.own, a.row)
			}
		}
	}
	err := a.finish(t, inner.StepParts(a.row, parts))
	a.forAll()
	return err
}

// Renew makes the batch as good as new.
func (a *apart) Renew() error {
	a.rows, a.row, a.ready = 0, 0, false
	return a.inner.Renew()
}

// Snapshot returns the state of the inner batch.
func (a *apart) Snapshot() ([]byte, error) { return a.inner.Snapshot() }

// Restore replaces the state. The present observations are in the caller's block.
func (a *apart) Restore(snapshot []byte) error {
	err := a.inner.Restore(snapshot)
	if err == nil {
		a.rows, a.ready = 0, false
	}
	return err
}

// CopyFrom is Restore of the other's Snapshot; see env.Copier.
func (a *apart) CopyFrom(from env.Env) error {
	other, err := a.alike(from)
	if err != nil {
		return err
	}
	if err := a.copyInner(other.inner); err != nil {
		return err
	}
	copy(a.own.Mem, other.own.Mem)
	a.rows, a.row, a.ready = 0, other.row, false
	return nil
}

// TakeOver exchanges the memory of the two; see env.Successor.
func (a *apart) TakeOver(from env.Env) error {
	other, err := a.alike(from)
	if err != nil {
		return err
	}
	if err := a.takeInner(other.inner); err != nil {
		return err
	}
	a.segment, other.segment = other.segment, a.segment
	a.own.Mem, other.own.Mem = other.own.Mem, a.own.Mem
	a.row, other.row = other.row, a.row
	a.rows, a.ready, other.rows, other.ready = 0, false, 0, false
	return nil
}

// alike returns a batch that is one of the same wrapper.
func (a *apart) alike(from env.Env) (*apart, error) {
	other, ok := from.(*apart)
	if !ok || other.plugin.text != a.plugin.text || len(other.own.Mem) != len(a.own.Mem) {
		return nil, a.unsupported("copy the state of these environments")
	}
	return other, nil
}

// SaveEnv appends the state of one environment; see env.Stater.
func (a *apart) SaveEnv(index int, dst []byte) ([]byte, error) {
	if inner, ok := a.inner.(env.Stater); ok {
		return inner.SaveEnv(index, dst)
	}
	return dst, a.unsupported("save one environment")
}

// LoadEnv replaces the state of one environment.
func (a *apart) LoadEnv(index int, state []byte) error {
	if inner, ok := a.inner.(env.Stater); ok {
		return inner.LoadEnv(index, state)
	}
	return a.unsupported("load one environment")
}

// MapAhead has nothing to map: the environments do not step into the caller's blocks; see env.BlockMapper.
func (a *apart) MapAhead([]env.Block) error {
	a.rows = 0
	return nil
}

// Close frees the environments and their memory.
func (a *apart) Close() error { return errors.Join(a.inner.Close(), a.segment.Close()) }
