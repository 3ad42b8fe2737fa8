package wasm

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/env"
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

// runsAs reports whether instances of both are given the same arguments, limits and grants.
func (p *Plugin) runsAs(o *Plugin) bool {
	return bytes.Equal(p.args, o.args) && p.config.Limits == o.config.Limits && slices.Equal(p.config.Grants, o.config.Grants)
}

// CopyFrom gives this Env the state of another; see env.Copier. It is Snapshot and Restore in one, and
// touches only the pages in which the two differ: between two made alike, those are few.
func (e *Env) CopyFrom(from env.Env) error {
	o, ok := from.(*Env)
	if !ok || o == e || !bytes.Equal(e.identity(), o.identity()) || e.plugin.metered.State != "" {
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
	if err := copyInstance(e, o); err != nil {
		e.gate.Poison()
		return e.fault(err)
	}
	e.batch, e.scratch, e.rows = o.batch, o.scratch, 0
	mapped := e.windows
	e.windows = nil
	for k, w := range o.windows {
		own := &window{block: w.block, ptr: w.ptr, bytes: w.bytes, bindings: w.bindings}
		if mapped != nil { // its bindings are those of the other one
			own.file, own.offset, own.schema, own.stale = mapped[k].file, mapped[k].offset, mapped[k].schema, true
		}
		e.windows = append(e.windows, own)
	}
	return nil
}

// copyInstance gives the first one's instance the state of the other's.
func copyInstance(e, o *Env) error {
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
	if err := e.inst.growTo(&s); err != nil {
		return err
	}
	if !sameWindows(e.windows, o.windows) {
		for _, w := range e.windows { // copied pages must not appear in blocks
			if err := e.inst.mem.mapZero(uint64(w.ptr), uint64(w.bytes)); err != nil {
				return err
			}
		}
		e.windows = nil
	}
	e.copyPages(o)
	e.inst.setState(&s)
	return nil
}

// sameWindows reports whether the same places are windows of the same blocks.
func sameWindows(a, b []*window) bool {
	return slices.EqualFunc(a, b, func(a, b *window) bool { return a.block == b.block && a.ptr == b.ptr && a.bytes == b.bytes })
}

// copyPages makes the memory equal to that of the other one, which is as large, where it differs. Where the other one
// has a window it becomes zero, or stays a window.
func (e *Env) copyPages(o *Env) {
	to, from, same := e.inst.mem.bytes(), o.inst.mem.bytes(), unchanged(e, o)
	for at := uint64(0); at < uint64(len(from)); {
		end := uint64(len(from))
		inside := false // of a window
		for _, w := range o.windows {
			if start := uint64(w.ptr); at < start {
				end = min(end, start)
			} else if at-start < uint64(w.bytes) {
				inside, end = true, start+uint64(w.bytes)
				break
			}
		}
		switch {
		case !inside:
			copyChanged(to[at:end], from[at:end], same[at/hostPage:])
		case e.windows == nil:
			clearChanged(to[at:end])
		}
		at = end
	}
}

// unchanged reports of each page whether both have it as both began, so that the two need not be compared.
func unchanged(e, o *Env) []bool {
	same, a, b := make([]bool, o.inst.mem.size/hostPage), e.plugin.image, o.plugin.image
	if a == nil || b == nil || a.file == nil || b.file == nil || a.file.sum != b.file.sum {
		return same
	}
	imaged, untouched := min(e.inst.mem.imaged, o.inst.mem.imaged), e.inst.mem.untouched()
	for i, also := range o.inst.mem.untouched() {
		offset := uint64(i) * hostPage
		same[i] = also && untouched[i] && (offset < imaged || offset >= a.size)
	}
	return same
}

// copyChanged copies the pages that differ; both are whole pages and equally long. Those of which same says so do not.
func copyChanged(to, from []byte, same []bool) {
	for at := 0; at+hostPage <= len(from); at += hostPage {
		if now := from[at : at+hostPage]; !same[at/hostPage] && !bytes.Equal(to[at:at+hostPage], now) {
			copy(to[at:], now)
		}
	}
}

// clearChanged clears the pages that are not zero.
func clearChanged(to []byte) {
	var zero [hostPage]byte
	for at := 0; at+hostPage <= len(to); at += hostPage {
		if page := to[at : at+hostPage]; !bytes.Equal(page, zero[:]) {
			clear(page)
		}
	}
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
