package wasm

import (
	"bytes"
	"fmt"

	"github.com/rlhost/rlhost/core/rollout"
)

var _ rollout.EnvCopier = (*Env)(nil)

// CopyFrom makes this Env what another one is; see rollout.EnvCopier. It is Snapshot and Restore in one, and touches
// only the pages in which the two differ: between two that were made alike, those are few.
func (e *Env) CopyFrom(from rollout.Env) error {
	o, ok := from.(*Env)
	if !ok || o == e || !bytes.Equal(e.identity(), o.identity()) || e.plugin.metered.State != "" {
		return fmt.Errorf("%w: %s: copy of other environments", rollout.ErrUnsupported, e.options.Name)
	}
	if err := o.gate.Enter(); err != nil {
		return err
	}
	defer o.gate.Leave()
	if _, err := e.gate.Seize(); err != nil {
		return err
	}
	defer e.gate.Leave()
	if err := e.copyInstance(o); err != nil {
		e.gate.Poison()
		return e.fault(err)
	}
	e.batch, e.scratch, e.rows = o.batch, o.scratch, 0
	e.windows = nil
	for _, w := range o.windows {
		e.windows = append(e.windows, &window{block: w.block, ptr: w.ptr, bytes: w.bytes, bindings: w.bindings})
	}
	return nil
}

func (e *Env) copyInstance(o *Env) error {
	s := o.inst.state()
	if e.inst.mem.size > s.size || e.inst.mem.broken {
		i, err := e.plugin.newInstance()
		if err != nil {
			return err
		}
		e.inst.close()
		e.adopt(i)
		e.windows = nil
	}
	if err := e.inst.growTo(s.size); err != nil {
		return err
	}
	for _, w := range e.windows { // what is copied there must not appear in blocks
		if err := e.inst.mem.mapZero(uint64(w.ptr), uint64(w.bytes)); err != nil {
			return err
		}
	}
	copyPages(e.inst.mem.bytes(), changedPages(o.inst.mem.bytes(), e.inst.mem.bytes(), o.inWindow))
	e.inst.setState(&s)
	return nil
}

// inWindow reports whether a place in the guest's memory lies in a window.
func (e *Env) inWindow(offset uint64) bool {
	for _, w := range e.windows {
		if offset >= uint64(w.ptr) && offset-uint64(w.ptr) < uint64(w.bytes) {
			return true
		}
	}
	return false
}
