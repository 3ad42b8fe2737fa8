package ptx

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/gpu/cuda/ptx/internal/syntax"
)

// compiler turns the text of one entry into its program. What it refuses it panics with, a *SyntaxError that Parse recovers.
type compiler struct {
	entry   *Entry
	module  *Module
	text    *syntax.Entry
	symbols map[string]symbol
	rows    map[string]int // of registers by name
	numbers map[number]int // of registers that hold a number of the text
	blockAt []int          // block that each instruction is in
}

// number is a constant that a register of a file holds.
type number struct {
	file file
	bits uint64
}

func compile(m *Module, tree *syntax.Module, text *syntax.Entry) *Entry {
	e := &Entry{
		Name: text.Name, ParamBytes: text.ParamBytes, MaxThreads: text.MaxThreads, module: m, required: text.Required,
	}
	for _, p := range text.Params {
		e.Params = append(e.Params, Param(p))
	}
	c := &compiler{entry: e, module: m, text: text, symbols: map[string]symbol{}, rows: map[string]int{}, numbers: map[number]int{}}
	c.layOut(tree)
	last := syntax.Inst{Op: "ret", Mods: []string{"ret"}, Text: "the end of the entry", Line: text.Line}
	if n := len(text.Insts); n > 0 {
		last.Line = text.Insts[n-1].Line
	}
	text.Insts = append(text.Insts, last)
	e.program.blocks = order(c.blocks())
	return e
}

// layOut places the variables that the entry uses: its own and the shared ones of the module, dynamic shared memory last.
func (c *compiler) layOut(tree *syntax.Module) {
	vars := c.variables(tree)
	e := c.entry
	for _, v := range vars {
		size := &e.Shared
		if v.Space == "local" {
			size = &e.Local
		}
		at := (*size + v.Align - 1) / v.Align * v.Align
		c.symbols[v.Name] = symbol{spaces[v.Space], uint64(at)}
		*size = at + v.Bytes
		e.Dynamic = e.Dynamic || v.Dynamic
	}
	for _, v := range vars {
		if v.Dynamic {
			c.symbols[v.Name] = symbol{shared, uint64(e.Shared)}
		}
	}
	e.Local = (e.Local + 7) &^ 7
	if e.Shared > MaxShared || e.Local > maxLocal {
		panic(&syntax.Error{Line: c.text.Line, Reason: fmt.Sprintf(
			"entry %s has %d bytes of shared and %d of local memory, more than is run", e.Name, e.Shared, e.Local)})
	}
	for _, p := range e.Params {
		c.symbols[p.Name] = symbol{param, uint64(p.Offset)}
	}
}

// variables returns what layOut places, in its order: dynamic ones last, else those with the largest alignment first.
func (c *compiler) variables(tree *syntax.Module) []syntax.Variable {
	vars := slices.Collect(maps.Values(c.text.Variables))
	used := map[string]bool{}
	for _, in := range c.text.Insts {
		for _, o := range in.Args {
			used[o.Name] = true
		}
	}
	for name, v := range tree.Variables {
		if _, own := c.text.Variables[name]; !own && used[name] && v.Space == "shared" {
			vars = append(vars, v)
		}
	}
	slices.SortFunc(vars, func(a, b syntax.Variable) int {
		if a.Dynamic != b.Dynamic && a.Dynamic {
			return 1
		} else if a.Dynamic != b.Dynamic {
			return -1
		}
		return cmp.Or(cmp.Compare(b.Align, a.Align), strings.Compare(a.Name, b.Name))
	})
	return vars
}

// maxLocal is how much local memory a thread may have.
const maxLocal = 64 << 10

// blocks cuts the instructions where branches come from and go to.
func (c *compiler) blocks() []block {
	insts := c.text.Insts
	starts := c.starts()
	c.blockAt = make([]int, len(insts))
	count := 0
	for i := range insts {
		c.blockAt[i] = count
		if i+1 < len(insts) && starts[i+1] {
			count++
		}
	}
	blocks := make([]block, count+1)
	for i := range insts {
		in, b := &insts[i], &blocks[c.blockAt[i]]
		if b.end.inst == nil {
			b.end = end{kind: falls, guard: -1, next: c.blockAt[i] + 1, target: -1}
		}
		b.end.inst = in
		binding := &binder{compiler: c, Inst: in, mods: slices.Clone(in.Mods[1:])}
		if control := controlOf(in); control != nil {
			control(binding, &b.end)
			binding.finish()
			continue
		}
		if s, ok := binding.bind(); ok {
			b.steps = append(b.steps, s)
		}
	}
	return blocks
}

// starts reports for each instruction whether a block begins there.
func (c *compiler) starts() []bool {
	insts := c.text.Insts
	starts := make([]bool, len(insts)+1)
	starts[0] = true
	for _, at := range c.text.Labels {
		starts[at] = true
	}
	for i, in := range insts {
		if controlOf(&insts[i]) == nil {
			continue
		}
		starts[i+1] = true
		if strings.HasPrefix(in.Op, "bar") {
			starts[i] = true
		}
	}
	return starts
}

// handlers compile the instructions that do not end a block. An instruction without effect compiles to nil.
var handlers = map[string]func(*binder) exec{
	"add": compileArithmetic, "sub": compileArithmetic, "div": compileArithmetic, "rem": compileArithmetic,
	"min": compileArithmetic, "max": compileArithmetic,
	"mul": compileMultiply, "mad": compileMultiplyAdd, "fma": compileFused,
	"abs": compileSign, "neg": compileSign,
	"and": compileLogic, "or": compileLogic, "xor": compileLogic, "not": compileNot,
	"shl": compileShift, "shr": compileShift, "shf": compileFunnel,
	"popc": compileCounting, "clz": compileCounting, "brev": compileReverse, "bfi": compileInsert,
	"setp": compileCompare, "selp": compileChoose,
	"mov": compileMove, "cvta": compileAddress, "cvt": compileConvert,
	"rcp": compileRoot, "sqrt": compileRoot,
	"ld": compileLoad, "st": compileStore, "atom": compileAtomic, "red": compileAtomic,
	"membar": compileFence, "fence": compileFence,
	"bar": compileWarpBarrier, "shfl": compileShuffle, "mma": compileMatrix,
}

// binder compiles one instruction. Its methods end Parse with an error that names the line.
type binder struct {
	*compiler
	*syntax.Inst
	mods []string // parts of the opcode that are not looked at yet
}

func (b *binder) bad(format string, args ...any) {
	panic(&syntax.Error{Line: b.Line, Reason: fmt.Sprintf("%s: %s", b.Text, fmt.Sprintf(format, args...))})
}

// bind compiles an instruction that does not end a block; false if it does nothing.
func (b *binder) bind() (step, bool) {
	handler, ok := handlers[b.Inst.Mods[0]]
	if !ok {
		b.bad("%q is not an instruction that is run", b.Inst.Mods[0])
	}
	run := handler(b)
	b.finish()
	s := step{run: run, guard: -1, negated: b.Negated, inst: b.Inst}
	if b.Guard != "" {
		s.guard = b.predicate(b.Guard)
	}
	return s, run != nil
}

// finish refuses an instruction with parts of the opcode that no handler has read.
func (b *binder) finish() {
	if len(b.mods) > 0 {
		b.bad("%q is not run here", "."+b.mods[0])
	}
}

// has removes a part of the opcode and reports whether it was there.
func (b *binder) has(mod string) bool {
	at := slices.Index(b.mods, mod)
	if at >= 0 {
		b.mods = slices.Delete(b.mods, at, at+1)
	}
	return at >= 0
}

// oneOf removes the first of some parts of the opcode that is there, or returns "".
func (b *binder) oneOf(mods ...string) string {
	for _, m := range mods {
		if b.has(m) {
			return m
		}
	}
	return ""
}

// dtype removes the last part of the opcode, which must be a type.
func (b *binder) dtype() dtype {
	if n := len(b.mods); n > 0 {
		if t, ok := syntax.Types[b.mods[n-1]]; ok {
			b.mods = b.mods[:n-1]
			return t
		}
	}
	b.bad("no type that is run")
	return dtype{}
}

// count refuses an instruction with another number of operands.
func (b *binder) count(n int) {
	if len(b.Args) != n {
		b.bad("%d operands, not %d", len(b.Args), n)
	}
}

// row returns the register of a name and its type.
func (b *binder) row(name string) (int, dtype) {
	t, ok := b.text.Register(name)
	if !ok {
		b.bad("register %s is not declared", name)
	}
	at, ok := b.rows[name]
	if !ok {
		at = b.newRow(fileOf(t))
		b.rows[name] = at
	}
	return at, t
}

func fileOf(t dtype) file {
	switch {
	case t.Kind == 'p':
		return filePred
	case t.Bits == 64:
		return file64
	}
	return file32
}

func (b *binder) newRow(f file) int {
	b.entry.program.rows[f]++
	return b.entry.program.rows[f] - 1
}

// number returns a register that holds a number.
func (b *binder) number(f file, bits uint64) int {
	key := number{f, bits}
	at, ok := b.numbers[key]
	if !ok {
		at = b.newRow(f)
		b.numbers[key] = at
		b.entry.program.fixed = append(b.entry.program.fixed, fixedRow{f, at, bits})
	}
	return at
}

// predicate returns the register of a predicate.
func (b *binder) predicate(name string) int {
	at, t := b.row(name)
	if t.Kind != 'p' {
		b.bad("%s is not a predicate", name)
	}
	return at
}

// dest returns the register of operand i, which is written as a type.
func (b *binder) dest(i int, t dtype) int {
	o := b.Args[i]
	if o.Kind != syntax.Register {
		b.bad("operand %d is not a register", i+1)
	}
	at, declared := b.row(o.Name)
	if fileOf(declared) != fileOf(t) || declared.Kind != 'p' && declared.Bits != t.Bits {
		b.bad("register %s is no %d bits", o.Name, t.Bits)
	}
	return at
}

// source returns the register of operand i, which is read as a type.
func (b *binder) source(i int, t dtype) int { return b.sourceOf(b.Args[i], t) }

func (b *binder) sourceOf(o syntax.Operand, t dtype) int {
	switch o.Kind {
	case syntax.Number:
		return b.number(fileOf(t), o.Imm.As(t))
	case syntax.Name:
		return b.number(fileOf(t), b.symbolValue(o, t))
	case syntax.Register:
	default:
		b.bad("an operand is not a register or a number")
	}
	if read, special := specials[o.Name]; special && read != nil {
		return b.special(o.Name, t)
	}
	at, declared := b.row(o.Name)
	if fileOf(declared) != fileOf(t) || t.Kind != 'p' && declared.Bits != t.Bits {
		b.bad("register %s is no %d bits", o.Name, t.Bits)
	}
	return at
}

// symbolValue is the address of a variable in its space.
func (b *binder) symbolValue(o syntax.Operand, t dtype) uint64 {
	s := b.symbol(o.Name)
	if t.Bits < 32 || t.Kind == 'f' {
		b.bad("the address of %s as a value of %d bits", o.Name, t.Bits)
	}
	return unsigned(t.Bits).Extend(s.offset + uint64(o.Off))
}

func (b *binder) symbol(name string) symbol {
	if s, ok := b.symbols[name]; ok {
		return s
	}
	if s, ok := b.module.symbols[name]; ok {
		return s
	}
	b.bad("%s is not declared", name)
	return symbol{}
}

// special returns the register that holds a special one.
func (b *binder) special(name string, t dtype) int {
	if t.Bits != 32 {
		b.bad("%s as a value of %d bits", name, t.Bits)
	}
	at, ok := b.rows[name]
	if !ok {
		at = b.newRow(file32)
		b.rows[name] = at
		b.entry.program.special = append(b.entry.program.special, specialRow{at, name})
	}
	return at
}

// slot returns operand o as a register of its declared width, for memory instructions of a type that may be narrower.
func (b *binder) slot(o syntax.Operand, t dtype) slot {
	switch {
	case o.Kind == syntax.Number, o.Kind == syntax.Name:
		return slot{fileOf(t), b.sourceOf(o, t), ^uint64(0)}
	case o.Kind != syntax.Register:
		b.bad("an operand is not a register or a number")
	case o.Name == "_":
		return slot{row: -1}
	}
	at, declared := b.row(o.Name)
	if declared.Kind == 'p' || declared.Bits < t.Bits {
		b.bad("register %s is narrower than %d bits", o.Name, t.Bits)
	}
	return slot{fileOf(declared), at, ^uint64(0) >> (64 - declared.Bits)}
}
