package asm

import "strings"

// Value types.
const (
	I32 = 0x7f
	I64 = 0x7e
	F64 = 0x7c
)

// I32s returns n value types i32.
func I32s(n int) []byte {
	types := make([]byte, n)
	for i := range types {
		types[i] = I32
	}
	return types
}

// Code is a piece of code, as encoded.
type Code string

// Instructions without operands.
const (
	Unreachable Code = "\x00"
	Block       Code = "\x02" // a block type follows
	Loop        Code = "\x03"
	If          Code = "\x04"
	Else        Code = "\x05"
	End         Code = "\x0b"
	Void        Code = "\x40" // the block type of nothing
	Return      Code = "\x0f"
	Drop        Code = "\x1a"
	Eqz         Code = "\x45"
	Eq          Code = "\x46"
	GeU         Code = "\x4f"
	Add         Code = "\x6a"
	Sub         Code = "\x6b"
	Mul         Code = "\x6c"
	And         Code = "\x71"
	Shl         Code = "\x74"
	MemorySize  Code = "\x3f\x00"
	MemoryGrow  Code = "\x40\x00"
	MemoryCopy  Code = "\xfc\x0a\x00\x00"
	MemoryFill  Code = "\xfc\x0b\x00"
)

// Const pushes an i32.
func Const(v int32) Code { return Code(signed([]byte{0x41}, int64(v))) }

// Const64 pushes an i64.
func Const64(v int64) Code { return Code(signed([]byte{0x42}, v)) }

// Get pushes a local, Set pops into one, Tee copies into one.
func Get(local uint32) Code { return op(0x20, local) }

// Set pops a value into a local.
func Set(local uint32) Code { return op(0x21, local) }

// Tee copies the topmost value into a local.
func Tee(local uint32) Code { return op(0x22, local) }

// GlobalGet pushes a global.
func GlobalGet(i uint32) Code { return op(0x23, i) }

// GlobalSet pops a value into a global.
func GlobalSet(i uint32) Code { return op(0x24, i) }

// Br branches to a label, BrIf does if the topmost value is not 0.
func Br(label uint32) Code { return op(0x0c, label) }

// BrIf branches to a label if the topmost value is not 0.
func BrIf(label uint32) Code { return op(0x0d, label) }

// Call calls a function.
func Call(f uint32) Code { return op(0x10, f) }

// BrTable branches to one of these labels, to the last if the topmost value is none of their numbers.
func BrTable(labels ...uint32) Code {
	b := unsigned([]byte{0x0e}, uint32(len(labels)-1))
	for _, l := range labels {
		b = unsigned(b, l)
	}
	return Code(b)
}

// Repeat is a piece of code n times.
func Repeat(n int, code ...Code) Code {
	piece := ""
	for _, c := range code {
		piece += string(c)
	}
	return Code(strings.Repeat(piece, n))
}

// Load reads an i32 at an offset from the address on the stack.
func Load(offset uint32) Code { return Code(unsigned([]byte{0x28, 2}, offset)) }

// Store writes an i32.
func Store(offset uint32) Code { return Code(unsigned([]byte{0x36, 2}, offset)) }

func op(code byte, v uint32) Code { return Code(unsigned([]byte{code}, v)) }

func unsigned(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func signed(b []byte, v int64) []byte {
	for {
		low := byte(v & 0x7f)
		v >>= 7
		if v == 0 && low&0x40 == 0 || v == -1 && low&0x40 != 0 {
			return append(b, low)
		}
		b = append(b, low|0x80)
	}
}

// vector is the content of a section that is a vector.
type vector struct {
	n uint32
	b []byte
}

func (v *vector) add(b ...byte) uint32 {
	v.b = append(v.b, b...)
	v.n++
	return v.n - 1
}

func name(s string) []byte { return append(unsigned(nil, uint32(len(s))), s...) }

// Module is a module under construction. Imports come before functions.
type Module struct {
	types, imports, functions, tables, memories, globals, exports, elements, code, data vector
	custom                                                                              []byte
	start                                                                               int64
	imported                                                                            uint32
}

// New returns a module with a memory of that many pages, exported as "memory".
func New(pages uint32) *Module {
	m := &Module{start: -1}
	m.memories.add(append([]byte{0}, unsigned(nil, pages)...)...)
	m.Export("memory", 2, 0)
	return m
}

// MaxPages declares how large the memory may get.
func (m *Module) MaxPages(pages uint32) {
	m.memories.b[0] = 1
	m.memories.b = append(m.memories.b, unsigned(nil, pages)...)
}

// Bare returns a module without a memory.
func Bare() *Module { return &Module{start: -1} }

// Type adds a signature.
func (m *Module) Type(params, results []byte) uint32 {
	b := append([]byte{0x60}, unsigned(nil, uint32(len(params)))...)
	b = append(append(b, params...), unsigned(nil, uint32(len(results)))...)
	return m.types.add(append(b, results...)...)
}

// Import adds an imported function and returns its index.
func (m *Module) Import(module, function string, params, results []byte) uint32 {
	t := m.Type(params, results)
	m.imports.add(append(append(append(name(module), name(function)...), 0), unsigned(nil, t)...)...)
	m.imported++
	return m.imported - 1
}

// ImportMemory adds an imported memory of one page.
func (m *Module) ImportMemory(module, memory string) {
	m.imports.add(append(append(name(module), name(memory)...), 2, 0, 1)...)
}

// Func adds a function with so many i32 locals and returns its index. It is exported unless export is "".
func (m *Module) Func(export string, params, results []byte, locals uint32, code ...Code) uint32 {
	f := m.imported + m.functions.add(unsigned(nil, m.Type(params, results))...)
	m.code.add(function(locals, code)...)
	if export != "" {
		m.Export(export, 0, f)
	}
	return f
}

// Copies adds n functions of one signature with the same code, not exported.
func (m *Module) Copies(n int, t uint32, code ...Code) {
	body := function(0, code)
	for range n {
		m.functions.add(unsigned(nil, t)...)
		m.code.add(body...)
	}
}

// function is the entry of a function in the code section.
func function(locals uint32, code []Code) []byte {
	body := []byte{0}
	if locals > 0 {
		body = append(unsigned([]byte{1}, locals), I32)
	}
	for _, c := range code {
		body = append(body, c...)
	}
	body = append(body, 0x0b)
	return append(unsigned(nil, uint32(len(body))), body...)
}

// Table adds a table of functions with so many entries.
func (m *Module) Table(entries uint32) {
	m.tables.add(append([]byte{0x70, 0}, unsigned(nil, entries)...)...)
}

// Elements fills the first table from its beginning.
func (m *Module) Elements(functions ...uint32) {
	b := append([]byte{0, 0x41, 0, 0x0b}, unsigned(nil, uint32(len(functions)))...)
	for _, f := range functions {
		b = unsigned(b, f)
	}
	m.elements.add(b...)
}

// Global adds a global of type i32.
func (m *Module) Global(mutable bool, init int32) uint32 {
	flag := byte(0)
	if mutable {
		flag = 1
	}
	b := append([]byte{I32, flag}, string(Const(init))...)
	return m.globals.add(append(b, 0x0b)...)
}

// Export adds an export: 0 a function, 1 a table, 2 a memory, 3 a global.
func (m *Module) Export(export string, kind byte, index uint32) {
	m.exports.add(append(append(name(export), kind), unsigned(nil, index)...)...)
}

// Start sets the start function.
func (m *Module) Start(f uint32) { m.start = int64(f) }

// Data adds an active data segment.
func (m *Module) Data(at int32, bytes []byte) {
	b := append([]byte{0}, string(Const(at))...)
	b = append(append(b, 0x0b), unsigned(nil, uint32(len(bytes)))...)
	m.data.add(append(b, bytes...)...)
}

// Name gives functions names, in the order of the pairs.
func (m *Module) Name(functions ...string) {
	list := unsigned(nil, uint32(len(functions)))
	for i, f := range functions {
		list = append(append(list, unsigned(nil, uint32(i))...), name(f)...)
	}
	b := append(name("name"), 1)
	b = append(append(b, unsigned(nil, uint32(len(list)))...), list...)
	m.custom = append(append([]byte{0}, unsigned(nil, uint32(len(b)))...), b...)
}

// Bytes returns the module as a file.
func (m *Module) Bytes() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, v vector) {
		if v.n == 0 {
			return
		}
		body := append(unsigned(nil, v.n), v.b...)
		out = append(append(append(out, id), unsigned(nil, uint32(len(body)))...), body...)
	}
	section(1, m.types)
	section(2, m.imports)
	section(3, m.functions)
	section(4, m.tables)
	section(5, m.memories)
	section(6, m.globals)
	section(7, m.exports)
	if m.start >= 0 {
		b := unsigned(nil, uint32(m.start))
		out = append(append(out, 8, byte(len(b))), b...)
	}
	section(9, m.elements)
	section(10, m.code)
	section(11, m.data)
	return append(out, m.custom...)
}
