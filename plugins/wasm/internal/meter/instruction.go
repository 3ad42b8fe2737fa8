package meter

// Opcodes that the rewriter treats by name.
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBranch       = 0x0c
	opBranchIf     = 0x0d
	opBranchTable  = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opSelectTyped  = 0x1c
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opTableGet     = 0x25
	opTableSet     = 0x26
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI32LtS       = 0x48
	opI32GeS       = 0x4e
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32ShrU      = 0x76
	opRefNull      = 0xd0
	opRefFunc      = 0xd2
	opBulk         = 0xfc
	opVector       = 0xfd
)

// Operations after the prefix opBulk.
const (
	bulkMemoryInit = 8
	bulkDataDrop   = 9
	bulkMemoryCopy = 10
	bulkMemoryFill = 11
	bulkTableInit  = 12
	bulkElemDrop   = 13
	bulkTableCopy  = 14
	bulkTableGrow  = 15
	bulkTableSize  = 16
	bulkTableFill  = 17
)

// instruction is one decoded instruction.
type instruction struct {
	op     byte
	sub    uint32 // operation after a prefix
	index  uint32 // function, global, local or signature that it names, or the largest label
	params bool   // of a block: it takes values from the stack

	targets  uint32 // in a table of branches
	operands uint32 // that a call or a block takes and gives
}

// next decodes one instruction and checks its indexes of functions, globals and signatures.
func (m *Module) next(r *reader) instruction {
	in := instruction{op: r.u8()}
	switch op := in.op; {
	case op <= 0x01, op == opElse, op == opEnd, op == opReturn, op == 0x1a, op == 0x1b, op >= 0x45 && op <= 0xc4, op == 0xd1:
	case op >= opBlock && op <= opIf:
		in.params, in.operands = m.blockType(r)
	case op == opBranch, op == opBranchIf:
		in.index = r.u32()
	case op == opBranchTable:
		in.targets = uint32(r.count(1))
		for n := in.targets + 1; n > 0 && r.err == nil; n-- {
			in.index = max(in.index, r.u32())
		}
	case op == opCall, op == opRefFunc:
		in.index = r.u32()
		if r.err == nil && int(in.index) >= m.functionCount() {
			r.fail("function %d of %d", in.index, m.functionCount())
		} else if own := int(in.index) - m.importedFunctions; own >= 0 && r.err == nil {
			in.operands = m.Types[m.Functions[own]].operands()
		}
	case op == opCallIndirect:
		in.index = m.typeIndex(r)
		r.u32()
		if r.err == nil {
			in.operands = m.Types[in.index].operands()
		}
	case op == opSelectTyped:
		r.valTypes()
	case op >= opLocalGet && op <= opLocalTee:
		in.index = r.u32()
	case op == opGlobalGet, op == opGlobalSet:
		in.index = r.u32()
		if r.err == nil && int(in.index) >= m.globalCount() {
			r.fail("global %d of %d", in.index, m.globalCount())
		}
	case op == opTableGet, op == opTableSet:
		r.u32()
	case op >= 0x28 && op <= 0x3e:
		r.memoryArgument()
	case op == 0x3f, op == opMemoryGrow:
		r.memoryIndex()
	case op == opI32Const:
		r.signed(32)
	case op == 0x42:
		r.signed(64)
	case op == 0x43:
		r.take(4)
	case op == 0x44:
		r.take(8)
	case op == opRefNull:
		r.checkValType(r.u8())
	case op == opBulk:
		in.sub = r.bulk()
	case op == opVector:
		in.sub = r.vector()
	default:
		r.refuse(op)
	}
	return in
}

// refuse names the proposal that an opcode belongs to.
func (r *reader) refuse(op byte) {
	switch {
	case op >= 0x06 && op <= 0x0a, op == 0x18, op == 0x19, op == 0x1f:
		r.unsupported("exception handling")
	case op == 0x12, op == 0x13:
		r.unsupported("tail calls")
	case op == 0x14, op == 0x15, op >= 0xd3 && op <= 0xd6:
		r.unsupported("typed function references")
	case op == 0xfb:
		r.unsupported("garbage-collected types")
	case op == 0xfe:
		r.unsupported("atomic operations (threads)")
	default:
		if r.err == nil {
			r.fail("opcode %#x", op)
		}
	}
}

func (t FuncType) operands() uint32 { return uint32(len(t.Params) + len(t.Results)) }

// blockType passes over the type of a block, reports whether it takes values from the stack, and counts all it takes and gives.
func (m *Module) blockType(r *reader) (params bool, operands uint32) {
	t := r.signed(33)
	switch {
	case r.err != nil || t == -typeNothing:
	case t >= int64(len(m.Types)):
		r.fail("signature %d of %d", t, len(m.Types))
	case t < -typeNothing:
		r.fail("block type %d", t)
	case t < 0:
		r.checkValType(byte(t + 0x80))
	default:
		return len(m.Types[t].Params) > 0, m.Types[t].operands()
	}
	return false, 1
}

func (r *reader) memoryArgument() {
	if align := r.u32(); align >= 32 {
		r.unsupported("several memories")
	}
	r.u32()
}

func (r *reader) memoryIndex() {
	if r.u8() != 0 {
		r.unsupported("several memories")
	}
}

// bulk passes over the operands of an operation on memories and tables, or of a saturating conversion.
func (r *reader) bulk() uint32 {
	sub := r.u32()
	switch {
	case sub < bulkMemoryInit:
	case sub == bulkMemoryInit:
		r.u32()
		r.memoryIndex()
	case sub == bulkMemoryCopy:
		r.memoryIndex()
		r.memoryIndex()
	case sub == bulkMemoryFill:
		r.memoryIndex()
	case sub == bulkTableInit, sub == bulkTableCopy:
		r.u32()
		r.u32()
	case sub <= bulkTableFill:
		r.u32()
	default:
		r.unsupported("an operation that this runtime does not know")
	}
	return sub
}

// vector passes over the operands of a 128-bit operation.
func (r *reader) vector() uint32 {
	sub := r.u32()
	switch {
	case sub <= 11, sub == 92, sub == 93:
		r.memoryArgument()
	case sub == 12, sub == 13:
		r.take(16)
	case sub >= 21 && sub <= 34:
		r.u8()
	case sub >= 84 && sub <= 91:
		r.memoryArgument()
		r.u8()
	case sub > 255:
		r.unsupported("relaxed SIMD")
	}
	return sub
}

// takesLength reports whether the topmost operand of a bulk operation is the length of its work.
func (in instruction) takesLength() bool {
	if in.op != opBulk {
		return false
	}
	switch in.sub {
	case bulkMemoryInit, bulkMemoryCopy, bulkMemoryFill, bulkTableInit, bulkTableCopy, bulkTableGrow, bulkTableFill:
		return true
	}
	return false
}

// feature names the extension of WebAssembly 1.0 that an instruction belongs to, or returns "".
func (in instruction) feature() string {
	switch {
	case in.op == opVector:
		return "SIMD"
	case in.op == opBulk && in.sub < bulkMemoryInit:
		return "saturating conversions"
	case in.op == opBulk && in.sub >= bulkTableGrow, in.op >= opRefNull && in.op <= opRefFunc,
		in.op == opTableGet, in.op == opTableSet, in.op == opSelectTyped:
		return "reference types"
	case in.op == opBulk:
		return "bulk memory"
	case in.op >= 0xc0 && in.op <= 0xc4:
		return "sign extension"
	case in.params:
		return "multiple values"
	}
	return ""
}

// changesTable reports whether the instruction changes state that is neither memory nor a global.
func (in instruction) changesTable() bool {
	switch in.op {
	case opTableSet:
		return true
	case opBulk:
		switch in.sub {
		case bulkTableInit, bulkTableCopy, bulkTableGrow, bulkTableFill, bulkElemDrop, bulkDataDrop:
			return true
		}
	}
	return false
}

// weight is about how long an instruction takes, in simple operations.
func (in instruction) weight() uint32 {
	switch op := in.op; {
	case op == 0x01, op >= opBlock && op <= opElse, op == opEnd, op == 0x1a, op == opLocalGet,
		op >= opI32Const && op <= 0x44:
		return 0
	case op == opCall:
		return 4
	case op == opCallIndirect, op == opBulk:
		return 8
	case op >= 0x6d && op <= 0x70, op >= 0x7f && op <= 0x82, op == 0x91, op == 0x95, op == 0x9f, op == 0xa3:
		return 8 // divisions, remainders, square roots
	case op == opMemoryGrow:
		return 200
	}
	return 1
}
