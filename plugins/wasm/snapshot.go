package wasm

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/env"
)

// Snapshot returns the guest's memory without its windows, its globals, and what the host keeps for it.
// ErrUnsupported if the module can change more than that.
func (e *Env) Snapshot() ([]byte, error) {
	if err := e.gate.Enter(); err != nil {
		return nil, err
	}
	defer e.gate.Leave()
	if more := e.plugin.metered.State; more != "" {
		return nil, fmt.Errorf("%w: %s: snapshot of a module with %s", env.ErrUnsupported, e.options.Name, more)
	}
	d := &delta{state: e.inst.state(), pages: changedPages(e.inst.mem.bytes(), nil, e.inWindow)}
	return e.encode(d), nil
}

// snapshotHead follows the identity. All numbers are little endian.
type snapshotHead struct {
	Size, Fuel, Steps          uint64
	Skipped                    int64
	Batch                      uint64
	ArgsPtr, ErrorPtr, Scratch uint32
	Globals, Windows, Pages    uint32 // how many follow; random streams come before them, one more than environments
}

// pageBytes is what a snapshot has for each page: its number and its content.
const pageBytes = 4 + hostPage

// encode writes a snapshot: identity, head, random streams, globals, windows, pages.
func (e *Env) encode(d *delta) []byte {
	le := binary.LittleEndian
	b := append(make([]byte, 0, 256+len(d.pages)*pageBytes), e.identity()...)
	add := func(v any) { b, _ = binary.Append(b, le, v) } // numbers of fixed size always fit
	add(snapshotHead{d.size, d.fuel, d.steps, d.skipped, e.batch, d.argsPtr, d.errorPtr, e.scratch,
		uint32(len(d.globals)), uint32(len(e.windows)), uint32(len(d.pages))})
	add(slices.Concat(d.entropy, d.globals))
	for _, w := range e.windows {
		add([]uint32{w.block, w.ptr, w.bytes, w.bindings})
	}
	for _, p := range d.pages {
		b = append(le.AppendUint32(b, p.number), p.data...)
	}
	return b
}

// snapshot is a decoded snapshot.
type snapshot struct {
	delta
	batch   uint64
	scratch uint32
	windows []*window
}

// Restore replaces the state by a snapshot of an Env made from the same file with the same options. No block is
// bound afterwards. On an error the Env is unchanged.
func (e *Env) Restore(b []byte) error {
	poisoned, err := e.gate.EnterPoisoned()
	if err != nil {
		return err
	}
	defer e.gate.Leave()
	s, err := e.decode(b)
	if err != nil {
		if poisoned {
			e.gate.Poison()
		}
		return fmt.Errorf("%w: %s: restore: %w", env.ErrUnsupported, e.options.Name, err)
	}
	if err := e.replace(nil, &s.delta); err != nil {
		e.gate.Poison()
		return e.fault(err)
	}
	e.batch, e.scratch, e.windows, e.rows = s.batch, s.scratch, s.windows, 0
	return nil
}

// decode reads a snapshot and checks all of it against this Env: it may come from a damaged file.
func (e *Env) decode(b []byte) (*snapshot, error) {
	if e.plugin.metered.State != "" {
		return nil, fmt.Errorf("the module has %s", e.plugin.metered.State)
	}
	b, ok := bytes.CutPrefix(b, e.identity())
	if !ok {
		return nil, fmt.Errorf("the snapshot is not of %s with %d environments and autoreset %v", e.plugin.path,
			e.options.Envs, e.options.Autoreset)
	}
	var head snapshotHead
	read := func(into any) {
		n, err := binary.Decode(b, binary.LittleEndian, into)
		b, ok = b[n:], ok && err == nil
	}
	read(&head)
	if !ok || int(head.Globals) != e.plugin.metered.Globals || head.Size%wasmPage != 0 ||
		head.Size < e.plugin.memoryMin || head.Size > addressable {
		return nil, errDamaged
	}
	s := &snapshot{batch: head.Batch, scratch: head.Scratch}
	s.state = state{size: head.Size, fuel: head.Fuel, steps: head.Steps, skipped: head.Skipped, argsPtr: head.ArgsPtr,
		errorPtr: head.ErrorPtr, entropy: make([]uint64, e.options.Envs+1), globals: make([]uint64, head.Globals)}
	read(s.entropy)
	read(s.globals)
	for ; head.Windows > 0 && ok; head.Windows-- {
		var w [4]uint32
		read(&w)
		s.windows = append(s.windows, &window{block: w[0], ptr: w[1], bytes: w[2], bindings: w[3]})
		s.donated += uint64(w[2])
	}
	for ok = ok && uint64(len(b)) == uint64(head.Pages)*pageBytes; ok && len(b) > 0; b = b[pageBytes:] {
		s.pages = append(s.pages, page{number: binary.LittleEndian.Uint32(b), data: b[4:pageBytes:pageBytes]})
	}
	if !ok || !s.plausible(e) {
		return nil, errDamaged
	}
	if limit := e.plugin.config.Memory; s.size > limit+s.donated {
		return nil, fmt.Errorf("the snapshot has %s of memory without windows, the limit is %s", byteSize(s.size-s.donated), byteSize(limit))
	}
	return s, nil
}

var errDamaged = errors.New("the snapshot is damaged")

// plausible reports whether every address in a snapshot lies in its memory, and no two windows overlap.
func (s *snapshot) plausible(e *Env) bool {
	within := func(ptr, n uint32) bool { return uint64(ptr) <= s.size && uint64(n) <= s.size-uint64(ptr) }
	ok := within(s.scratch, e.scratchBytes()) && within(s.errorPtr, errorBytes) &&
		within(s.argsPtr, uint32(len(e.plugin.args)))
	for _, w := range s.windows {
		ok = ok && within(w.ptr, w.bytes) && w.ptr%hostPage == 0 && w.bytes%hostPage == 0 &&
			within(w.bindings, e.plugin.bindingsBytes())
	}
	ordered := slices.SortedFunc(slices.Values(s.windows), func(a, b *window) int { return cmp.Compare(a.ptr, b.ptr) })
	for k := 1; k < len(ordered); k++ {
		ok = ok && !overlap(ordered[k-1].ptr, ordered[k-1].bytes, ordered[k].ptr, ordered[k].bytes)
	}
	for _, p := range s.pages {
		ok = ok && uint64(p.number) < s.size/hostPage
	}
	return ok
}
