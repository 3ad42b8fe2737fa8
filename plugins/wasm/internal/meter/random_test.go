package meter

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
)

// generator writes random functions of two numbers that end: each turn of a loop takes from a budget.
type generator struct {
	*rand.Rand
	leaf, other uint32 // functions to call
	unary       uint32 // signature i32 -> i32
	labels      []label
	size        int
}

// label is an open block: what a branch to it needs on the stack.
type label struct{ value bool }

const (
	variables = 4         // locals that statements use: the parameters and two more
	budget    = variables // local that counts down
)

// function returns the body of a function.
func (g *generator) function(turns int32) asm.Code {
	g.labels, g.size = []label{{value: true}}, 0
	code := asm.Const(turns) + asm.Set(budget)
	for range 3 + g.IntN(5) {
		code += g.statement()
	}
	return code + g.value()
}

func (g *generator) value() asm.Code {
	switch g.IntN(6) {
	case 0:
		return asm.Const(int32(g.Uint32()))
	case 1:
		return g.value() + g.value() + asm.Add
	case 2:
		return g.value() + asm.Const(7) + asm.Mul
	case 3:
		return g.value() + g.value() + asm.Call(g.leaf)
	}
	return asm.Get(uint32(g.IntN(variables)))
}

func (g *generator) set() asm.Code { return g.value() + asm.Set(uint32(g.IntN(variables))) }

// inside returns code with one more label open.
func (g *generator) inside(l label, first asm.Code) asm.Code {
	g.labels = append(g.labels, l)
	for range 1 + g.IntN(3) {
		first += g.statement()
	}
	g.labels = g.labels[:len(g.labels)-1]
	return first
}

// spend ends the function when its budget is used up.
func spend() asm.Code {
	return asm.Get(budget) + asm.Const(1) + asm.Sub + asm.Tee(budget) + asm.Eqz + asm.If + asm.Void + asm.Get(1) + asm.Return + asm.End
}

// target returns an open label, as the number that a branch needs, and whether it takes a value.
func (g *generator) target() (uint32, bool) {
	k := g.IntN(len(g.labels))
	return uint32(k), g.labels[len(g.labels)-1-k].value
}

func (g *generator) statement() asm.Code {
	g.size++
	if g.size > 60 {
		return g.set()
	}
	const result, unaryLoop = "\x7f", "\x03"
	switch g.IntN(14) {
	case 0:
		return asm.Block + asm.Void + g.inside(label{}, "") + asm.End
	case 1, 2:
		return asm.Loop + asm.Void + g.inside(label{}, spend()) + asm.End
	case 3:
		return g.value() + asm.If + asm.Void + g.inside(label{}, "") + asm.Else + g.inside(label{}, "") + asm.End
	case 4:
		return asm.Block + result + g.inside(label{value: true}, "") + g.value() + asm.End + asm.Set(0)
	case 5:
		return asm.Loop + result + g.inside(label{}, spend()) + g.value() + asm.End + asm.Set(1)
	case 6: // a loop that takes a value
		return g.value() + asm.Code(unaryLoop) + asm.Code([]byte{byte(g.unary)}) +
			g.inside(label{value: true}, asm.Set(2)+spend()) + g.value() + asm.End + asm.Set(3)
	case 7, 8:
		return g.branch()
	case 9:
		return g.table()
	case 10:
		return g.value() + asm.If + asm.Void + g.value() + asm.Return + asm.End
	case 11:
		return g.value() + g.value() + asm.Call(g.other) + asm.Set(uint32(g.IntN(variables)))
	case 12:
		place := asm.Const(4095) + asm.And
		return g.value() + place + g.value() + g.value() + place + asm.MemoryFill
	}
	return g.set()
}

// branch leaves a block or turns a loop if some number is odd.
func (g *generator) branch() asm.Code {
	n, value := g.target()
	odd := g.value() + asm.Const(1) + asm.And
	if value {
		return g.value() + odd + asm.BrIf(n) + asm.Drop
	}
	return odd + asm.BrIf(n)
}

// table branches to one of several labels that take nothing, from within a new block.
func (g *generator) table() asm.Code {
	var plain []byte
	for k := range g.labels {
		if !g.labels[len(g.labels)-1-k].value {
			plain = append(plain, byte(k+1))
		}
	}
	plain = append(plain, 0)
	code := append([]byte{0x0e, byte(len(plain))}, plain...)
	return asm.Block + asm.Void + g.value() + asm.Const(7) + asm.And + asm.Code(append(code, 0)) + asm.End
}

// program returns a module with a random function "f".
func program(seed uint64) []byte {
	m := asm.New(1)
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 3))}
	g.unary = m.Type(asm.I32s(1), asm.I32s(1))
	g.leaf = m.Func("", asm.I32s(2), asm.I32s(1), 0, asm.Get(0), asm.Get(1), asm.Sub)
	g.other = g.leaf
	g.other = m.Func("", asm.I32s(2), asm.I32s(1), variables-1, g.function(3))
	m.Func("f", asm.I32s(2), asm.I32s(1), variables-1, g.function(40))
	return m.Bytes()
}

// run calls "f" and returns its results and the memory afterwards.
func run(t *testing.T, r wazero.Runtime, code []byte, a, b uint64) ([]uint64, []byte) {
	t.Helper()
	ctx := context.Background()
	mod, err := r.InstantiateWithConfig(ctx, code, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	defer mod.Close(ctx)
	result, err := mod.ExportedFunction("f").Call(ctx, a, b)
	if err != nil {
		t.Fatal(err)
	}
	mem, _ := mod.Memory().Read(0, 65536)
	return result, bytes.Clone(mem)
}

func TestRewrite_RandomProgramsDoTheSame(t *testing.T) {
	first := rand.Uint64()
	t.Logf("seed %d", first)
	r := newWazero(t, wazero.NewRuntimeConfig())
	for k := range uint64(60) {
		code := program(first + k)
		metered := rewrite(t, code).Code
		for _, args := range [][2]uint64{{0, 0}, {5, 1 << 31}} {
			want, wantMemory := run(t, r, code, args[0], args[1])
			got, memory := run(t, r, metered, args[0], args[1])
			if got[0] != want[0] || !bytes.Equal(memory, wantMemory) {
				t.Fatalf("program %d returns %v with arguments %v, want %v", first+k, got, args, want)
			}
		}
	}
}
