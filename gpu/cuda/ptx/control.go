package ptx

import (
	"strings"

	"github.com/rlhost/rlhost/gpu/cuda/ptx/internal/syntax"
)

// controls are the instructions that end a block.
var controls = map[string]func(*binder, *end){
	"bra": compileBranch, "brx": compileIndexed,
	"ret": compileLeave, "exit": compileLeave, "trap": compileTrap,
	"bar": compileBarrier,
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

// block returns the block that a label begins.
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

// compileBarrier compiles bar.sync 0, the barrier of all threads of a CTA.
func compileBarrier(b *binder, e *end) {
	if !b.has("sync") || len(b.Args) != 1 || b.Args[0].Kind != syntax.Number || b.Args[0].Imm.Bits != 0 {
		b.bad("only bar.sync 0 is run")
	}
	b.guardOf(e)
	e.kind = meets
}
