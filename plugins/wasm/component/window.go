package component

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/stat"

	"github.com/rlhost/rlhost/hostabi"
)

// maxWindows bounds the windows of an instance, because the system bounds mappings. It is also how many blocks a guest can know.
const maxWindows = 256

// pageBytes is the unit of mappings.
const pageBytes = 4096

// windows are the places in a guest's memory where blocks are mapped.
type windows struct {
	run    *instance
	arenas *arena.Set
	views  [hostabi.MaxArena + 1]*view // by the ID of their arenas
	list   []*window
	clock  uint64 // counts uses
	freed  bool   // the guest has got memory back since the state was saved

	remapped *stat.Counter // windows that were taken from a block for another
}

// window is memory of the guest's over which a block is mapped.
type window struct {
	at, bytes uint32
	view      *view // nil: nothing is mapped
	block     uint32
	handle    hostabi.Handle // of the newest message about it
	shares    []string       // columns, ascending, whose pages are the block's own; other pages are a private view
	used      uint64         // when, by windows.clock
	pins      int            // leases of the block, which stays where it is
}

// view is a guest's view of the blocks of an arena.
type view struct {
	arena   *arena.Arena
	bytes   uint32            // of a block, in whole pages
	columns map[string]*place // where they lie
	windows []*window         // by block; nil where none is mapped
}

// window returns where a block is mapped, after mapping it if it is not, with the pages of columns that may be written.
func (ws *windows) window(h hostabi.Handle, granted []string) (*window, error) {
	w, err := ws.mapped(h)
	if err == nil {
		w.handle = h
	}
	if err != nil || slices.Equal(w.shares, granted) {
		return w, err
	}
	return w, ws.share(w, granted)
}

// share maps the block's own pages for columns that may be written and share no page with others, and a private view for all
// others.
func (ws *windows) share(w *window, granted []string) error {
	a, run := w.view.arena, ws.run
	if len(w.shares) > 0 {
		if err := run.MapPrivate(a.FD(), a.BlockOffset(w.block), w.at, w.bytes); err != nil {
			return err
		}
	}
	w.shares = granted
	return w.remap(run, true)
}

// remap maps the pages of the columns that may be written: the block's own, or a private view.
func (w *window) remap(run *instance, shared bool) (err error) {
	a := w.view.arena
	for _, name := range w.shares {
		p, ok := w.view.columns[name]
		if !ok || !p.apart {
			continue
		}
		bytes := (p.bytes + pageBytes - 1) / pageBytes * pageBytes
		from, at := a.BlockOffset(w.block)+int64(p.offset), w.at+p.offset
		if shared {
			err = run.MapShared(a.FD(), from, at, bytes)
		} else {
			err = run.MapPrivate(a.FD(), from, at, bytes)
		}
		if err != nil {
			return fmt.Errorf("map %s of a block of %s: %w", name, a.Name(), err)
		}
	}
	return nil
}

// mapped is window without writable pages, except pages that were writable in the last use.
func (ws *windows) mapped(h hostabi.Handle) (*window, error) {
	a, err := ws.arenas.Of(h)
	if err != nil {
		return nil, err
	}
	v := ws.views[a.ID()]
	if v == nil || v.arena != a {
		v = ws.newView(a)
	}
	ws.clock++
	if w := v.windows[h.Block()]; w != nil {
		w.used = ws.clock
		return w, nil
	}
	if a.FD() < 0 {
		return nil, fmt.Errorf("blocks of %s are in memory that cannot be mapped", a.Name())
	}
	w, err := ws.room(v.bytes)
	if err != nil {
		return nil, err
	}
	if err := ws.run.MapPrivate(a.FD(), a.BlockOffset(h.Block()), w.at, w.bytes); err != nil {
		return nil, fmt.Errorf("map a block of %s: %w", a.Name(), err)
	}
	w.view, w.block, w.used, w.shares = v, h.Block(), ws.clock, nil
	v.windows[h.Block()] = w
	return w, nil
}

// newView looks at an arena for the first time, and forgets the previous one of that ID.
func (ws *windows) newView(a *arena.Arena) *view {
	if old := ws.views[a.ID()]; old != nil {
		for _, w := range old.windows {
			if w != nil {
				w.view, w.used = nil, 0
			}
		}
	}
	v := &view{arena: a, bytes: uint32((a.BlockBytes() + pageBytes - 1) / pageBytes * pageBytes), columns: placesOf(a.Schema()),
		windows: make([]*window, a.Blocks())}
	ws.views[a.ID()] = v
	return v
}

// room returns a window of that size with nothing mapped: an existing one, a new one, or the least recently used.
func (ws *windows) room(bytes uint32) (*window, error) {
	if w := ws.idle(func(w *window) bool { return w.view == nil && w.bytes == bytes }); w != nil {
		return w, nil
	}
	var refused error
	if len(ws.list) < maxWindows {
		at, err := ws.run.Donate(bytes)
		if err != nil && ws.run.in.OverLimit() {
			return nil, err
		}
		if err == nil {
			w := &window{at: at, bytes: bytes}
			ws.list = append(ws.list, w)
			return w, nil
		}
		refused = err
	}
	if w := ws.idle(func(w *window) bool { return w.bytes == bytes }); w != nil {
		ws.remapped.Inc()
		w.unmap()
		return w, nil
	}
	w := ws.idle(func(w *window) bool { return true })
	if w == nil {
		if refused == nil {
			refused = fmt.Errorf("it has leased the blocks of all its %d windows", maxWindows)
		}
		return nil, refused
	}
	ws.remapped.Inc()
	if err := ws.free(w); err != nil {
		return nil, err
	}
	return ws.room(bytes)
}

// idle returns the fitting window that has not been used for longest and whose block is not leased, or nil.
func (ws *windows) idle(fits func(*window) bool) (least *window) {
	for _, w := range ws.list {
		if w.pins == 0 && fits(w) && (least == nil || w.used < least.used) {
			least = w
		}
	}
	return least
}

// unmap forgets the block that is mapped on a window.
func (w *window) unmap() {
	if w.view != nil {
		w.view.windows[w.block] = nil
		w.view = nil
	}
}

// free gives a window's memory back to the guest.
func (ws *windows) free(w *window) error {
	w.unmap()
	ws.list = slices.DeleteFunc(ws.list, func(o *window) bool { return o == w })
	ws.freed = true
	if err := ws.run.MapZero(w.at, w.bytes); err != nil {
		return err
	}
	return ws.run.Free(w.at, w.bytes)
}

// unmapAll forgets all mapped blocks, after the guest's memory was replaced. The windows are the ones that the guest has given in
// its present state.
func (ws *windows) unmapAll() {
	for _, w := range ws.list {
		w.unmap()
	}
	ws.list = nil
	for at, n := range ws.run.Donated() {
		ws.list = append(ws.list, &window{at: at, bytes: n})
	}
	ws.freed = false
}

// Altered compares the guest's views of blocks with the blocks. Blocks that nobody holds any more are left out.
func (ws *windows) Altered() (columns []string) {
	for _, w := range ws.list {
		if w.view == nil {
			continue
		}
		mem, lease := []byte(nil), arena.Lease{}
		lease, err := w.view.arena.Lease(w.handle)
		if mem = lease.Bytes(); errors.Is(err, arena.ErrState) {
			mem, err = w.view.arena.Loaned(w.handle)
		}
		if err != nil {
			continue
		}
		for name, p := range w.view.columns {
			own := slices.Contains(w.shares, name) && p.apart
			if !own && !bytes.Equal(mem[p.offset:][:p.bytes], ws.run.View(w.at+p.offset, p.bytes)) {
				columns = append(columns, name)
			}
		}
		if lease.Handle() != 0 {
			_ = lease.Release() // of this function alone
		}
	}
	slices.Sort(columns)
	return columns
}

// contain reports whether a place in the guest's memory lies in a window. The contents of a window with nothing mapped are
// worthless.
func (ws *windows) contain(offset uint64) bool {
	return slices.ContainsFunc(ws.list, func(w *window) bool {
		return offset >= uint64(w.at) && offset-uint64(w.at) < uint64(w.bytes)
	})
}
