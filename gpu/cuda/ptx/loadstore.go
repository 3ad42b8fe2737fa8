package ptx

import "math/bits"

// slot is a register that a memory instruction reads or writes.
type slot struct {
	file file
	row  int    // -1: none
	mask uint64 // of the bits that it holds
}

func (s slot) set(w *warp, lane int, value uint64, defined bool) {
	if s.row < 0 {
		return
	}
	var d *uint32
	if s.file == file64 {
		w.r64.rows[s.row][lane] = value & s.mask
		d = &w.r64.defined[s.row]
	} else {
		w.r32.rows[s.row][lane] = uint32(value & s.mask)
		d = &w.r32.defined[s.row]
	}
	if *d |= 1 << lane; !defined {
		*d &^= 1 << lane
	}
}

func (s slot) get(w *warp, lane int) (value uint64, defined bool) {
	if s.file == file64 {
		return w.r64.rows[s.row][lane], w.r64.defined[s.row]>>lane&1 != 0
	}
	return uint64(w.r32.rows[s.row][lane]), w.r32.defined[s.row]>>lane&1 != 0
}

// transfer is a load or a store.
type transfer struct {
	line     int // of the instruction
	at       address
	size     int // bytes of an element
	elements []slot
	dtype    dtype
	strong   bool // volatile, relaxed, acquire or release
	readOnly bool // .nc
}

func (t *transfer) bytes() uint64 { return uint64(t.size * len(t.elements)) }

// flag is the mark of strong accesses in the shadow of shared memory.
func (t *transfer) flag() uint64 {
	if t.strong {
		return strong
	}
	return 0
}

// load executes for the lanes of m what ld says.
func (t *transfer) load(w *warp, m uint32) {
	if !t.at.check(w, m) {
		return
	}
	n := t.bytes()
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		address := t.at.of(w, lane)
		at, ok := w.locate(t.at.space, address, n, lane)
		if !ok || !t.mayLoad(w, at, address, n, lane) {
			return
		}
		for i, s := range t.elements {
			off := at.off + uint64(i*t.size)
			value := t.read(at, off)
			fresh := at.space != param && poisoned(at.bytes, off, t.size, value)
			if fresh {
				w.poisons = poisonSource{t.line, address}
			}
			s.set(w, lane, t.dtype.Extend(value), !fresh)
		}
	}
}

// read returns an element. Strong loads of global memory are atomic: another CTA or the host may be writing.
func (t *transfer) read(at location, off uint64) uint64 {
	if t.strong && at.a != nil {
		return atomicPeek(at.bytes, off, t.size)
	}
	return peek(at.bytes, off, t.size)
}

// mayLoad faults if the bytes are being written by others.
func (t *transfer) mayLoad(w *warp, at location, address, n uint64, lane int) bool {
	switch at.space {
	case shared:
		s := &w.cta.shadow
		if other := s.load(s.key(w, lane), at.off, n, t.flag()); other >= 0 {
			w.raise(1<<lane, SharedRace, address, "thread %d has written there, and no barrier is between", other)
			return false
		}
	case global:
		if t.strong {
			w.cta.grid.acquired[w.cta.number].Store(true)
			return true
		}
		why, own := at.a.writes.read(w, lane, at.off, n)
		if t.readOnly && own {
			w.raise(1<<lane, ReadOnly, address, "ld.global.nc of what this launch has written")
			return false
		}
		if why != "" {
			w.raise(1<<lane, GlobalRace, address, "%s", why)
			return false
		}
		w.cta.note(w, lane, at.a.base+at.off, n)
	}
	return true
}

// store executes for the lanes of m what st says.
func (t *transfer) store(w *warp, m uint32) {
	if !t.at.check(w, m) {
		return
	}
	n := t.bytes()
	for rest := m; rest != 0; rest &= rest - 1 {
		lane := bits.TrailingZeros32(rest) & 31
		address := t.at.of(w, lane)
		at, ok := w.locate(t.at.space, address, n, lane)
		if !ok || !t.mayStore(w, at, address, n, lane) {
			return
		}
		for i, s := range t.elements {
			off := at.off + uint64(i*t.size)
			value, defined := s.get(w, lane)
			if !defined {
				if at.space == global {
					w.raise(1<<lane, Uninitialised, address, "the stored value%s", w.poisons.origin())
					return
				}
				value = poisonPart(off, t.size)
			}
			t.write(at, off, value)
		}
	}
}

func (t *transfer) write(at location, off, value uint64) {
	if t.strong && at.a != nil {
		atomicPoke(at.bytes, off, t.size, value)
		return
	}
	poke(at.bytes, off, t.size, value)
}

// mayStore faults if others read or write the bytes, or the memory is not for writing.
func (t *transfer) mayStore(w *warp, at location, address, n uint64, lane int) bool {
	switch at.space {
	case shared:
		s := &w.cta.shadow
		if other := s.store(s.key(w, lane), at.off, n, t.flag(), t.same(w, at, lane)); other >= 0 {
			w.raise(1<<lane, SharedRace, address, "thread %d has been there, and no barrier is between", other)
			return false
		}
	case param, constant:
		w.raise(1<<lane, ReadOnly, address, "a store to memory that is not for writing")
		return false
	case global:
		if t.strong && at.a.host && n >= 4 {
			w.cta.fences.done(w, 1<<lane)
			return w.fault == nil
		}
		w.cta.fences.store(w, 1<<lane)
		if t.strong || w.fault != nil {
			return w.fault == nil
		}
		return t.claim(w, w.cta.grid.mark(w), at, address, lane)
	}
	return true
}

// claim notes that a lane writes to global memory, or faults if another thread has been there without the lane being able to rely
// on that.
func (t *transfer) claim(w *warp, mark uint64, at location, address uint64, lane int) bool {
	why := at.a.writes.write(w, lane, mark, at.off, t.bytes())
	if why == "" {
		why = w.cta.readBefore(w, lane, at.a.base+at.off, t.bytes())
	}
	if why != "" {
		w.raise(1<<lane, GlobalRace, address, "%s", why)
	}
	return why == ""
}

// same reports whether a store would change nothing.
func (t *transfer) same(w *warp, at location, lane int) bool {
	for i, s := range t.elements {
		value, defined := s.get(w, lane)
		if now := peek(at.bytes, at.off+uint64(i*t.size), t.size); !defined || now != (unsigned(8*t.size)).Extend(value) {
			return false
		}
	}
	return true
}
