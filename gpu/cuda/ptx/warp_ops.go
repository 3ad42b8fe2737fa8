package ptx

import (
	"math/bits"

	"github.com/rlhost/rlhost/gpu/cuda/ptx/internal/syntax"
)

// complete faults where a lane of m names in a register a mask without itself, or with lanes that have not left and do not execute
// the instruction, and reports whether none does.
func (w *warp) complete(row int, m uint32) bool {
	if missing := m &^ w.r32.defined[row]; missing != 0 {
		w.raise(missing, Uninitialised, 0, "the mask of lanes%s", w.poisons.origin())
		return false
	}
	for rest := m; rest != 0; rest &= rest - 1 {
		lane := bits.TrailingZeros32(rest) & 31
		if own := w.r32.rows[row][lane]; own>>lane&1 == 0 {
			w.raise(1<<lane, MissingLanes, 0, "the mask %#x is without the lane itself", own)
			return false
		} else if missing := own & w.live &^ m; missing != 0 {
			w.raise(1<<lane, MissingLanes, 0, "the mask %#x names lanes %#x, which are elsewhere", own, missing)
			return false
		}
	}
	return true
}

// compileWarpBarrier compiles bar.warp.sync.
func compileWarpBarrier(b *binder) exec {
	if !b.has("warp") || !b.has("sync") {
		b.bad("not a barrier that is run")
	}
	b.count(1)
	mask := b.source(0, b32Type)
	return func(w *warp, m uint32) {
		if w.complete(mask, m) {
			w.syncs++
		}
	}
}

// compileShuffle compiles shfl.sync: each lane reads a register of another one.
func compileShuffle(b *binder) exec {
	t := b.bitType(32)
	mode := b.oneOf("up", "down", "bfly", "idx")
	if !b.has("sync") || mode == "" {
		b.bad("only shfl.sync is run")
	}
	b.count(5)
	o, p := b.Args[0], -1
	if o.Kind == syntax.Pair {
		p = b.predicate(o.Pair)
		o.Kind = syntax.Register
	}
	d := b.slot(o, t)
	if d.file != file32 || d.row < 0 {
		b.bad("the result is no register of 32 bits")
	}
	x, by, clamp, mask := b.source(1, t), b.source(2, t), b.source(3, t), b.source(4, t)
	return func(w *warp, m uint32) {
		if !w.complete(mask, m) {
			return
		}
		if missing := m &^ (w.r32.defined[by] & w.r32.defined[clamp]); missing != 0 {
			w.raise(missing, Uninitialised, 0, "the lane to read%s", w.poisons.origin())
			return
		}
		values, defined := w.r32.rows[x], w.r32.defined[x]
		for rest := m; rest != 0; rest &= rest - 1 {
			lane := bits.TrailingZeros32(rest) & 31
			from, inside := shuffled(mode, lane, w.r32.rows[by][lane], w.r32.rows[clamp][lane])
			known := (m&defined)>>from&1 != 0
			d.set(w, lane, uint64(values[from]), known)
			if p >= 0 {
				w.p.set(p, lane, inside)
			}
		}
	}
}

// set writes a predicate of a lane.
func (p *predicates) set(row, lane int, value bool) {
	p.defined[row] |= 1 << lane
	if p.rows[row] &^= 1 << lane; value {
		p.rows[row] |= 1 << lane
	}
}

// shuffled returns which lane another one reads, itself where that would be outside of its segment.
func shuffled(mode string, lane int, by, clamp uint32) (from int, inside bool) {
	segment, bound := int(clamp>>8&31), int(clamp&31)
	most := lane&segment | bound&^segment
	least := lane & segment
	n := int(by & 31)
	switch mode {
	case "up":
		from = lane - n
		inside = from >= most
	case "down":
		from = lane + n
		inside = from <= most
	case "bfly":
		from = lane ^ n
		inside = from <= most
	default:
		from = least | n&^segment
		inside = from <= most
	}
	if !inside {
		from = lane
	}
	return from, inside
}
