package meter

import (
	"bytes"
	"fmt"
)

// Kinds of imports and exports.
const (
	KindFunction = iota
	KindTable
	KindMemory
	KindGlobal
	KindTag
)

// Value types that the rewriter looks at.
const (
	typeI32     = 0x7f
	typeV128    = 0x7b
	typeFunc    = 0x70
	typeExtern  = 0x6f
	typeNothing = 0x40
)

// Section numbers, and the order in which sections must appear.
const (
	sectionCustom = iota
	sectionType
	sectionImport
	sectionFunction
	sectionTable
	sectionMemory
	sectionGlobal
	sectionExport
	sectionStart
	sectionElement
	sectionCode
	sectionData
	sectionDataCount
	sectionTag
)

// FuncType is the signature of a function: value types as encoded.
type FuncType struct{ Params, Results []byte }

// Import is one imported thing. Type is the index of the signature of a function.
type Import struct {
	Module, Name string
	Kind         byte
	Type         uint32
	// To is the module and the name that the metered module has in their place, empty if they stay.
	To [2]string
}

// Export is one exported thing.
type Export struct {
	Name  string
	Kind  byte
	Index uint32
}

// Memory is the module's own linear memory, in pages of 64 KiB. HasMax says whether Max was given.
type Memory struct {
	Min, Max uint32
	HasMax   bool
}

// global is one of the module's own globals with the bytes of its initial value.
type global struct {
	valType byte
	mutable bool
	init    span
}

// span is a piece of the file: an expression, a function body, a section.
type span struct {
	b    []byte
	base int
}

func (s span) reader() *reader { return &reader{b: s.b, base: s.base} }

// Module is a decoded module. It refers to the bytes that it was decoded from.
type Module struct {
	Types     []FuncType
	Imports   []Import
	Functions []uint32 // signature of each of the module's own functions
	Memories  []Memory
	Exports   []Export
	Names     map[uint32]string // of functions, from the name section; may be nil
	Lines     []byte            // of DWARF: section .debug_line; may be nil
	HasStart  bool

	importedFunctions int
	importedGlobals   int
	globals           []global
	tables            int
	start             uint32
	sections          [sectionTag + 1]span
	present           [sectionTag + 1]bool
	bodies            []span
}

var magic = []byte("\x00asm\x01\x00\x00\x00")

// Decode reads the structure of a module. Function bodies are only delimited; Rewrite reads them.
func Decode(file []byte) (*Module, error) {
	if !bytes.HasPrefix(file, magic) {
		return nil, &Error{Kind: ErrFormat, Offset: 0, What: "it does not begin like a core module"}
	}
	m := &Module{}
	r := &reader{b: file, p: len(magic)}
	last := 0
	for r.more() {
		id := r.u8()
		s := r.sub(r.u32())
		if r.err != nil {
			return nil, r.err
		}
		if id == sectionCustom {
			if err := m.custom(s); err != nil {
				return nil, err
			}
			continue
		}
		rank := sectionRank(id)
		if rank == 0 || rank <= last {
			return nil, &Error{Kind: ErrFormat, Offset: s.base, What: fmt.Sprintf("section %d is unknown or out of order", id)}
		}
		last = rank
		m.sections[id], m.present[id] = span{s.b, s.base}, true
		if err := m.section(id, s); err != nil {
			return nil, err
		}
	}
	if r.err == nil && len(m.bodies) != len(m.Functions) {
		return nil, &Error{Kind: ErrFormat, Offset: len(file), What: fmt.Sprintf("%d functions declared, %d defined", len(m.Functions), len(m.bodies))}
	}
	return m, r.err
}

// sectionRank returns the place of a section in the order that the format prescribes, 0 if it has none.
func sectionRank(id byte) int {
	order := [...]byte{sectionType, sectionImport, sectionFunction, sectionTable, sectionMemory, sectionTag,
		sectionGlobal, sectionExport, sectionStart, sectionElement, sectionDataCount, sectionCode, sectionData}
	return bytes.IndexByte(order[:], id) + 1
}

func (m *Module) section(id byte, r *reader) error {
	decode := map[byte]func(*reader){
		sectionType: m.types, sectionImport: m.imports, sectionFunction: m.functions, sectionTable: m.tableSection,
		sectionMemory: m.memories, sectionGlobal: m.globalSection, sectionExport: m.exports,
		sectionStart: m.startSection, sectionCode: m.code,
		sectionTag: func(r *reader) { r.unsupported("exception handling") },
	}[id]
	if decode == nil {
		return nil
	}
	decode(r)
	if r.err == nil && r.p != len(r.b) {
		r.fail("section %d has %d bytes too many", id, len(r.b)-r.p)
	}
	return r.err
}

// ImportedFunctions returns the number of imported functions; they have the lowest indexes.
func (m *Module) ImportedFunctions() int { return m.importedFunctions }

// functionCount returns how many functions there are, imported ones included.
func (m *Module) functionCount() int { return m.importedFunctions + len(m.Functions) }

func (m *Module) globalCount() int { return m.importedGlobals + len(m.globals) }

// Signature returns the signature of a function by its index; ok is false if there is no such function.
func (m *Module) Signature(function uint32) (t FuncType, ok bool) {
	if int(function) >= m.functionCount() {
		return FuncType{}, false
	}
	if int(function) >= m.importedFunctions {
		return m.Types[m.Functions[int(function)-m.importedFunctions]], true
	}
	for _, i := range m.Imports {
		if i.Kind != KindFunction {
			continue
		}
		if function == 0 {
			return m.Types[i.Type], true
		}
		function--
	}
	return FuncType{}, false
}
