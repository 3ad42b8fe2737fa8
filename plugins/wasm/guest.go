package wasm

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
)

// LoadComponent is Load for a module of a component.
func (r *Runtime) LoadComponent(ctx context.Context, path string, source []byte, c env.Source) (*Module, error) {
	m, err := r.load(ctx, path, source, c, components)
	if err != nil {
		return nil, err
	}
	if err := prepareComponent(ctx, m); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// prepareComponent gets the memory for error texts, so that instances have it when they begin.
func prepareComponent(ctx context.Context, m *Module) error {
	return m.prepare(ctx, func(i *instance) error { return i.takeErrorText() })
}

// takeErrorText asks the guest for the memory of error texts.
func (i *instance) takeErrorText() (err error) {
	i.errorPtr, err = i.allocate(errorBytes, 16)
	return err
}

// Guest is one running copy of a component's module, after _initialize. It is driven by one goroutine at a time; its methods are
// not for the goroutine of an import. An error of a call is a *env.Fault: but for FaultStatus, nothing but Restore and Close may
// follow it.
type Guest struct {
	module *Module
	name   string
	inst   *instance
	slot   api.Function // rl_slot
	opts   GuestOptions
	given  []piece // memory that the guest has given to the host
}

// piece is a piece of the guest's memory.
type piece struct {
	at, n  uint32
	window bool
}

// GuestOptions say who a Guest is.
type GuestOptions struct {
	Name     string       // of the component, for messages
	Log      *slog.Logger // nil: the runtime's
	Seed     uint64       // of its random numbers
	Services Services     // nil: none of the functions can be called
}

// NewGuest makes an instance of the module.
func (m *Module) NewGuest(o GuestOptions) (*Guest, error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	g := &Guest{module: m, name: o.Name, opts: o}
	i, err := m.newInstance()
	if err == nil {
		if m.image != nil {
			err = i.restoreImage(m.image)
		} else if err = i.startUp(); err == nil {
			err = i.takeErrorText()
		}
		g.adopt(i)
	}
	if err != nil {
		if i != nil {
			err = g.fault(err)
			i.close()
		}
		return nil, errors.Join(err, m.leave())
	}
	return g, nil
}

// adopt makes an instance the guest's.
func (g *Guest) adopt(i *instance) {
	g.inst = i
	i.serves = g.opts.Services
	i.host.entropy[0] = entropyStream.Seed(g.opts.Seed)
	i.host.name = g.name
	if g.opts.Log != nil {
		i.host.log, i.host.name = g.opts.Log, "" // which says it itself
	}
	g.slot = i.module.ExportedFunction(hostabi.ExportSlot)
}

// Close ends the guest.
func (g *Guest) Close() error {
	g.inst.close()
	return g.module.leave()
}

// Has reports whether the module exports a function.
func (g *Guest) Has(export string) bool { return g.module.exports[export] }

// Slot calls rl_slot. A negative status is a FaultStatus. It allocates nothing.
func (g *Guest) Slot(slot, message uint32) error {
	i := g.inst
	i.host.steps++
	i.begin(g.module.config.Step)
	i.calling = hostabi.ExportSlot
	i.stack[0], i.stack[1] = uint64(slot), uint64(message)
	if err := g.slot.CallWithStack(i.ctx, i.stack[:]); err != nil {
		g.slot = i.module.ExportedFunction(hostabi.ExportSlot) // whose stack may have grown to a hundred megabytes
		return g.fault(i.failed(err))
	}
	if result := int32(uint32(i.stack[0])); result < 0 {
		return g.statusFault(hostabi.ExportSlot, result)
	}
	return nil
}

// Timer calls rl_timer.
func (g *Guest) Timer(timer uint32) error {
	g.inst.host.steps++
	_, err := g.call(hostabi.ExportTimer, g.module.config.Step, uint64(timer))
	return err
}

// Call calls an export that is called rarely and must be there, within the limit on what comes before the first message. A negative
// result is a FaultStatus.
func (g *Guest) Call(export string, args ...uint64) (uint32, error) {
	limit := g.module.config.Init
	n, err := g.call(export, limit, args...)
	return uint32(n), err
}

// Allocate asks the guest for memory for the host; Free gives it back.
func (g *Guest) Allocate(n, align uint32) (uint32, error) {
	at, err := g.inst.allocate(n, align)
	if err == nil {
		err = g.keep(piece{at: at, n: n})
	}
	if err != nil {
		return 0, g.fault(err)
	}
	return at, nil
}

// Donate is Allocate of memory over which the pages of a block are mapped: whole pages, which do not
// count against the guest's limit. Where OverLimit is true after an error, the guest has kept what it was to give.
func (g *Guest) Donate(n uint32) (uint32, error) {
	at, err := g.inst.donate(n)
	if err != nil {
		return 0, g.fault(err)
	}
	if err := g.keep(piece{at, n, true}); err != nil {
		g.inst.takeBack(n)
		return 0, g.fault(err)
	}
	return at, nil
}

// OverLimit reports whether the guest has more memory of its own than its limit. Nothing but Restore and Close may follow then.
func (g *Guest) OverLimit() bool { return g.inst.overLimit() }

// keep notes memory that the guest has given, which must not be what it gave before.
func (g *Guest) keep(new piece) error {
	other := func(p piece) bool { return overlap(new.at, new.n, p.at, p.n) }
	if other(piece{at: g.inst.errorPtr, n: errorBytes}) || slices.ContainsFunc(g.given, other) {
		return badMemory(new.at, new.n, "memory that it gave to the host before")
	}
	g.given = append(g.given, new)
	return nil
}

// Donated returns where the windows are that the guest has given, and how large, in the order in which it did.
func (g *Guest) Donated() iter.Seq2[uint32, uint32] {
	return func(yield func(at, n uint32) bool) {
		for _, p := range g.given {
			if p.window && !yield(p.at, p.n) {
				return
			}
		}
	}
}

// Free gives memory back to the guest. What was a window counts against its limit again.
func (g *Guest) Free(at, n uint32) error {
	if slices.Contains(g.given, piece{at, n, true}) {
		g.inst.takeBack(n)
	}
	if _, err := g.inst.invokeExport(hostabi.ExportFree, g.module.config.Init, uint64(at), uint64(n)); err != nil {
		return g.fault(err)
	}
	g.given = slices.DeleteFunc(g.given, func(p piece) bool { return p.at == at })
	return nil
}

// Gave reports whether the guest has given the host memory that begins there.
func (g *Guest) Gave(at uint32) bool {
	return slices.ContainsFunc(g.given, func(p piece) bool { return p.at == at })
}

// View returns n bytes of the guest's memory in place, or nil where it has no such ones. It is valid until the guest is called.
func (g *Guest) View(at, n uint32) []byte { return g.inst.view(at, n) }

// MapPrivate puts a private view of pages of a file over memory of the guest's: what others write appears there, what the guest
// writes only it sees. All is whole pages.
func (g *Guest) MapPrivate(fd int, offset int64, at, n uint32) error {
	if err := g.mappable(fd, offset, at, n); err != nil {
		return err
	}
	return g.inst.mem.mapPrivateView(fd, offset, uint64(at), uint64(n))
}

// MapShared puts pages of a file over memory of the guest's: what the guest writes there is in the file. All is whole pages.
func (g *Guest) MapShared(fd int, offset int64, at, n uint32) error {
	if err := g.mappable(fd, offset, at, n); err != nil {
		return err
	}
	return g.inst.mem.mapShared(fd, offset, uint64(at), uint64(n))
}

// mappable checks that pages of a file can lie over memory of the guest's.
func (g *Guest) mappable(fd int, offset int64, at, n uint32) error {
	if err := sealed(fd, offset+int64(n)); err != nil {
		return err
	}
	if !g.inst.mem.contains(uint64(at), uint64(n)) {
		return fmt.Errorf("%d bytes at %#x are outside of the guest's memory", n, at)
	}
	return nil
}

// MapZero puts fresh memory in place of what is mapped there.
func (g *Guest) MapZero(at, n uint32) error { return g.inst.mem.mapZero(uint64(at), uint64(n)) }

// Memory returns how much memory the guest has.
func (g *Guest) Memory() uint64 { return g.inst.mem.size }

// SavedGuest is the state of a Guest in memory, without what is mapped.
type SavedGuest struct {
	delta
	given []piece
}

// Save returns the state; nil for a module that can change more than its memory and globals. inWindow reports what is mapped. The
// memory of an earlier state, which may be nil, is used again: nothing else can be done with that.
func (g *Guest) Save(inWindow func(offset uint64) bool, earlier *SavedGuest) *SavedGuest {
	if g.module.metered.State != "" {
		return nil
	}
	if earlier == nil {
		earlier = &SavedGuest{}
	}
	pages := copied(g.inst.changedSince(g.module.image, inWindow), earlier.pages)
	return &SavedGuest{delta{state: g.inst.state(), pages: pages}, append(earlier.given[:0], g.given...)}
}

// Restore puts the guest into a state of its own, after a fault too. Nothing is mapped then. On an error it can only be closed.
func (g *Guest) Restore(s *SavedGuest) error {
	if g.inst.mem.size > s.size || g.inst.mem.broken {
		i, err := g.module.newInstance()
		if err != nil {
			return err
		}
		g.inst.close()
		g.adopt(i)
	}
	g.given = slices.Clone(s.given)
	return g.inst.restoreDelta(g.module.image, &s.delta)
}

func (g *Guest) call(export string, limit time.Duration, args ...uint64) (int32, error) {
	n, err := g.inst.invokeExport(export, limit, args...)
	if err != nil {
		return 0, g.fault(err)
	}
	if n < 0 {
		return n, g.statusFault(export, n)
	}
	return n, nil
}

// fault turns an error of the guest into a *env.Fault.
func (g *Guest) fault(err error) error {
	f := &env.Fault{Kind: env.FaultMemory, Name: g.name, Source: g.module.path, Call: "the host", Env: -1, Component: true, Err: err}
	if g.inst != nil {
		f.Step = g.inst.host.steps
	}
	var call *callError
	if errors.As(err, &call) {
		f.Kind, f.Call, f.Err = call.kind, call.call, call
		if words := g.inst.lastError(); words != "" {
			f.Err = fmt.Errorf("%w: %s", call, words)
		}
	}
	return f
}

func (g *Guest) statusFault(export string, result int32) error {
	text := g.inst.words(hostabi.Status(result))
	return &env.Fault{Kind: env.FaultStatus, Name: g.name, Source: g.module.path, Call: export, Step: g.inst.host.steps, Env: -1, Component: true,
		Err: &StatusError{Status: hostabi.Status(result), Words: g.inst.lastText(), text: text}}
}

// StatusError is a status that a guest has returned.
type StatusError struct {
	Status hostabi.Status
	Words  string // of rl_last_error, as they are
	text   string
}

// Error says what the status means, and the guest's words.
func (e *StatusError) Error() string { return e.text }
