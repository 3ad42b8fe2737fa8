package wasm

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/plugins/wasm/guest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/linear"
	"github.com/rlhost/rlhost/plugins/wasm/internal/words"
)

// Snapshot returns the guest's memory without its windows, its globals, and the host's state for it. ErrUnsupported
// if the module can change more than that.
func (e *Env) Snapshot() ([]byte, error) {
	if err := e.gate.Enter(); err != nil {
		return nil, err
	}
	defer e.gate.Leave()
	if more := e.plugin.file.Metered.State; more != "" {
		return nil, fmt.Errorf("%w: %s: snapshot of a module with %s", env.ErrUnsupported, e.options.Name, more)
	}
	return e.encode(e.inst.SaveWhole(e.inWindow)), nil
}

// StateBytes makes a batch and returns the size of its memory: a state has its pages that are not all zero. See env.Saver.
func (p *Plugin) StateBytes(envs int) (int64, error) {
	made, err := p.NewEnv(env.Options{Name: "forecast", Envs: envs, Autoreset: p.spec.PickAutoreset()})
	if err != nil {
		return 0, err
	}
	const besides = 4 << 10 // identity, head, globals and windows
	bytes := len(made.(*Env).inst.Mem.Bytes())/linear.HostPage*pageBytes + 8*(envs+1) + besides
	if p.file.Metered.State != "" {
		bytes = 0 // nothing is saved
	}
	return int64(bytes), made.Close()
}

// snapshotHead follows the identity. All numbers are little endian.
type snapshotHead struct {
	Size, Fuel, Steps          uint64
	Skipped                    int64
	Batch                      uint64
	ArgsPtr, ErrorPtr, Scratch uint32
	Globals, Windows, Pages    uint32 // how many follow; random streams come before them, one more than environments
}

// pageBytes is the size of a page in a snapshot: its number and its content.
const pageBytes = 4 + linear.HostPage

// encode writes a snapshot: identity, head, random streams, globals, windows, open files of a guest with data, pages.
func (e *Env) encode(s *guest.Saved) []byte {
	le := binary.LittleEndian
	b := append(make([]byte, 0, 256+len(s.Pages)*pageBytes), e.identity()...)
	add := func(v any) { b, _ = binary.Append(b, le, v) } // numbers of fixed size always fit
	add(snapshotHead{s.Size, s.Fuel, s.Steps, s.Skipped, e.batch, s.ArgsPtr, s.ErrorPtr, e.scratch,
		uint32(len(s.Globals)), uint32(len(e.windows)), uint32(len(s.Pages))})
	add(slices.Concat(s.Entropy, s.Globals))
	for _, w := range e.windows {
		add([]uint32{w.block, w.ptr, w.bytes, w.bindings})
	}
	if e.plugin.file.Data != nil {
		add(uint32(len(s.Files)))
		add(s.Files)
	}
	for _, p := range s.Pages {
		b = append(le.AppendUint32(b, p.Number), p.Data...)
	}
	return b
}

// snapshot is a decoded snapshot.
type snapshot struct {
	guest.Saved
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
	if e.inst, err = e.inst.Restore(&s.Saved); err != nil {
		e.gate.Poison()
		return e.fault(err)
	}
	e.batch, e.scratch, e.windows, e.rows = s.batch, s.scratch, s.windows, 0
	return nil
}

// decode reads a snapshot and checks all of it against this Env: it may come from a damaged file.
func (e *Env) decode(b []byte) (*snapshot, error) {
	if e.plugin.file.Metered.State != "" {
		return nil, fmt.Errorf("the module has %s", e.plugin.file.Metered.State)
	}
	b, ok := bytes.CutPrefix(b, e.identity())
	if !ok {
		return nil, fmt.Errorf("the snapshot is not of %s with %d environments and autoreset %v", e.plugin.file.Path,
			e.options.Envs, e.options.Autoreset)
	}
	var head snapshotHead
	read := func(into any) {
		n, err := binary.Decode(b, binary.LittleEndian, into)
		b, ok = b[n:], ok && err == nil
	}
	read(&head)
	if !ok || int(head.Globals) != e.plugin.file.Metered.Globals || head.Size%linear.WasmPage != 0 ||
		head.Size < e.plugin.file.MemoryMin || head.Size > linear.Addressable {
		return nil, errDamaged
	}
	s := &snapshot{batch: head.Batch, scratch: head.Scratch}
	s.Whole = true
	s.State = guest.State{Size: head.Size, Fuel: head.Fuel, Steps: head.Steps, Skipped: head.Skipped, ArgsPtr: head.ArgsPtr,
		ErrorPtr: head.ErrorPtr, Entropy: make([]uint64, e.options.Envs+1), Globals: make([]uint64, head.Globals)}
	read(s.Entropy)
	read(s.Globals)
	for ; head.Windows > 0 && ok; head.Windows-- {
		var w [4]uint32
		read(&w)
		s.windows = append(s.windows, &window{block: w[0], ptr: w[1], bytes: w[2], bindings: w[3]})
		s.Donated += uint64(w[2])
	}
	if data := e.plugin.file.Data; data != nil {
		var open uint32
		read(&open)
		for ; open > 0 && ok; open-- {
			var f guest.OpenFile
			read(&f)
			ok = ok && int(f.Entry) <= len(data.Entries)
			s.Files = append(s.Files, f)
		}
	}
	for ok = ok && uint64(len(b)) == uint64(head.Pages)*pageBytes; ok && len(b) > 0; b = b[pageBytes:] {
		s.Pages = append(s.Pages, linear.Page{Number: binary.LittleEndian.Uint32(b), Data: b[4:pageBytes:pageBytes]})
	}
	if !ok || !s.plausible(e) {
		return nil, errDamaged
	}
	if limit := e.plugin.file.Config.Memory; s.Size > limit+s.Donated {
		return nil, fmt.Errorf("the snapshot has %s of memory without windows, the limit is %s", words.Bytes(s.Size-s.Donated), words.Bytes(limit))
	}
	return s, nil
}

var errDamaged = errors.New("the snapshot is damaged")

// plausible reports whether every address in a snapshot is in its memory, and no two windows overlap.
func (s *snapshot) plausible(e *Env) bool {
	within := func(ptr, n uint32) bool { return uint64(ptr) <= s.Size && uint64(n) <= s.Size-uint64(ptr) }
	ok := within(s.scratch, e.scratchBytes()) && within(s.ErrorPtr, guest.ErrorBytes) &&
		within(s.ArgsPtr, uint32(len(e.plugin.file.Args)))
	for _, w := range s.windows {
		ok = ok && within(w.ptr, w.bytes) && w.ptr%linear.HostPage == 0 && w.bytes%linear.HostPage == 0 &&
			within(w.bindings, e.plugin.bindingsBytes())
	}
	ordered := slices.SortedFunc(slices.Values(s.windows), func(a, b *window) int { return cmp.Compare(a.ptr, b.ptr) })
	for k := 1; k < len(ordered); k++ {
		ok = ok && !guest.Overlap(ordered[k-1].ptr, ordered[k-1].bytes, ordered[k].ptr, ordered[k].bytes)
	}
	for _, p := range s.Pages {
		ok = ok && uint64(p.Number) < s.Size/linear.HostPage
	}
	return ok
}
