package ptx

import (
	"math/bits"
	"sync/atomic"
)

// atomicPeek is peek for memory that others are writing. Numbers of one or two bytes have no such operation in Go, nor need
// one: nothing that the interpreter runs writes half of them.
func atomicPeek(b []byte, off uint64, size int) uint64 {
	switch size {
	case 4:
		return uint64(atomic.LoadUint32(word32(b, off)))
	case 8:
		return atomic.LoadUint64(word64(b, off))
	}
	return peek(b, off, size)
}

// atomicPoke is poke for memory that others are reading.
func atomicPoke(b []byte, off uint64, size int, value uint64) {
	switch size {
	case 4:
		atomic.StoreUint32(word32(b, off), uint32(value))
	case 8:
		atomic.StoreUint64(word64(b, off), value)
	default:
		poke(b, off, size, value)
	}
}

// atomicInst is an atom or red instruction.
type atomicInst struct {
	line  int
	at    address
	dtype dtype
	op    func(old, x, y uint64) uint64 // y of cas
	fresh bool                          // whether the old value need not have been written
	dest  slot                          // row -1 for red
	x, y  slot                          // y.row is -1 but for cas
}

// compileAtomic compiles atom and red.
func compileAtomic(b *binder) exec {
	args := b.Args
	a := &atomicInst{line: b.Line, dtype: b.dtype(), dest: slot{row: -1}, y: slot{row: -1}}
	if a.dtype.Bits != 32 && a.dtype.Bits != 64 || a.dtype.Float() {
		b.bad("not for this type")
	}
	want := 2
	if b.Inst.Mods[0] == "atom" {
		want = 3
	}
	name := b.oneOf("add", "min", "max", "exch", "cas")
	if name == "cas" {
		want++
	}
	b.count(want)
	if b.Inst.Mods[0] == "atom" {
		a.dest = b.slot(args[0], a.dtype)
		args = args[1:]
	}
	sp := b.space()
	b.qualifiers()
	if sp != generic && sp != global && sp != shared {
		b.bad("not in this space")
	}
	a.at = b.address(args[0], sp)
	a.x = b.slot(args[1], a.dtype)
	if name == "cas" {
		a.y = b.slot(args[2], a.dtype)
	}
	if a.op = atomicOp(name, a.dtype); a.op == nil {
		b.bad("not an operation that is run")
	}
	a.fresh = name == "exch"
	return a.run
}

// atomicOp returns the function of an operation from the old value to the new one, or nil. Values of 32 bits have zeros above.
func atomicOp(name string, t dtype) func(old, x, y uint64) uint64 {
	mask := ^uint64(0) >> (64 - t.Bits)
	switch name {
	case "add":
		return func(old, x, _ uint64) uint64 { return (old + x) & mask }
	case "min", "max":
		return func(old, x, _ uint64) uint64 {
			less := old < x
			if t.Signed() {
				less = int64(t.Extend(old)) < int64(t.Extend(x))
			}
			if less == (name == "min") {
				return old
			}
			return x
		}
	case "exch":
		return func(_, x, _ uint64) uint64 { return x }
	case "cas":
		return func(old, x, y uint64) uint64 {
			if old == x {
				return y
			}
			return old
		}
	}
	return nil
}

// run executes the operation for the lanes of m, one after the other.
func (a *atomicInst) run(w *warp, m uint32) {
	if !a.at.check(w, m) {
		return
	}
	released := false
	for all := m; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		x, ok := a.operand(w, a.x, lane)
		y := uint64(0)
		if a.y.row >= 0 && ok {
			y, ok = a.operand(w, a.y, lane)
		}
		if !ok {
			return
		}
		at, ok := w.locate(a.at.space, a.at.of(w, lane), uint64(a.dtype.Bytes()), lane)
		if !ok {
			return
		}
		if at.space == global && !released {
			released = true
			w.cta.fences.release(w, all)
		}
		old, ok := a.exchange(w, at, lane, x, y)
		if !ok {
			return
		}
		a.dest.set(w, lane, old, true)
	}
}

// operand is the value of a register that must have been written.
func (a *atomicInst) operand(w *warp, s slot, lane int) (uint64, bool) {
	value, defined := s.get(w, lane)
	if !defined {
		w.raise(1<<lane, Uninitialised, 0, "an operand%s", w.poisons.origin())
	}
	return value, defined
}

// exchange applies the operation to the value at a location and returns its old value.
func (a *atomicInst) exchange(w *warp, at location, lane int, x, y uint64) (old uint64, ok bool) {
	size := a.dtype.Bytes()
	address := a.at.of(w, lane)
	switch at.space {
	case shared:
		s := &w.cta.shadow
		if other := s.store(s.key(w, lane), at.off, uint64(size), strong, false); other >= 0 {
			w.raise(1<<lane, SharedRace, address, "thread %d has been there, and no barrier is between", other)
			return 0, false
		}
		old = peek(at.bytes, at.off, size)
		poke(at.bytes, at.off, size, a.op(old, x, y))
	case global:
		old = a.exchangeGlobal(at, x, y)
	default:
		w.raise(1<<lane, BadAddress, address, "an atomic operation outside shared and global memory")
		return 0, false
	}
	if !a.fresh && poisoned(at.bytes, at.off, size, old) {
		w.poisons = poisonSource{a.line, address}
		w.raise(1<<lane, Uninitialised, address, "an atomic operation on a value that%s", w.poisons.origin())
		return 0, false
	}
	return old, true
}

// exchangeGlobal is exchange where other CTAs do the same.
func (a *atomicInst) exchangeGlobal(at location, x, y uint64) uint64 {
	if a.dtype.Bits == 64 {
		word := word64(at.bytes, at.off)
		for {
			old := atomic.LoadUint64(word)
			if atomic.CompareAndSwapUint64(word, old, a.op(old, x, y)) {
				return old
			}
		}
	}
	word := word32(at.bytes, at.off)
	for {
		old := atomic.LoadUint32(word)
		if atomic.CompareAndSwapUint32(word, old, uint32(a.op(uint64(old), x, y))) {
			return uint64(old)
		}
	}
}
