package ptx

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/rlhost/rlhost/gpu/cuda/ptx/internal/syntax"
)

// location is where an access goes: bytes at an offset of them.
type location struct {
	bytes []byte
	off   uint64
	space space       // not generic
	a     *allocation // of global and constant memory
}

// address is an operand in brackets.
type address struct {
	space space
	row   int // of its register, -1 without
	wide  bool
	off   uint64
}

// of returns the address of a lane.
func (a *address) of(w *warp, lane int) uint64 {
	switch {
	case a.row < 0:
		return a.off
	case a.wide:
		return w.r64.rows[a.row][lane] + a.off
	}
	return uint64(w.r32.rows[a.row][lane] + uint32(a.off))
}

// undefined returns the lanes of m for which the address is of a register that was never written.
func (a *address) undefined(w *warp, m uint32) uint32 {
	switch {
	case a.row < 0:
		return 0
	case a.wide:
		return m &^ w.r64.defined[a.row]
	}
	return m &^ w.r32.defined[a.row]
}

// check faults where lanes of m have no address, and reports whether all have one.
func (a *address) check(w *warp, m uint32) bool {
	missing := a.undefined(w, m)
	if missing != 0 {
		w.raise(missing, Uninitialised, 0, "an address%s", w.poisons.origin())
	}
	return missing == 0
}

// locate finds the n bytes at the address of a lane, or faults.
func (w *warp) locate(sp space, address, n uint64, lane int) (at location, ok bool) {
	if address&(n-1) != 0 {
		w.raise(1<<lane, Misaligned, address, "%#x is not a multiple of %d", address, n)
		return at, false
	}
	if sp == generic {
		sp, address = windowOf(address)
	}
	switch sp {
	case shared:
		return w.within(location{bytes: w.cta.shared, off: address, space: shared}, n, lane, SharedBounds)
	case local:
		size := len(w.local) / lanes
		own := w.local[lane*size : (lane+1)*size]
		return w.within(location{bytes: own, off: address, space: local}, n, lane, LocalBounds)
	case param:
		return w.within(location{bytes: w.cta.grid.launch.Args, off: address, space: param}, n, lane, ParamBounds)
	}
	a := w.last
	if a == nil || address-a.base >= a.size {
		if a = find(w.cta.grid.table, address); a == nil {
			w.raise(1<<lane, BadAddress, address, "%d bytes at %#x are outside every allocation", n, address)
			return at, false
		}
		w.last = a
	}
	if off := address - a.base; n <= a.size-off {
		return location{a.bytes, off, sp, a}, true
	}
	w.raise(1<<lane, BadAddress, address, "%d bytes at %#x reach beyond the %d bytes at %#x", n, address, a.size, a.base)
	return at, false
}

// windowOf returns the space that a generic address belongs to, and the address there.
func windowOf(address uint64) (space, uint64) {
	for _, sp := range [...]space{shared, local, param} {
		if off := address - window(sp); off < windowSize {
			return sp, off
		}
	}
	return global, address
}

// within faults if the n bytes are not all there.
func (w *warp) within(at location, n uint64, lane int, kind Kind) (location, bool) {
	size := uint64(len(at.bytes))
	if at.off <= size && n <= size-at.off {
		return at, true
	}
	w.raise(1<<lane, kind, at.off, "%d bytes at %d of %d", n, at.off, size)
	return at, false
}

// peek returns a number of 1, 2, 4 or 8 bytes.
func peek(b []byte, off uint64, size int) uint64 {
	switch size {
	case 1:
		return uint64(b[off])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b[off:]))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b[off:]))
	}
	return binary.LittleEndian.Uint64(b[off:])
}

// poke stores a number of 1, 2, 4 or 8 bytes.
func poke(b []byte, off uint64, size int, value uint64) {
	switch size {
	case 1:
		b[off] = byte(value)
	case 2:
		binary.LittleEndian.PutUint16(b[off:], uint16(value))
	case 4:
		binary.LittleEndian.PutUint32(b[off:], uint32(value))
	default:
		binary.LittleEndian.PutUint64(b[off:], value)
	}
}

// poisoned reports whether a number lies in a word that was never written.
func poisoned(b []byte, off uint64, size int, value uint64) bool {
	switch size {
	case 4:
		return uint32(value) == Poison
	case 8:
		return uint32(value) == Poison || uint32(value>>32) == Poison
	}
	word := off &^ 3
	return word+4 <= uint64(len(b)) && binary.LittleEndian.Uint32(b[word:]) == Poison
}

// poisonPart is what memory keeps of a value that was never written, so that it stays one.
func poisonPart(off uint64, size int) uint64 {
	return (uint64(Poison)<<32 | uint64(Poison)) >> (off & 3 * 8) & (^uint64(0) >> (64 - 8*size))
}

// poisonSource is the place of a warp's last load of a value that was never written.
type poisonSource struct {
	line    int
	address uint64
}

// origin says where an uninitialised value may come from.
func (p poisonSource) origin() string {
	if p.line == 0 {
		return " was never written"
	}
	return fmt.Sprintf(" was never written; line %d has loaded such memory from %#x", p.line, p.address)
}

// raise lets the first of some lanes fault; execute adds the instruction.
func (w *warp) raise(m uint32, kind Kind, address uint64, format string, args ...any) {
	if w.fault != nil {
		return
	}
	n := w.number*lanes + bits.TrailingZeros32(m)
	block := w.cta.grid.launch.Block
	w.fault = &Fault{
		Kind: kind, Entry: w.cta.entry.Name, CTA: w.cta.at, Address: address, Detail: fmt.Sprintf(format, args...),
		Thread: [3]int{n % block[0], n / block[0] % block[1], n / (block[0] * block[1])},
	}
}

// place says in which instruction the warp faults.
func (w *warp) place(in *syntax.Inst) { w.fault.Line, w.fault.Text = in.Line, in.Text }

// fail is raise outside a step.
func (w *warp) fail(in *syntax.Inst, m uint32, kind Kind, format string, args ...any) {
	w.raise(m, kind, 0, format, args...)
	w.place(in)
}
