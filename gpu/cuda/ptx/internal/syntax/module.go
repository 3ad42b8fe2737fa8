// Package syntax reads PTX: a text becomes modules, entries and instructions with their operands. It knows directives, names
// and numbers; what instructions mean is package ptx's.
package syntax

import (
	"strconv"
	"strings"
)

// Module is a PTX text.
type Module struct {
	Version   string // as in ".version 7.8"
	Target    string // as in "sm_80"
	Entries   []*Entry
	Variables map[string]Variable // by name
	Data      []byte              // what .global and .const variables hold at first
	EndLine   int
}

// Entry is a kernel.
type Entry struct {
	Name       string
	Line       int
	Params     []Param
	ParamBytes int                 // where the last parameter ends
	MaxThreads int                 // by .maxntid or .reqntid, 0: not stated
	Required   [3]int              // by .reqntid
	Insts      []Inst              // in the order of the text
	Labels     map[string]int      // to the number of the next instruction
	Tables     map[string][]string // of labels, for brx
	Variables  map[string]Variable // .shared and .local ones

	regs   map[string]Type
	ranges []regRange
}

// Param is one parameter of an entry: where its value lies in the argument bytes.
type Param struct {
	Name   string
	Offset int
	Size   int // bytes
	Align  int
}

// Variable is a declared one.
type Variable struct {
	Name    string
	Space   string // "shared", "local", "global" or "const"
	Align   int
	Element Type
	Bytes   int
	Offset  int  // of .global and .const ones, in Module.Data
	Dynamic bool // of the size that the launch gives, zero bytes here
}

// regRange is what ".reg .b32 %r<100>" declares.
type regRange struct {
	prefix string
	count  int
	t      Type
}

// Register returns the type of a declared register.
func (e *Entry) Register(name string) (Type, bool) {
	if t, ok := e.regs[name]; ok {
		return t, true
	}
	for i := len(e.ranges) - 1; i >= 0; i-- {
		r := e.ranges[i]
		digits, ok := strings.CutPrefix(name, r.prefix)
		n, err := strconv.Atoi(digits)
		if ok && err == nil && n >= 0 && n < r.count && strconv.Itoa(n) == digits {
			return r.t, true
		}
	}
	return Type{}, false
}

// Inst is one instruction.
type Inst struct {
	Line    int      // 1 is the first
	Op      string   // as in "ld.global.f32"
	Mods    []string // parts of Op
	Guard   string   // register of its predicate, "" without
	Negated bool     // whether it is executed where Guard is false
	Args    []Operand
	Text    string
}

// Operand is one argument of an instruction. Names of registers and variables are unique in the entry.
type Operand struct {
	Kind OperandKind
	Name string    // of a register, a variable or a label; of an Address, which may have none; the first one of a Pair
	Pair string    // the second register of a Pair
	Imm  Imm       // of a Number
	Off  int64     // of an Address or a Name: the number added
	List []Operand // of a Vector
}

// OperandKind is the kind of an operand.
type OperandKind uint8

// The kinds of operands.
const (
	Register OperandKind = iota + 1
	Pair                 // a|b
	Number
	Name    // name or name+4
	Address // [name+4]
	Vector  // {a, b}
)
