package wasm

import (
	"bytes"
	"fmt"
	"slices"
)

// state is the state of an instance besides its memory.
type state struct {
	size    uint64 // of the memory
	globals []uint64
	fuel    uint64
	steps   uint64
	skipped int64
	entropy []uint64

	argsPtr, errorPtr uint32
}

func (i *instance) state() state {
	s := state{size: i.mem.size, fuel: i.fuel.used(), steps: i.host.steps, skipped: i.host.skipped,
		entropy: slices.Clone(i.host.entropy), argsPtr: i.argsPtr, errorPtr: i.errorPtr}
	for _, g := range i.globals {
		s.globals = append(s.globals, g.Get())
	}
	return s
}

// setState sets the state of the instance to s. Its memory must have the right size.
func (i *instance) setState(s *state) {
	for k, g := range i.globals {
		g.Set(s.globals[k])
	}
	i.fuel.setUsed(s.fuel)
	i.host.steps, i.host.skipped, i.host.entropy = s.steps, s.skipped, slices.Clone(s.entropy)
	i.host.partial = i.host.partial[:0]
	i.argsPtr, i.errorPtr = s.argsPtr, s.errorPtr
}

// growTo makes the memory at least that large. Memory cannot shrink.
func (i *instance) growTo(size uint64) error {
	if i.mem.size >= size {
		return nil
	}
	if _, ok := i.module.Memory().Grow(uint32((size - i.mem.size) / wasmPage)); !ok {
		return fmt.Errorf("guest memory cannot grow from %d to %d bytes", i.mem.size, size)
	}
	return nil
}

// copied returns pages with contents of their own.
func copied(pages []page) []page {
	for k := range pages {
		pages[k].data = bytes.Clone(pages[k].data)
	}
	return pages
}

// page is a page of memory that differs from what it is compared with.
type page struct {
	number uint32
	data   []byte // hostPage long
}

// changedPages returns the pages of mem, as views of it, that differ from base, which is zero beyond its end, except
// those for which skip returns true.
func changedPages(mem, base []byte, skip func(offset uint64) bool) []page {
	var zero [hostPage]byte
	var changed []page
	for offset := 0; offset+hostPage <= len(mem); offset += hostPage {
		was := zero[:]
		if offset+hostPage <= len(base) {
			was = base[offset : offset+hostPage]
		}
		now := mem[offset : offset+hostPage]
		if skip != nil && skip(uint64(offset)) {
			now = zero[:]
		}
		if !bytes.Equal(now, was) {
			changed = append(changed, page{number: uint32(offset / hostPage), data: now})
		}
	}
	return changed
}

// copyPages puts pages into their places.
func copyPages(mem []byte, pages []page) {
	for _, p := range pages {
		copy(mem[uint64(p.number)*hostPage:], p.data)
	}
}

// delta is a state with its memory as the difference from an image, or from zero.
type delta struct {
	state
	pages []page
}

// restoreDelta puts the instance into a state. All its windows become ordinary memory; base may be nil.
func (i *instance) restoreDelta(base *image, d *delta) error {
	if err := i.growTo(d.size); err != nil {
		return err
	}
	common := uint64(0)
	if base != nil {
		common = base.size
		if err := base.putInto(i.mem); err != nil {
			return err
		}
	}
	if err := i.mem.mapZero(common, i.mem.size-common); err != nil {
		return err
	}
	copyPages(i.mem.bytes(), d.pages)
	i.setState(&d.state)
	return nil
}
