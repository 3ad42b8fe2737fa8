package ptx

import (
	"math/bits"

	"github.com/rlhost/rlhost/gpu/cuda/ptx/internal/syntax"
)

// warpMask returns the lanes that an instruction of a warp names in a register, the same for all that execute it, or faults
// where one of them that has not left does not execute it.
func (w *warp) warpMask(row int, m uint32) (uint32, bool) {
	if missing := m &^ w.r32.defined[row]; missing != 0 {
		w.raise(missing, Uninitialised, 0, "the mask of lanes%s", w.poisons.origin())
		return 0, false
	}
	mask := w.r32.rows[row][bits.TrailingZeros32(m)&31]
	for rest := m; rest != 0; rest &= rest - 1 {
		lane := bits.TrailingZeros32(rest) & 31
		if own := w.r32.rows[row][lane]; own>>lane&1 == 0 {
			w.raise(1<<lane, MissingLanes, 0, "the mask %#x is without the lane itself", own)
			return 0, false
		} else if missing := own & w.live &^ m; missing != 0 {
			w.raise(1<<lane, MissingLanes, 0, "the mask %#x names lanes %#x, which are elsewhere", own, missing)
			return 0, false
		} else if own != mask {
			return m, true // groups with masks of their own; each is complete
		}
	}
	return mask & m, true
}

// groupOf returns the lanes that a lane's mask names, of those that execute the instruction.
func (w *warp) groupOf(row, lane int, m uint32) uint32 { return w.r32.rows[row][lane] & m }

// compileWarpBarrier compiles bar.warp.sync.
func compileWarpBarrier(b *binder) exec {
	if !b.has("warp") || !b.has("sync") {
		b.bad("not a barrier that is run")
	}
	b.count(1)
	mask := b.source(0, b32Type)
	return func(w *warp, m uint32) {
		if _, ok := w.warpMask(mask, m); ok {
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
		if _, ok := w.warpMask(mask, m); !ok {
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

// compileVote compiles vote.sync: all, any, uni and ballot.
func compileVote(b *binder) exec {
	t := b.bitType(1, 32)
	mode := b.oneOf("all", "any", "uni", "ballot")
	if !b.has("sync") || mode == "" || (mode == "ballot") != (t.Bits == 32) {
		b.bad("only vote.sync is run")
	}
	b.count(3)
	d := b.dest(0, t)
	last := b.Args[1]
	negated := last.Kind == syntax.Not
	if negated {
		last.Kind = syntax.Register
	}
	p, mask := b.sourceOf(last, predType), b.source(2, b32Type)
	return func(w *warp, m uint32) {
		if _, ok := w.warpMask(mask, m); !ok {
			return
		}
		if missing := m &^ w.p.defined[p]; missing != 0 {
			w.raise(missing, Uninitialised, 0, "the predicate%s", w.poisons.origin())
			return
		}
		yes := w.p.rows[p]
		if negated {
			yes = ^yes
		}
		for rest := m; rest != 0; rest &= rest - 1 {
			lane := bits.TrailingZeros32(rest) & 31
			group := w.groupOf(mask, lane, m)
			if mode == "ballot" {
				w.r32.rows[d][lane] = yes & group
				w.r32.defined[d] |= 1 << lane
				continue
			}
			all, none := yes&group == group, yes&group == 0
			w.p.set(d, lane, mode == "all" && all || mode == "any" && !none || mode == "uni" && (all || none))
		}
	}
}

// compileMatch compiles match.any.sync and match.all.sync: which lanes have the same value.
func compileMatch(b *binder) exec {
	t := b.bitType(32, 64)
	all := b.has("all")
	if !all && !b.has("any") || !b.has("sync") {
		b.bad("only match.any.sync and match.all.sync are run")
	}
	b.count(3)
	o, p := b.Args[0], -1
	if o.Kind == syntax.Pair && all {
		p = b.predicate(o.Pair)
		o.Kind = syntax.Register
	}
	d, x, mask := b.slot(o, b32Type), b.slot(b.Args[1], t), b.source(2, b32Type)
	return func(w *warp, m uint32) {
		if _, ok := w.warpMask(mask, m); !ok {
			return
		}
		for rest := m; rest != 0; rest &= rest - 1 {
			lane := bits.TrailingZeros32(rest) & 31
			group, same, ok := w.groupOf(mask, lane, m), uint32(0), true
			value, _ := x.get(w, lane)
			for others := group; others != 0; others &= others - 1 {
				other := bits.TrailingZeros32(others) & 31
				v, defined := x.get(w, other)
				if ok = ok && defined; v == value {
					same |= 1 << other
				}
			}
			if all && same != group {
				same = 0
			}
			d.set(w, lane, uint64(same), ok)
			if p >= 0 {
				w.p.set(p, lane, same != 0)
			}
		}
	}
}

// compileActive compiles activemask.
func compileActive(b *binder) exec {
	t := b.bitType(32)
	b.count(1)
	d := b.dest(0, t)
	return func(w *warp, m uint32) {
		w.r32.defined[d] |= m
		for rest := m; rest != 0; rest &= rest - 1 {
			w.r32.rows[d][bits.TrailingZeros32(rest)&31] = m
		}
	}
}

// compileRedux compiles redux.sync: one operation over the values of all lanes.
func compileRedux(b *binder) exec {
	t := b.bitType(32)
	name := b.oneOf("add", "min", "max", "and", "or", "xor")
	if !b.has("sync") || name == "" {
		b.bad("not an operation that is run")
	}
	b.count(3)
	op := atomicOp(name, t)
	d, x, mask := b.dest(0, t), b.source(1, t), b.source(2, b32Type)
	return func(w *warp, m uint32) {
		if _, ok := w.warpMask(mask, m); !ok {
			return
		}
		values, defined := w.r32.rows[x], w.r32.defined[x]
		for rest := m; rest != 0; rest &= rest - 1 {
			lane := bits.TrailingZeros32(rest) & 31
			group := w.groupOf(mask, lane, m)
			result := uint64(values[bits.TrailingZeros32(group)&31])
			for others := group & (group - 1); others != 0; others &= others - 1 {
				result = op(result, uint64(values[bits.TrailingZeros32(others)&31]), 0)
			}
			slot{file32, d, 1<<32 - 1}.set(w, lane, result, group&^defined == 0)
		}
	}
}
