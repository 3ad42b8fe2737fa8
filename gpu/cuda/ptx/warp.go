package ptx

import (
	"math/bits"
	"slices"

	"github.com/rlhost/rlhost/gpu/cuda/ptx/internal/syntax"
)

// registers are the registers of one file of a warp: for each a value a lane, and the lanes that have written it.
type registers[T word] struct {
	rows    [][lanes]T
	defined []uint32
}

// predicates are the registers of one bit a lane.
type predicates struct {
	rows    []uint32
	defined []uint32
}

// group is the lanes of a warp that are about to execute the same block.
type group struct {
	block int
	mask  uint32
}

// warpState is the next action of a warp.
type warpState uint8

const (
	ready warpState = iota
	waiting
	ended
)

// warp is 32 threads that execute in step. Where a branch divides them the group in the lowest block goes first, until
// it comes to the block of another group and both are one again.
type warp struct {
	cta     *cta
	number  int // within the CTA
	r32     registers[uint32]
	r64     registers[uint64]
	p       predicates
	groups  []group // by block, the lowest last; never two in one block
	live    uint32  // lanes that have not left
	state   warpState
	syncs   uint32      // bar.warp.sync executed
	loose   [2]uint32   // lanes that have written to global memory and not executed a fence since, for each scope
	unmet   bool        // whether it has written to global memory since the last barrier
	local   []byte      // of all lanes, one after the other
	steps   int         // instructions executed
	last    *allocation // that the warp looked at last
	poisons poisonSource
	fault   *Fault
}

func of32(w *warp) *registers[uint32] { return &w.r32 }
func of64(w *warp) *registers[uint64] { return &w.r64 }

// run executes about as many instructions as budget says, fewer if all lanes leave or wait, or one faults.
func (w *warp) run(budget int) {
	limit := w.cta.grid.steps
	for until := w.steps + budget; w.steps < until && w.state == ready && w.fault == nil; {
		if len(w.groups) == 0 { // also after a barrier that nothing follows
			w.state = ended
			return
		}
		at := w.pick()
		if at < 0 {
			return
		}
		g := w.groups[at]
		w.groups = slices.Delete(w.groups, at, at+1)
		b := &w.cta.program.blocks[g.block]
		if !w.execute(b, g.mask) {
			return
		}
		w.leave(b, g.mask)
		if w.steps += len(b.steps) + 1; w.steps > limit {
			w.fail(b.end.inst, g.mask, StepLimit, "the warp has executed more than %d instructions", limit)
		}
		if w.fault != nil {
			return
		}
	}
}

// execute runs the steps of a block for the lanes of a mask and reports whether it reached their end.
func (w *warp) execute(b *block, mask uint32) bool {
	for i := range b.steps {
		s := &b.steps[i]
		m := mask
		if s.guard >= 0 {
			if m = w.guarded(s.guard, s.negated, mask, s.inst); m == 0 {
				if w.fault != nil {
					return false
				}
				continue
			}
		}
		s.run(w, m)
		if w.fault != nil {
			w.place(s.inst)
			return false
		}
	}
	return true
}

// guarded returns the lanes of mask whose predicate is true, or false if negated.
func (w *warp) guarded(guard int, negated bool, mask uint32, in *syntax.Inst) uint32 {
	if missing := mask &^ w.p.defined[guard]; missing != 0 {
		w.fail(in, missing, Uninitialised, "predicate %s%s", in.Guard, w.poisons.origin())
		return 0
	}
	if negated {
		return mask &^ w.p.rows[guard]
	}
	return mask & w.p.rows[guard]
}

// pick returns the number of the group that runs next: the lowest that does not wait at a barrier for lanes that may still
// come to it. -1: none can, which is a fault.
func (w *warp) pick() int {
	program := w.cta.program
	for i := len(w.groups) - 1; i >= 0; i-- {
		g := w.groups[i]
		if program.blocks[g.block].end.kind == meets && len(w.groups) > 1 {
			continue
		}
		if i == len(w.groups)-1 {
			return i
		}
		if parked := w.groups[i+1]; program.leads(parked.block, g.block) {
			w.diverged(parked)
			return -1
		}
		return i
	}
	w.diverged(w.groups[len(w.groups)-1])
	return -1
}

// diverged faults since a group has come to a barrier that other lanes of its warp pass by.
func (w *warp) diverged(parked group) {
	in := w.cta.program.blocks[parked.block].end.inst
	w.fail(in, parked.mask, Divergence, "lanes %#x of the warp are here, %#x elsewhere", parked.mask, w.live&^parked.mask)
}

// leave brings the lanes of a mask from the end of a block to the beginnings of others.
func (w *warp) leave(b *block, mask uint32) {
	e := &b.end
	taken := mask
	if e.guard >= 0 {
		if taken = w.guarded(e.guard, e.negated, mask, e.inst); w.fault != nil {
			return
		}
	}
	switch e.kind {
	case branches:
		w.enter(e.target, taken)
	case jumps:
		w.jump(e, taken)
	case leaves:
		w.exit(taken)
	case traps:
		if taken != 0 {
			w.fail(e.inst, taken, Trap, "the kernel stopped itself")
		}
	case meets:
		w.meet(e, taken)
		w.enter(e.next, mask)
		return
	case falls:
		w.enter(e.next, taken)
		return
	}
	w.enter(e.next, mask&^taken)
}

// enter puts lanes at the beginning of a block.
func (w *warp) enter(number int, mask uint32) {
	if mask == 0 {
		return
	}
	if w.cta.program.blocks[number].last() {
		w.exit(mask)
		return
	}
	at := len(w.groups)
	for at > 0 && w.groups[at-1].block < number {
		at--
	}
	if at > 0 && w.groups[at-1].block == number {
		w.groups[at-1].mask |= mask
		return
	}
	w.groups = slices.Insert(w.groups, at, group{number, mask})
}

// exit ends the threads of a mask.
func (w *warp) exit(mask uint32) { w.live &^= mask }

func (w *warp) jump(e *end, mask uint32) {
	if missing := mask &^ w.r32.defined[e.index]; missing != 0 {
		w.fail(e.inst, missing, Uninitialised, "the index of a jump%s", w.poisons.origin())
		return
	}
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		i := w.r32.rows[e.index][lane&31]
		if int64(i) >= int64(len(e.targets)) {
			w.fail(e.inst, 1<<lane, BadAddress, "jump to target %d of %d", i, len(e.targets))
			return
		}
		w.enter(e.targets[i], 1<<lane)
	}
}

// meet makes the warp wait at a barrier. All its lanes must be here.
func (w *warp) meet(e *end, mask uint32) {
	if mask == 0 {
		return
	}
	if mask != w.live {
		w.fail(e.inst, mask, Divergence, "lanes %#x of the warp are here, %#x elsewhere", mask, w.live&^mask)
		return
	}
	w.cta.arrive(w, e.inst)
}

// start brings the warp to the beginning of its entry: lanes are its existing threads.
func (w *warp) start(live uint32) {
	w.live, w.state, w.fault = live, ready, nil
	w.groups = append(w.groups[:0], group{0, live})
	w.steps, w.loose, w.unmet, w.poisons = 0, [2]uint32{}, false, poisonSource{}
	clear(w.r32.defined)
	clear(w.r64.defined)
	clear(w.p.defined)
	poison(w.local)
	w.load()
}

// load gives their values to the registers that hold numbers of the text and special registers.
func (w *warp) load() {
	for _, f := range w.cta.program.fixed {
		switch f.file {
		case file32:
			fill(&w.r32, f.row, uint32(f.bits))
		case file64:
			fill(&w.r64, f.row, f.bits)
		case filePred:
			w.p.rows[f.row], w.p.defined[f.row] = -uint32(f.bits&1), everyone
		}
	}
	for _, s := range w.cta.program.special {
		w.r32.defined[s.row] = everyone
		read := specials[s.name]
		for l := range lanes {
			w.r32.rows[s.row][l] = read(w, l)
		}
	}
}

func fill[T word](r *registers[T], row int, value T) {
	r.defined[row] = everyone
	for l := range r.rows[row] {
		r.rows[row][l] = value
	}
}

// newWarp makes the registers of a warp.
func newWarp(c *cta, number int) *warp {
	n := c.program.rows
	return &warp{
		cta: c, number: number, local: aligned(lanes * c.entry.Local),
		r32: registers[uint32]{make([][lanes]uint32, n[file32]), make([]uint32, n[file32])},
		r64: registers[uint64]{make([][lanes]uint64, n[file64]), make([]uint32, n[file64])},
		p:   predicates{make([]uint32, n[filePred]), make([]uint32, n[filePred])},
	}
}
