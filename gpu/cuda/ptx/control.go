package ptx

import (
	"math/bits"
	"strings"

	"github.com/rlhost/rlhost/gpu/cuda/ptx/internal/syntax"
)

// controls are the instructions that end a block.
var controls = map[string]func(*binder, *end){
	"bra": compileBranch, "brx": compileIndexed,
	"ret": compileLeave, "exit": compileLeave, "trap": compileTrap,
	"bar": compileBarrier, "barrier": compileBarrier,
}

// controlOf returns what compiles an instruction that ends a block, or nil. A barrier of a warp does not.
func controlOf(in *syntax.Inst) func(*binder, *end) {
	if strings.HasPrefix(in.Op, "bar.warp.") {
		return nil
	}
	return controls[in.Mods[0]]
}

// guardOf gives the end of a block the predicate of its instruction.
func (b *binder) guardOf(e *end) {
	if b.Guard != "" {
		e.guard, e.negated = b.predicate(b.Guard), b.Negated
	}
}

func compileBranch(b *binder, e *end) {
	b.has("uni")
	b.count(1)
	b.guardOf(e)
	e.kind, e.target = branches, b.block(b.Args[0].Name)
}

// block returns the block that a label stands before.
func (b *binder) block(label string) int {
	at, ok := b.text.Labels[label]
	if !ok {
		b.bad("label %s is not there", label)
	}
	return b.blockAt[at]
}

func compileIndexed(b *binder, e *end) {
	if !b.has("idx") {
		b.bad("only brx.idx is run")
	}
	b.has("uni")
	b.count(2)
	b.guardOf(e)
	e.kind, e.index = jumps, b.source(0, u32Type)
	table, ok := b.text.Tables[b.Args[1].Name]
	if !ok {
		b.bad("%s is not a list of labels", b.Args[1].Name)
	}
	for _, label := range table {
		e.targets = append(e.targets, b.block(label))
	}
}

func compileLeave(b *binder, e *end) {
	b.has("uni")
	b.count(0)
	b.guardOf(e)
	e.kind = leaves
}

func compileTrap(b *binder, e *end) {
	b.count(0)
	b.guardOf(e)
	e.kind = traps
}

// barrierInst is a barrier of the CTA.
type barrierInst struct {
	id, threads int // registers; threads is -1 for all
	arrives     bool
	reduce      string // "popc", "and", "or" or ""
	source      int    // predicate
	negated     bool
	dest        int
}

// compileBarrier compiles bar.sync, bar.arrive and bar.red, and the longer names of the same.
func compileBarrier(b *binder, e *end) {
	b.has("cta")
	b.has("aligned")
	b.guardOf(e)
	e.kind, e.barrier = meets, &barrierInst{threads: -1}
	args := b.Args
	switch b.oneOf("sync", "arrive", "red") {
	case "sync":
	case "arrive":
		e.barrier.arrives = true
		if len(args) != 2 {
			b.bad("it needs a barrier and a number of threads")
		}
	case "red":
		args = reduction(b, e.barrier)
	default:
		b.bad("only sync, arrive and red are run")
	}
	if len(args) < 1 || len(args) > 2 {
		b.bad("%d operands", len(b.Args))
	}
	e.barrier.id = b.sourceOf(args[0], u32Type)
	if len(args) == 2 {
		e.barrier.threads = b.sourceOf(args[1], u32Type)
	}
}

// reduction compiles the first and the last operand of bar.red and returns the others.
func reduction(b *binder, r *barrierInst) []syntax.Operand {
	n := len(b.Args)
	if n < 3 {
		b.bad("%d operands", n)
	}
	t := b.dtype()
	r.reduce = b.oneOf("popc", "and", "or")
	if r.reduce == "" || (r.reduce == "popc") != (t.Kind != 'p') {
		b.bad("only popc.u32, and.pred and or.pred are run")
	}
	r.dest = b.dest(0, t)
	last := b.Args[n-1]
	if last.Kind == syntax.Not {
		r.negated = true
	}
	r.source = b.predicate(last.Name)
	return b.Args[1 : n-1]
}

// read returns which barrier a warp comes to and for how many threads it is, 0 for all; or faults.
func (b *barrierInst) read(w *warp, in *syntax.Inst) (id, threads int, ok bool) {
	lane := bits.TrailingZeros32(w.live)
	rows := []int{b.id}
	if b.threads >= 0 {
		rows = append(rows, b.threads)
	}
	for _, row := range rows {
		for m := w.live; m != 0; m &= m - 1 {
			other := bits.TrailingZeros32(m)
			if w.r32.rows[row][other&31] != w.r32.rows[row][lane] || w.r32.defined[row]>>other&1 == 0 {
				w.fail(in, 1<<other, Divergence, "lanes come to different barriers")
				return 0, 0, false
			}
		}
	}
	value := w.r32.rows[b.id][lane]
	if value >= barriers {
		w.fail(in, w.live, BadAddress, "barrier %d of %d", value, barriers)
		return 0, 0, false
	}
	if b.threads >= 0 {
		if threads = int(w.r32.rows[b.threads][lane]); threads == 0 || threads%lanes != 0 || threads > MaxBlock {
			w.fail(in, w.live, Divergence, "a barrier for %d threads", threads)
			return 0, 0, false
		}
	}
	return int(value), threads, true
}

// ballot is what warps that met at a barrier have brought.
type ballot struct{ yes, threads int }

// collect counts the predicates of warps that wait at a barrier, if it is one that asks for them.
func collect(all []*warp) (b ballot) {
	for _, w := range all {
		in := w.at.barrier
		if in.reduce == "" {
			continue
		}
		value := w.p.rows[in.source]
		if in.negated {
			value = ^value
		}
		if missing := w.live &^ w.p.defined[in.source]; missing != 0 {
			w.fail(w.at.inst, missing, Uninitialised, "the predicate%s", w.poisons.origin())
		}
		b.yes += bits.OnesCount32(value & w.live)
		b.threads += bits.OnesCount32(w.live)
	}
	return b
}

// deliver gives a warp what all have brought.
func (b *barrierInst) deliver(w *warp, all ballot) {
	switch b.reduce {
	case "":
	case "popc":
		fill(&w.r32, b.dest, uint32(all.yes))
	default:
		w.p.rows[b.dest], w.p.defined[b.dest] = 0, everyone
		if b.reduce == "and" && all.yes == all.threads || b.reduce == "or" && all.yes > 0 {
			w.p.rows[b.dest] = everyone
		}
	}
}
