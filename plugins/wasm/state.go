package wasm

import (
	"fmt"
	"slices"
)

// state is the state of an instance besides its memory.
type state struct {
	size    uint64 // of the memory
	donated uint64 // bytes of it that are windows
	globals []uint64
	fuel    uint64
	steps   uint64
	skipped int64
	entropy []uint64

	argsPtr, errorPtr uint32
}

func (i *instance) state() state {
	s := state{size: i.mem.size, donated: i.mem.donated, fuel: i.fuel.used(), steps: i.host.steps, skipped: i.host.skipped,
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

// growTo makes the memory at least as large as in a state, with as much of it windows. Memory cannot shrink.
func (i *instance) growTo(s *state) error {
	i.mem.donated = s.donated
	if i.mem.size >= s.size {
		return nil
	}
	if _, ok := i.module.Memory().Grow(uint32((s.size - i.mem.size) / wasmPage)); !ok {
		return fmt.Errorf("guest memory cannot grow from %d to %d bytes", i.mem.size, s.size)
	}
	return nil
}

// changedSince is changedPages against the image in which the memory began. It reads only pages that may have been written.
func (i *instance) changedSince(img *image, skip func(offset uint64) bool) []page {
	mem := i.mem.bytes()
	if img.file == nil { // smaller than what it takes to ask
		return changedPages(mem, img.content, skip)
	}
	var changed []page
	for number, untouched := range i.mem.untouched() {
		offset := uint64(number) * hostPage
		if untouched && (offset < i.mem.imaged || offset >= img.size) && (skip == nil || !skip(offset)) {
			continue
		}
		if p, ok := changedPage(mem, img.content, int(offset), skip); ok {
			changed = append(changed, p)
		}
	}
	return changed
}

// delta is a state with its memory as the difference from an image, or from zero.
type delta struct {
	state
	pages []page
}

// restoreDelta puts the instance into a state. All its windows become ordinary memory; base may be nil.
func (i *instance) restoreDelta(base *image, d *delta) error {
	if err := i.growTo(&d.state); err != nil {
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

// copyLimit is the size up to which copying an image is cheaper than mapping it and faulting its pages in.
const copyLimit = 256 << 10

// image is the state of an instance that has described itself; environments begin from it. Large ones lie in a
// sealed file, so that instances share the pages that they do not write.
type image struct {
	state
	content []byte // read-only where it is a mapping
	pages   []page // of content that are not zero, where there is no file
	file    *imageFile
}

// takeImage captures the instance, which must have no windows.
func (i *instance) takeImage() (*image, error) {
	img := &image{state: i.state()}
	if img.size <= copyLimit {
		img.content = append(make([]byte, 0, img.size), i.mem.bytes()...)
		img.pages = changedPages(img.content, nil, nil)
		return img, nil
	}
	f, err := newImageFile(i.mem.bytes())
	if err != nil {
		return nil, fmt.Errorf("keep image of %d bytes: %w", img.size, err)
	}
	img.file, img.content = f, f.content
	return img, nil
}

// putInto makes the beginning of a memory equal to the image. The memory must be at least as large.
func (img *image) putInto(mem *linear) error {
	if img.file != nil {
		return mem.mapPrivate(img.file.fd, 0, img.size)
	}
	// Fresh pages first: there may be windows, and copied pages must not appear in them.
	if err := mem.mapZero(0, img.size); err != nil {
		return err
	}
	copyPages(mem.bytes(), img.pages)
	return nil
}

// restoreImage puts a fresh instance into the state of the image.
func (i *instance) restoreImage(img *image) error {
	return i.restoreDelta(img, &delta{state: img.state})
}

func (img *image) close() {
	if img.file != nil {
		img.file.close()
	}
}
