package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"slices"
	"strings"
	"sync"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is one instruction set: its vector registers and how many bytes one holds.
type isa struct {
	name  string
	bytes int
	v     []reg.VecPhysical
}

var avx2 = isa{"AVX2", 32, []reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
	reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15}}

var avx512 = isa{"AVX512", 64, []reg.VecPhysical{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
	reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
	reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
	reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31}}

// wide reports whether registers have 512 bits.
func (s isa) wide() bool { return s.bytes == 64 }

// declared is a function with the type of its arguments.
type declared struct{ name, args string }

// functions lists the functions for the Go declarations; the last one is being written.
var functions []declared

// function starts a function that takes a pointer to arguments of a type, and loads it.
func function(name, args string) {
	functions = append(functions, declared{name, args})
	TEXT(name, NOSPLIT, "func(args *byte)")
	Load(Param("args"), reg.RDI)
}

// finish ends a function.
func finish() {
	VZEROUPPER()
	RET()
}

// field addresses a field of 8 bytes of the arguments.
func field(name string) Mem {
	return Mem{Base: reg.RDI, Disp: 8 * index(functions[len(functions)-1].args, name)}
}

// load reads fields of the arguments, whose names are apart by spaces, into registers.
func load(fields string, to ...reg.GPPhysical) {
	for i, name := range strings.Fields(fields) {
		MOVQ(field(name), to[i])
	}
}

// structs lists the fields of package kern's structs.
var structs = map[string][]string{}

// index returns the number of the field of a struct with that name.
func index(of, name string) int {
	if len(structs) == 0 {
		for _, file := range []string{"../args_unsafe.go", "../loss.go", "../vector.go"} {
			read(file)
		}
	}
	i := slices.Index(structs[of], name)
	if i < 0 {
		panic("no field " + of + "." + name)
	}
	return i
}

// read adds the structs of a file.
func read(file string) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		panic(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if t, ok := n.(*ast.TypeSpec); ok {
			if s, ok := t.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					for _, name := range field.Names {
						structs[t.Name.Name] = append(structs[t.Name.Name], name.Name)
					}
				}
			}
		}
		return true
	})
}

func at(m Mem, disp int) Mem { m.Disp += disp; return m }

// pick returns the instruction that takes a constant as an operand: in AVX-512 the broadcasting one.
func (s isa) pick(plain, broadcast func(...Op)) func(...Op) {
	if s.wide() {
		return broadcast
	}
	return plain
}

// constants fill 32 bytes, which the linker aligns to as many, so that they are operands of AVX2 within a line of the cache. It aligns to
// no more: AVX-512 reads the first four bytes and broadcasts them.
var constants = map[uint32]Mem{}

func bits(u uint32) Mem {
	if m, ok := constants[u]; ok {
		return m
	}
	m := GLOBL(fmt.Sprintf("k%08x", u), RODATA|NOPTR)
	for i := range 8 {
		DATA(4*i, U32(u))
	}
	constants[u] = m
	return m
}

func float(f float64) Mem { return bits(math.Float32bits(float32(f))) }

// lanes is 0, 1, 2, … in 32-bit integers.
var lanes = sync.OnceValue(func() Mem {
	m := GLOBL("lanes", RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(uint32(i)))
	}
	return m
})

// tail is 16 integers of ones, then 16 of zeros: a load from n before the middle masks the first n elements of a panel.
var tail = sync.OnceValue(func() Mem {
	m := GLOBL("tail", RODATA|NOPTR)
	for i := range 32 {
		DATA(4*i, U32(uint32(math.MaxUint32*(1-i/16))))
	}
	return m
})

// strides keeps the multiples of a row stride that addressing cannot scale by itself.
type strides struct{ one, three, five reg.GPPhysical }

func (s strides) load(m Mem) {
	MOVQ(m, s.one)
	LEAQ(Mem{Base: s.one, Index: s.one, Scale: 2}, s.three)
	LEAQ(Mem{Base: s.one, Index: s.one, Scale: 4}, s.five)
}

// seven sets out to base plus seven rows.
func (s strides) seven(base, out reg.GPPhysical) {
	LEAQ(Mem{Base: base, Index: s.five, Scale: 1}, out)
	LEAQ(Mem{Base: out, Index: s.one, Scale: 2}, out)
}

// row addresses row i < 14 from base on; base7 is needed from row 7 on.
func (s strides) row(base, base7 reg.GPPhysical, i int) Mem {
	if i >= 7 {
		base, i = base7, i-7
	}
	switch i {
	case 0:
		return Mem{Base: base}
	case 3:
		return Mem{Base: base, Index: s.three, Scale: 1}
	case 5:
		return Mem{Base: base, Index: s.five, Scale: 1}
	case 6:
		return Mem{Base: base, Index: s.three, Scale: 2}
	}
	return Mem{Base: base, Index: s.one, Scale: uint8(i)}
}

// times multiplies a register by a small constant.
func times(n int, r, out reg.GPPhysical) { IMUL3Q(I32(int32(n)), r, out) }

// clear zeroes a vector register.
func (s isa) clear(r reg.VecPhysical) {
	if s.wide() {
		VPXORD(r, r, r)
		return
	}
	VXORPS(r, r, r)
}
