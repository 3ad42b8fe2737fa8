package ptx

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// What follows is load and store for what kernels spend most of their time with: parameters, and words of 32 bits in registers of
// 32. Where something is wrong with a lane's access, or may be, load and store look at it.

// words reports whether the elements are 32 bits in registers of 32.
func (t *transfer) words() bool {
	return t.size == 4 && !t.strong && !slices.ContainsFunc(t.elements, func(s slot) bool { return s.file != file32 || s.row < 0 || s.mask != 1<<32-1 })
}

// loadParam is load for parameters, where all lanes load from one place.
func (t *transfer) loadParam(w *warp, m uint32) {
	args, n := w.cta.grid.launch.Args, t.bytes()
	off, same := t.at.one(w, m)
	if size := uint64(len(args)); !same || off&(n-1) != 0 || off > size || n > size-off {
		t.load(w, m)
		return
	}
	for i, s := range t.elements {
		value := t.dtype.Extend(peek(args, off+uint64(i*t.size), t.size)) & s.mask
		switch {
		case s.row < 0:
		case s.file == file64:
			spread(&w.r64, s.row, value, m)
		default:
			spread(&w.r32, s.row, uint32(value), m)
		}
	}
}

// one returns the address of all lanes of a mask, if they have the same.
func (a *address) one(w *warp, m uint32) (address uint64, same bool) {
	if a.row < 0 {
		return a.off, true
	}
	if a.undefined(w, m) != 0 {
		return 0, false
	}
	address = a.of(w, bits.TrailingZeros32(m)&31)
	for ; m != 0; m &= m - 1 {
		if a.of(w, bits.TrailingZeros32(m)&31) != address {
			return 0, false
		}
	}
	return address, true
}

// spread gives the lanes of a mask one value.
func spread[T word](r *registers[T], row int, value T, m uint32) {
	if m == everyone {
		fill(r, row, value)
		return
	}
	r.defined[row] |= m
	for ; m != 0; m &= m - 1 {
		r.rows[row][bits.TrailingZeros32(m)&31] = value
	}
}

// inLast returns where in the allocation that the warp looked at last n bytes lie; false if they do not, or are misaligned.
func (w *warp) inLast(address, n uint64) (a *allocation, off uint64, ok bool) {
	if a = w.last; a == nil || address&(n-1) != 0 {
		return nil, 0, false
	}
	off = address - a.base
	return a, off, off < a.size && n <= a.size-off
}

// loadGlobal is load for words of global memory.
func (t *transfer) loadGlobal(w *warp, m uint32) {
	if !t.at.check(w, m) {
		return
	}
	n := t.bytes()
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		if a, off, ok := w.inLast(w.r64.rows[t.at.row][lane]+t.at.off, n); ok && t.loadWords(w, a, off, lane) {
			continue
		}
		if t.load(w, 1<<lane); w.fault != nil {
			return
		}
	}
}

// loadWords loads a lane's words, or returns false: this launch has written there, or no one has.
func (t *transfer) loadWords(w *warp, a *allocation, off uint64, lane int) bool {
	first, key := (a.base+off)/4, w.cta.shadow.key(w, lane)
	for i, e := range t.elements {
		at := off/4 + uint64(i)
		if page := a.writes.pages[at/writerWords].Load(); page != nil && page.marks[at%writerWords].Load()>>32 == w.cta.grid.tag {
			return false
		}
		w.cta.of(first + uint64(i)).noteWord(key)
		value := binary.LittleEndian.Uint32(a.bytes[at*4:])
		if value == Poison {
			return false
		}
		w.r32.rows[e.row][lane] = value
		w.r32.defined[e.row] |= 1 << lane
	}
	return true
}

// storeGlobal is store for words of global memory.
func (t *transfer) storeGlobal(w *warp, m uint32) {
	if t.undefined(w, m) != 0 || !t.at.check(w, m) {
		t.store(w, m)
		return
	}
	if w.cta.fences.store(w, m); w.fault != nil {
		return
	}
	n, mark := t.bytes(), w.cta.grid.mark(w)
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		address := w.r64.rows[t.at.row][lane] + t.at.off
		a, off, ok := w.inLast(address, n)
		if !ok {
			if t.store(w, 1<<lane); w.fault != nil {
				return
			}
			continue
		}
		if !t.claim(w, mark, location{a.bytes, off, global, a}, address, lane) {
			return
		}
		for i, e := range t.elements {
			binary.LittleEndian.PutUint32(a.bytes[off+uint64(i*4):], w.r32.rows[e.row][lane])
		}
	}
}

// undefined returns the lanes of a mask that would store values that were never written.
func (t *transfer) undefined(w *warp, m uint32) (lanes uint32) {
	for _, e := range t.elements {
		lanes |= m &^ w.r32.defined[e.row]
	}
	return lanes
}

// loadShared is load for words of shared memory. Lanes side by side often load the same words: from the third on there is nothing
// left to note of them.
func (t *transfer) loadShared(w *warp, m uint32) {
	if !t.at.check(w, m) {
		return
	}
	n, last, at, times := t.bytes(), 0, ^uint64(0), 0
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		off := t.at.of(w, lane)
		switch {
		case off == at && times >= 2:
			t.repeat(w, lane, last)
			continue
		case w.inShared(off, n) && t.takeShared(w, off, lane):
			if off != at {
				at, times = off, 0
			}
			last, times = lane, times+1
			continue
		}
		if t.load(w, 1<<lane); w.fault != nil {
			return
		}
		at = ^uint64(0)
	}
}

// repeat gives a lane what another one has loaded.
func (t *transfer) repeat(w *warp, lane, from int) {
	for _, e := range t.elements {
		r := &w.r32.rows[e.row]
		r[lane&31] = r[from&31]
		w.r32.defined[e.row] |= 1 << lane
	}
}

// inShared reports whether n bytes are all there, and aligned.
func (w *warp) inShared(off, n uint64) bool {
	size := uint64(len(w.cta.shared))
	return off&(n-1) == 0 && off <= size && n <= size-off
}

// takeShared loads a lane's words, or returns false: one was written since the last barrier, or never.
func (t *transfer) takeShared(w *warp, off uint64, lane int) bool {
	s := &w.cta.shadow
	words, memory := s.words[off/4:][:len(t.elements)], w.cta.shared[off:][:4*len(t.elements)]
	for i := range words {
		if words[i].write>>32 == s.epoch || binary.LittleEndian.Uint32(memory[4*i:]) == Poison {
			return false
		}
	}
	key := s.key(w, lane)
	for i, e := range t.elements {
		words[i].read.noteWord(key)
		w.r32.rows[e.row][lane&31] = binary.LittleEndian.Uint32(memory[4*i:])
		w.r32.defined[e.row] |= 1 << lane
	}
	return true
}

// storeShared is store for words of shared memory.
func (t *transfer) storeShared(w *warp, m uint32) {
	if t.undefined(w, m) != 0 || !t.at.check(w, m) {
		t.store(w, m)
		return
	}
	n := t.bytes()
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		if off := t.at.of(w, lane); w.inShared(off, n) && t.putShared(w, off, lane) {
			continue
		}
		if t.store(w, 1<<lane); w.fault != nil {
			return
		}
	}
}

// putShared stores a lane's words, or returns false: somebody has been there since the last barrier.
func (t *transfer) putShared(w *warp, off uint64, lane int) bool {
	s := &w.cta.shadow
	words := s.words[off/4:][:len(t.elements)]
	for i := range words {
		if words[i].write>>32 == s.epoch || uint64(words[i].read)>>32 == s.epoch {
			return false
		}
	}
	mark := s.key(w, lane) | 15<<2
	memory := w.cta.shared[off:]
	for i, e := range t.elements {
		words[i].write = mark
		binary.LittleEndian.PutUint32(memory[i*4:], w.r32.rows[e.row][lane])
	}
	return true
}
