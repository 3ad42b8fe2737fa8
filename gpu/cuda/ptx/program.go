package ptx

import "github.com/rlhost/rlhost/gpu/cuda/ptx/internal/syntax"

// lanes is the number of threads of a warp.
const lanes = 32

// everyone is the mask of all lanes of a warp.
const everyone = ^uint32(0)

// word is what registers hold: 32 bits, also for types of 16, or 64.
type word interface{ uint32 | uint64 }

// program is a compiled entry.
type program struct {
	blocks  []block // in the order in which groups of lanes run, the first is the entry's beginning
	rows    [3]int  // registers of each file
	fixed   []fixedRow
	special []specialRow
}

// fixedRow is a register that holds a number of the text.
type fixedRow struct {
	file file
	row  int
	bits uint64
}

// specialRow is a register that holds the value of a special register.
type specialRow struct {
	row  int
	name string
}

// file is one of a warp's three sets of registers.
type file uint8

const (
	file32 file = iota
	file64
	filePred
)

// exec executes an instruction for the lanes of a mask.
type exec func(w *warp, m uint32)

// step is an instruction within a block.
type step struct {
	run     exec
	guard   int // register of its predicate, -1 without
	negated bool
	inst    *syntax.Inst
}

// block is a run of instructions that are all executed once the first one is.
type block struct {
	steps []step
	end   end
}

// endKind says how a block ends.
type endKind uint8

const (
	falls    endKind = iota // into the next block
	branches                // to target, or falls where the guard is false
	jumps                   // to one of targets, by an index
	leaves                  // the entry, where the guard is true
	traps
	meets // at the barrier: such a block has no steps
)

// end is what follows a block's last step.
type end struct {
	kind    endKind
	guard   int // -1 without
	negated bool
	next    int // block after it in the text
	target  int
	targets []int
	index   int // register of jumps
	inst    *syntax.Inst
}

// last reports whether the block does nothing but leave, so that a lane that comes here can leave at once.
func (b *block) last() bool {
	return len(b.steps) == 0 && b.end.kind == leaves && b.end.guard < 0
}

// successors calls visit with the blocks that can follow b.
func (b *block) successors(visit func(int)) {
	switch b.end.kind {
	case falls, meets:
		visit(b.end.next)
	case branches:
		visit(b.end.target)
		if b.end.guard >= 0 {
			visit(b.end.next)
		}
	case jumps:
		for _, t := range b.end.targets {
			visit(t)
		}
		if b.end.guard >= 0 {
			visit(b.end.next)
		}
	case leaves, traps:
		if b.end.guard >= 0 {
			visit(b.end.next)
		}
	}
}
