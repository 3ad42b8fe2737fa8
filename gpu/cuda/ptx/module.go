package ptx

import (
	"slices"

	"github.com/rlhost/rlhost/gpu/cuda/ptx/internal/syntax"
)

// SyntaxError is text that is not PTX, or PTX that this package does not run. It has the line and the reason.
type SyntaxError = syntax.Error

// Param is one parameter of an entry: where its value lies in the argument bytes.
type Param struct {
	Name   string
	Offset int
	Size   int // bytes
	Align  int
}

// Module is one PTX text that has been read and checked. Its entries may be launched from several goroutines.
type Module struct {
	Version string // of PTX, as in "7.8"
	Target  string // as in "sm_80"

	entries []*Entry
	globals allocation        // .global and .const variables of the module
	symbols map[string]symbol // of these variables
}

// Entry is a kernel.
type Entry struct {
	Name       string
	Params     []Param
	ParamBytes int  // where the last parameter ends
	Shared     int  // bytes of static shared memory
	Dynamic    bool // whether it uses dynamic shared memory, which begins after the static
	Local      int  // bytes of local memory a thread has
	MaxThreads int  // of a block, by .maxntid or .reqntid; 0: not stated

	module   *Module
	required [3]int // .reqntid
	program  program
	resting  pool
}

// symbol is a variable: its place in its space.
type symbol struct {
	space  space
	offset uint64
}

// Parse reads a PTX text: all entries, down to every instruction. Unknown text is a *SyntaxError, which names the line.
func Parse(text string) (m *Module, err error) {
	tree, err := syntax.Parse(text)
	if err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			refused, ours := r.(*SyntaxError)
			if !ours {
				panic(r)
			}
			m, err = nil, refused
		}
	}()
	m = &Module{Version: tree.Version, Target: tree.Target, symbols: map[string]symbol{}}
	size := uint64(len(tree.Data))
	bytes := aligned(len(tree.Data))
	copy(bytes, tree.Data)
	m.globals = allocation{base: firstGlobal, size: size, bytes: bytes, writes: newWriters(size)}
	for name, v := range tree.Variables {
		if sp := spaces[v.Space]; sp != shared {
			m.symbols[name] = symbol{sp, firstGlobal + uint64(v.Offset)}
		}
	}
	for _, text := range tree.Entries {
		m.entries = append(m.entries, compile(m, tree, text))
	}
	return m, nil
}

// Entries returns the kernels in the order of the text.
func (m *Module) Entries() []*Entry { return slices.Clone(m.entries) }

// Entry returns the kernel of a name, or nil.
func (m *Module) Entry(name string) *Entry {
	for _, e := range m.entries {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// firstGlobal is the address of a module's variables, above all that Memory gives.
const firstGlobal = uint64(1) << 56

// space is where an address belongs.
type space uint8

const (
	generic space = iota
	global
	constant
	shared
	local
	param
)

var spaces = map[string]space{"global": global, "const": constant, "shared": shared, "local": local, "param": param}

// window is where the memory of a CTA or a thread begins among the generic addresses. Global and constant memory have theirs.
func window(s space) uint64 {
	switch s {
	case shared:
		return 1 << 60
	case local:
		return 2 << 60
	case param:
		return 3 << 60
	}
	return 0
}

const windowSize = uint64(1) << 32
