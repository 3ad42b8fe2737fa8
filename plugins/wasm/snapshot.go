package wasm

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/env"

	"github.com/rlhost/rlhost/hostabi"
)

// snapshotMagic begins every snapshot; its digit is the version of the format.
const snapshotMagic = "rlwasm2\n"

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

// identity identifies what a snapshot fits: the plugin and how the batch was made.
func (e *Env) identity() []byte {
	hash, _ := hex.DecodeString(e.plugin.hash)
	b := append([]byte(snapshotMagic), hash...)
	b = binary.LittleEndian.AppendUint32(b, uint32(e.options.Envs))
	return binary.LittleEndian.AppendUint32(b, uint32(e.options.Autoreset))
}

// encode writes a snapshot: identity, numbers, globals, windows, pages; all little endian.
func (e *Env) encode(d *delta) []byte {
	le := binary.LittleEndian
	b := make([]byte, 0, 256+len(d.pages)*(hostPage+4))
	b = append(b, e.identity()...)
	for _, v := range []uint64{d.size, d.fuel, d.steps, uint64(d.skipped), e.batch} {
		b = le.AppendUint64(b, v)
	}
	counts := []uint32{d.argsPtr, d.errorPtr, e.scratch, uint32(len(d.globals)), uint32(len(e.windows)), uint32(len(d.pages))}
	for _, v := range counts {
		b = le.AppendUint32(b, v)
	}
	for _, v := range slices.Concat(d.entropy, d.globals) {
		b = le.AppendUint64(b, v)
	}
	for _, w := range e.windows {
		for _, v := range []uint32{w.block, w.ptr, w.bytes, w.bindings} {
			b = le.AppendUint32(b, v)
		}
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

// cursor reads a snapshot; after its end it reads zeros and ok is false.
type cursor struct {
	b  []byte
	ok bool
}

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.ok = false
		return nil
	}
	taken := c.b[:n:n]
	c.b = c.b[n:]
	return taken
}

func (c *cursor) u32() uint32 {
	if b := c.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// decode reads a snapshot and checks all of it against this Env: it may come from a damaged file.
func (e *Env) decode(b []byte) (*snapshot, error) {
	if e.plugin.metered.State != "" {
		return nil, fmt.Errorf("the module has %s", e.plugin.metered.State)
	}
	c := &cursor{b: b, ok: true}
	identity := e.identity()
	if string(c.take(uint64(len(identity)))) != string(identity) {
		return nil, fmt.Errorf("the snapshot is not of %s with %d environments and autoreset %v", e.plugin.path,
			e.options.Envs, e.options.Autoreset)
	}
	s := &snapshot{}
	s.size, s.fuel, s.steps, s.skipped, s.batch = c.u64(), c.u64(), c.u64(), int64(c.u64()), c.u64()
	s.argsPtr, s.errorPtr, s.scratch = c.u32(), c.u32(), c.u32()
	globals, windows, pages := c.u32(), c.u32(), c.u32()
	if !c.ok || int(globals) != e.plugin.metered.Globals || s.size%wasmPage != 0 ||
		s.size < e.plugin.memoryMin || s.size > e.plugin.config.Memory {
		return nil, fmt.Errorf("the snapshot is damaged, or the memory limit is less than its %d bytes", s.size)
	}
	for range e.options.Envs + 1 {
		s.entropy = append(s.entropy, c.u64())
	}
	for range globals {
		s.globals = append(s.globals, c.u64())
	}
	for ; windows > 0 && c.ok; windows-- {
		s.windows = append(s.windows, &window{block: c.u32(), ptr: c.u32(), bytes: c.u32(), bindings: c.u32()})
	}
	for ; pages > 0 && c.ok; pages-- {
		s.pages = append(s.pages, page{number: c.u32(), data: c.take(hostPage)})
	}
	if !c.ok || len(c.b) > 0 || !s.plausible(e) {
		return nil, fmt.Errorf("the snapshot is damaged")
	}
	return s, nil
}

// plausible reports whether every address in a snapshot lies in its memory.
func (s *snapshot) plausible(e *Env) bool {
	within := func(ptr, n uint32) bool { return uint64(ptr) <= s.size && uint64(n) <= s.size-uint64(ptr) }
	ok := within(s.scratch, e.scratchBytes()) && within(s.errorPtr, errorBytes) &&
		within(s.argsPtr, uint32(len(e.plugin.args)))
	for _, w := range s.windows {
		ok = ok && within(w.ptr, w.bytes) && w.ptr%hostPage == 0 && w.bytes%hostPage == 0 &&
			within(w.bindings, uint32(len(e.plugin.spec.Tensors)*hostabi.BindingBytes))
	}
	for _, p := range s.pages {
		ok = ok && uint64(p.number) < s.size/hostPage
	}
	return ok
}
