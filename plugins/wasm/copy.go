package wasm

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/plugins/wasm/internal/linear"
)

var (
	_ env.Copier    = (*Env)(nil)
	_ env.Successor = (*Env)(nil)
)

// TakeOver exchanges the instances of the two; see env.Successor. Nothing is copied, and blocks stay mapped that the other has been
// bound to.
func (e *Env) TakeOver(from env.Env) error {
	o, ok := from.(*Env)
	if !ok || o == e || !bytes.Equal(e.identity(), o.identity()) || !e.plugin.runsAs(o.plugin) {
		return fmt.Errorf("%w: %s: takes over other environments", env.ErrUnsupported, e.options.Name)
	}
	if err := o.gate.Enter(); err != nil {
		return err
	}
	defer o.gate.Leave()
	if err := e.gate.Enter(); err != nil {
		return err
	}
	defer e.gate.Leave()
	e.life, o.life = o.life, e.life
	e.rows, o.rows = 0, 0
	e.adopt(e.inst)
	o.adopt(o.inst)
	return nil
}

// runsAs reports whether instances of both are given the same arguments, limits and grants. Their data is part of what identifies them.
func (p *Plugin) runsAs(o *Plugin) bool {
	a, b := p.file, o.file
	return bytes.Equal(a.Args, b.Args) && a.Config.Limits == b.Config.Limits && slices.Equal(a.Config.Grants, b.Config.Grants)
}

// CopyFrom gives this Env the state of another; see env.Copier. It is Snapshot and Restore in one, and touches only
// the pages that differ: few between two made alike.
func (e *Env) CopyFrom(from env.Env) error {
	o, ok := from.(*Env)
	if !ok || o == e || !bytes.Equal(e.identity(), o.identity()) || e.plugin.file.Metered.State != "" {
		return fmt.Errorf("%w: %s: copy of other environments", env.ErrUnsupported, e.options.Name)
	}
	if err := o.gate.Enter(); err != nil {
		return err
	}
	defer o.gate.Leave()
	if _, err := e.gate.EnterPoisoned(); err != nil {
		return err
	}
	defer e.gate.Leave()
	var revoke []linear.Span
	stay := e.windows != nil
	if !sameWindows(e.windows, o.windows) {
		revoke, stay = spans(e.windows), false
	}
	i, err := e.inst.CopyFrom(o.inst, spans(o.windows), revoke, stay)
	if i != e.inst {
		e.inst, e.windows, stay = i, nil, false
	}
	if err != nil {
		e.gate.Poison()
		return e.fault(err)
	}
	e.batch, e.scratch, e.rows = o.batch, o.scratch, 0
	mapped := e.windows
	e.windows = nil
	for k, w := range o.windows {
		own := &window{block: w.block, ptr: w.ptr, bytes: w.bytes, bindings: w.bindings}
		if stay { // it has the other one's bindings
			own.file, own.offset, own.schema, own.stale = mapped[k].file, mapped[k].offset, mapped[k].schema, true
		}
		e.windows = append(e.windows, own)
	}
	return nil
}

func spans(windows []*window) (list []linear.Span) {
	for _, w := range windows {
		list = append(list, linear.Span{At: uint64(w.ptr), N: uint64(w.bytes)})
	}
	return list
}

// sameWindows reports whether the same places are windows of the same blocks.
func sameWindows(a, b []*window) bool {
	return slices.EqualFunc(a, b, func(a, b *window) bool { return a.block == b.block && a.ptr == b.ptr && a.bytes == b.bytes })
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
