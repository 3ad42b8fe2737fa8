package guest

import (
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/plugins/wasm/internal/linear"
)

// State is the state of an instance besides the content of its memory.
type State struct {
	Size    uint64 // of the memory
	Donated uint64 // bytes of windows
	Globals []uint64
	Fuel    uint64   // used
	Steps   uint64   // counted
	Skipped int64    // by the guest's clock, in nanoseconds
	Entropy []uint64 // random streams
	Files   []OpenFile

	ArgsPtr, ErrorPtr uint32
}

// Saved is a State with the content of the memory, without its windows.
type Saved struct {
	State
	Pages []linear.Page
	Whole bool // Pages are all that are not zero; else the ones that differ from the module's image
}

func (i *Instance) state() State {
	s := State{Size: i.Mem.Size, Donated: i.Mem.Donated, Fuel: i.fuel.used(), Steps: i.host.steps, Skipped: i.host.skipped,
		Entropy: slices.Clone(i.host.entropy), Files: slices.Clone(i.host.files), ArgsPtr: i.ArgsPtr, ErrorPtr: i.ErrorPtr}
	for _, g := range i.globals {
		s.Globals = append(s.Globals, g.Get())
	}
	return s
}

// setState sets the state of the instance to s. Its memory must have the right size.
func (i *Instance) setState(s *State) {
	for k, g := range i.globals {
		g.Set(s.Globals[k])
	}
	i.fuel.setUsed(s.Fuel)
	i.host.steps, i.host.skipped, i.host.entropy = s.Steps, s.Skipped, slices.Clone(s.Entropy)
	i.host.files = slices.Clone(s.Files)
	i.host.partial = i.host.partial[:0]
	i.ArgsPtr, i.ErrorPtr = s.ArgsPtr, s.ErrorPtr
}

// Save returns the state of the instance, with the pages that differ from its module's image; nil for a module that can change more than
// its memory and globals. Places where inWindow returns true are left out; nil means that none are. The memory of earlier, which may be
// nil, is used again: earlier must not be used afterwards.
func (i *Instance) Save(inWindow func(offset uint64) bool, earlier *Saved) *Saved {
	if i.module.image == nil {
		return nil
	}
	if earlier == nil {
		earlier = &Saved{}
	}
	return &Saved{State: i.state(), Pages: linear.Keep(i.Mem.Changed(i.module.image, inWindow), earlier.Pages)}
}

// SaveWhole is Save of all that is not zero, of any module. The pages are views, valid until the guest is called.
func (i *Instance) SaveWhole(inWindow func(offset uint64) bool) *Saved {
	return &Saved{State: i.state(), Pages: i.Mem.Changed(nil, inWindow), Whole: true}
}

// Restore puts the instance into a state, after a fault too. Nothing is mapped then. It returns the instance, or another one in its place,
// with its owner, where it has more memory than the state or is broken. On an error the returned instance can only be closed.
func (i *Instance) Restore(s *Saved) (*Instance, error) {
	i, err := i.fitting(s.Size)
	if err != nil {
		return i, err
	}
	base := i.module.image
	if s.Whole {
		base = nil
	}
	return i, i.restore(base, s)
}

// restore is Restore in the same instance; base may be nil.
func (i *Instance) restore(base *linear.Image, s *Saved) error {
	if err := i.growTo(&s.State); err != nil {
		return err
	}
	if err := i.Mem.Replace(base, s.Pages); err != nil {
		return err
	}
	i.setState(&s.State)
	return nil
}

// CopyFrom gives the instance the state of another one of the same file, and touches only the pages that differ. windows are the
// other's. If stay is true they are the instance's own too and stay mapped; else its own, which are revoke, become ordinary memory
// first. It returns the instance or another one, as Restore does; nothing is mapped in another one.
func (i *Instance) CopyFrom(o *Instance, windows, revoke []linear.Span, stay bool) (*Instance, error) {
	s := o.state()
	in, err := i.fitting(s.Size)
	if err != nil {
		return in, err
	}
	if in != i {
		revoke, stay = nil, false
	}
	if err := in.growTo(&s); err != nil {
		return in, err
	}
	for _, w := range revoke { // copied pages must not appear in blocks
		if err := in.Mem.MapZero(w.At, w.N); err != nil {
			return in, err
		}
	}
	in.Mem.CopyFrom(o.Mem, in.module.image, o.module.image, windows, stay)
	in.setState(&s)
	return in, nil
}

// fitting returns the instance, or a new one in its place if it has more memory than size, which cannot shrink, or is broken.
func (i *Instance) fitting(size uint64) (*Instance, error) {
	if i.Mem.Size <= size && !i.Mem.Broken {
		return i, nil
	}
	in, err := i.module.instantiate()
	if err != nil {
		return i, err
	}
	i.Close()
	in.owner = i.owner
	return in, nil
}

// growTo makes the memory at least as large as in a state, with as many bytes of windows.
func (i *Instance) growTo(s *State) error {
	i.Mem.Donated = s.Donated
	if i.Mem.Size >= s.Size {
		return nil
	}
	if _, ok := i.wasm.Memory().Grow(uint32((s.Size - i.Mem.Size) / linear.WasmPage)); !ok {
		return fmt.Errorf("guest memory cannot grow from %d to %d bytes", i.Mem.Size, s.Size)
	}
	return nil
}
