package component

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/guest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/linear"
)

// instance is one running copy of a component's module, after _initialize. It is driven by one goroutine at a time; its methods are
// not for the goroutine of an import. An error of a call is a *env.Fault: unless it is a FaultStatus, only restore and close may
// follow it.
type instance struct {
	in     *guest.Instance
	module *guest.Module
	name   string
	given  []donation // memory that the guest has given to the host
}

// donation is memory that the guest has given to the host.
type donation struct {
	at, n  uint32
	window bool
}

// instanceOptions say who an instance is.
type instanceOptions struct {
	name     string         // of the component, for messages
	log      *slog.Logger   // nil: the runtime's
	seed     uint64         // of its random numbers
	services guest.Services // nil: none of the functions can be called
}

// newInstance makes an instance of a module.
func newInstance(m *guest.Module, o instanceOptions) (*instance, error) {
	if err := m.Enter(); err != nil {
		return nil, err
	}
	g := &instance{module: m, name: o.name}
	i, err := m.NewInstance((*guest.Instance).TakeErrorText)
	if i != nil {
		owner := guest.Owner{Name: o.name, Log: o.log, Services: o.services}
		if o.log != nil {
			owner.Name = "" // which says it itself
		}
		i.SetOwner(owner)
		i.SeedStreams(o.seed)
		g.in = i
	}
	if err != nil {
		if i != nil {
			err = g.fault(err)
			i.Close()
		}
		return nil, errors.Join(err, m.Leave())
	}
	return g, nil
}

// Close ends the guest.
func (g *instance) Close() error {
	g.in.Close()
	return g.module.Leave()
}

// Has reports whether the module exports a function.
func (g *instance) Has(export string) bool { return g.module.File.Exports(export) }

// Slot calls rl_slot. A negative status is a FaultStatus. It allocates nothing.
func (g *instance) Slot(slot, message uint32) error {
	i := g.in
	i.CountStep()
	i.Begin(g.module.File.Config.Step)
	i.Stack[0], i.Stack[1] = uint64(slot), uint64(message)
	result, err := i.Run(guest.Slot)
	if err != nil {
		return g.fault(err)
	}
	if result != 0 {
		return g.statusFault(hostabi.ExportSlot, result)
	}
	return nil
}

// Timer calls rl_timer.
func (g *instance) Timer(timer uint32) error {
	g.in.CountStep()
	return g.status(hostabi.ExportTimer, g.module.File.Config.Step, uint64(timer))
}

// Do calls an export that returns a status, is called rarely and must be there, within the limit on what comes before the first message.
func (g *instance) Do(export string, args ...uint64) error {
	return g.status(export, g.module.File.Config.Init, args...)
}

func (g *instance) status(export string, limit time.Duration, args ...uint64) error {
	n, err := g.call(export, limit, args...)
	if err == nil && n != 0 {
		err = g.statusFault(export, n)
	}
	return err
}

// Call calls an export that returns a number, as Do does others. A negative one is a FaultStatus.
func (g *instance) Call(export string, args ...uint64) (uint32, error) {
	limit := g.module.File.Config.Init
	n, err := g.call(export, limit, args...)
	return uint32(n), err
}

// Allocate asks the guest for memory for the host; Free gives it back.
func (g *instance) Allocate(n, align uint32) (uint32, error) {
	at, err := g.in.Allocate(n, align)
	if err == nil {
		err = g.keep(donation{at: at, n: n})
	}
	if err != nil {
		return 0, g.fault(err)
	}
	return at, nil
}

// Donate is Allocate of memory over which the pages of a block are mapped: whole pages, which do not count against
// the guest's limit. If OverLimit is true after an error, the guest has kept memory that it should have given.
func (g *instance) Donate(n uint32) (uint32, error) {
	at, err := g.in.Donate(n)
	if err != nil {
		return 0, g.fault(err)
	}
	if err := g.keep(donation{at, n, true}); err != nil {
		g.in.TakeBack(n)
		return 0, g.fault(err)
	}
	return at, nil
}

// keep notes memory that the guest has given, which must not overlap memory that it gave before.
func (g *instance) keep(new donation) error {
	other := func(p donation) bool { return guest.Overlap(new.at, new.n, p.at, p.n) }
	if other(donation{at: g.in.ErrorPtr, n: guest.ErrorBytes}) || slices.ContainsFunc(g.given, other) {
		return guest.BadMemory(new.at, new.n, "memory that it gave to the host before")
	}
	g.given = append(g.given, new)
	return nil
}

// Donated returns the places and sizes of the windows that the guest has given, in the order of giving.
func (g *instance) Donated() iter.Seq2[uint32, uint32] {
	return func(yield func(at, n uint32) bool) {
		for _, p := range g.given {
			if p.window && !yield(p.at, p.n) {
				return
			}
		}
	}
}

// Free gives memory back to the guest. A former window counts against its limit again.
func (g *instance) Free(at, n uint32) error {
	if slices.Contains(g.given, donation{at, n, true}) {
		g.in.TakeBack(n)
	}
	if _, err := g.in.Call(hostabi.ExportFree, g.module.File.Config.Init, uint64(at), uint64(n)); err != nil {
		return g.fault(err)
	}
	g.given = slices.DeleteFunc(g.given, func(p donation) bool { return p.at == at })
	return nil
}

// Gave reports whether the guest has given the host memory that begins there.
func (g *instance) Gave(at uint32) bool {
	return slices.ContainsFunc(g.given, func(p donation) bool { return p.at == at })
}

// View returns n bytes of the guest's memory in place, or nil where it has no such ones. It is valid until the guest is called.
func (g *instance) View(at, n uint32) []byte { return g.in.View(at, n) }

// MapPrivate puts a private view of pages of a file over memory of the guest's: the writes of others appear there, and only the
// guest sees its own. All is whole pages.
func (g *instance) MapPrivate(fd int, offset int64, at, n uint32) error {
	if err := g.mappable(fd, offset, at, n); err != nil {
		return err
	}
	return g.in.Mem.MapPrivate(fd, offset, uint64(at), uint64(n))
}

// MapShared puts pages of a file over memory of the guest's: its writes there are in the file. All is whole pages.
func (g *instance) MapShared(fd int, offset int64, at, n uint32) error {
	if err := g.mappable(fd, offset, at, n); err != nil {
		return err
	}
	return g.in.Mem.MapShared(fd, offset, uint64(at), uint64(n))
}

// mappable checks that pages of a file can lie over memory of the guest's.
func (g *instance) mappable(fd int, offset int64, at, n uint32) error {
	if err := linear.Sealed(fd, offset+int64(n)); err != nil {
		return err
	}
	if !g.in.Mem.Contains(uint64(at), uint64(n)) {
		return fmt.Errorf("%d bytes at %#x are outside of the guest's memory", n, at)
	}
	return nil
}

// MapZero puts fresh memory in place of mapped pages.
func (g *instance) MapZero(at, n uint32) error { return g.in.Mem.MapZero(uint64(at), uint64(n)) }

// savedInstance is the state of an instance in memory, without mapped pages.
type savedInstance struct {
	*guest.Saved
	given []donation
}

// Save returns the state; nil for a module that can change more than its memory and globals. inWindow reports whether a place is
// mapped. The memory of earlier, which may be nil, is used again: earlier must not be used afterwards.
func (g *instance) Save(inWindow func(offset uint64) bool, earlier *savedInstance) *savedInstance {
	if earlier == nil {
		earlier = &savedInstance{}
	}
	s := g.in.Save(inWindow, earlier.Saved)
	if s == nil {
		return nil
	}
	return &savedInstance{s, append(earlier.given[:0], g.given...)}
}

// Restore puts the guest back into one of its states, after a fault too. Nothing is mapped then. On an error it can only be closed.
func (g *instance) Restore(s *savedInstance) (err error) {
	g.given = slices.Clone(s.given)
	g.in, err = g.in.Restore(s.Saved)
	return err
}

func (g *instance) call(export string, limit time.Duration, args ...uint64) (int32, error) {
	n, err := g.in.Call(export, limit, args...)
	if err != nil {
		return 0, g.fault(err)
	}
	if n < 0 {
		return n, g.statusFault(export, n)
	}
	return n, nil
}

// fault turns an error of the guest into a *env.Fault.
func (g *instance) fault(err error) error {
	f := &env.Fault{Kind: env.FaultMemory, Name: g.name, Source: g.module.File.Path, Call: "the host", Env: -1, Component: true, Err: err}
	if g.in != nil {
		f.Step = g.in.Steps()
	}
	var call *guest.Error
	if errors.As(err, &call) {
		f.Kind, f.Call, f.Err = call.Kind, call.Call, call
		if words := g.in.LastError(); words != "" {
			f.Err = fmt.Errorf("%w: %s", call, words)
		}
	}
	return f
}

// errPositive is of a status that means nothing.
var errPositive = errors.New("it returned a status that there is not: want 0 or a negative one, got")

// statusFault is the fault of a status other than 0. A positive one has no meaning yet, so the guest has gone wrong.
func (g *instance) statusFault(export string, result int32) error {
	if result > 0 {
		return &env.Fault{Kind: env.FaultOutput, Name: g.name, Source: g.module.File.Path, Call: export, Step: g.in.Steps(), Env: -1, Component: true,
			Err: fmt.Errorf("%w %d", errPositive, result)}
	}
	text := g.in.Words(hostabi.Status(result))
	return &env.Fault{Kind: env.FaultStatus, Name: g.name, Source: g.module.File.Path, Call: export, Step: g.in.Steps(), Env: -1, Component: true,
		Err: &statusError{status: hostabi.Status(result), words: g.in.LastText(), text: text}}
}

// statusError is a status that a guest has returned.
type statusError struct {
	status hostabi.Status
	words  string // of rl_last_error, unchanged
	text   string
}

// Error returns the meaning of the status and the guest's words.
func (e *statusError) Error() string { return e.text }
