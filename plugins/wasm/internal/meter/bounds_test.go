package meter

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
)

// counts makes a module that holds n of something, and has its name and the accepted number.
type counts struct {
	what  string
	bound int
	build func(m *asm.Module, n int)
}

func each(add func(m *asm.Module, k int)) func(*asm.Module, int) {
	return func(m *asm.Module, n int) {
		for k := range n {
			add(m, k)
		}
	}
}

// inCode makes a function of what n becomes.
func inCode(params int, locals uint32, code func(n int) asm.Code) func(*asm.Module, int) {
	return func(m *asm.Module, n int) { m.Func("f", asm.I32s(params), nil, locals, code(n)) }
}

func bounded() []counts {
	blocks := func(n int) asm.Code { return asm.Repeat(n, asm.Block, asm.Void, asm.End) }
	nested := func(n int) asm.Code { return asm.Repeat(n, asm.Block, asm.Void) + asm.Repeat(n, asm.End) }
	return []counts{
		{"signatures", maxTypes, each(func(m *asm.Module, _ int) { m.Type(nil, nil) })},
		{"parameters in a signature", maxParams, func(m *asm.Module, n int) { m.Type(asm.I32s(n), nil) }},
		{"results in a signature", maxResults, func(m *asm.Module, n int) { m.Type(nil, asm.I32s(n)) }},
		{"imports", maxImports, func(m *asm.Module, n int) { importing(m, n) }},
		{"functions", maxFunctions, func(m *asm.Module, n int) { m.Copies(n, m.Type(nil, nil)) }},
		{"tables", maxTables, each(func(m *asm.Module, _ int) { m.Table(1) })},
		{"entries in a table", maxTableEntries, func(m *asm.Module, n int) { m.Table(uint32(n)) }},
		{"globals", maxGlobals, each(func(m *asm.Module, _ int) { m.Global(false, 0) })},
		{"exports", maxExports, func(m *asm.Module, n int) {
			f := m.Func("", nil, nil, 0)
			for k := range n - 1 { // the memory is one
				m.Export(fmt.Sprint(k), 0, f)
			}
		}},
		{"bytes in a name", maxNameBytes, func(m *asm.Module, n int) { m.Func(strings.Repeat("n", n), nil, nil, 0) }},
		{"segments for tables", maxElements, func(m *asm.Module, n int) {
			f := m.Func("", nil, nil, 0)
			m.Table(1)
			for range n {
				m.Elements(f)
			}
		}},
		{"entries in segments for tables", maxTableEntries, func(m *asm.Module, n int) {
			m.Func("", nil, nil, 0)
			m.Table(1)
			m.Elements(make([]uint32, n)...)
		}},
		{"data segments", maxData, each(func(m *asm.Module, _ int) { m.Data(0, nil) })},
		{"locals of a function", maxLocals, func(m *asm.Module, n int) { m.Func("f", nil, nil, uint32(n)) }},
		{"locals of all functions", maxAllLocals, func(m *asm.Module, n int) {
			for ; n > 0; n -= maxLocals {
				m.Func("", nil, nil, uint32(min(n, maxLocals)))
			}
		}},
		{"locals times blocks of a function", maxLocalsBlocks, func(m *asm.Module, n int) {
			m.Func("f", nil, nil, 1, blocks(n))
		}},
		{"blocks within blocks", maxDepth, inCode(0, 0, nested)},
		{"targets in tables of branches", maxBranchTargets, inCode(1, 0, func(n int) asm.Code {
			return asm.Get(0) + asm.BrTable(make([]uint32, n+1)...)
		})},
		{"operands of calls and blocks", maxOperands, func(m *asm.Module, n int) {
			const params = 512
			f := m.Func("", asm.I32s(params), nil, 0, asm.Unreachable)
			calls, more := n/params, n%params // a block without a type has one operand
			m.Func("f", nil, nil, 0, asm.Unreachable+asm.Repeat(calls, asm.Call(f))+blocks(more))
		}},
	}
}

func importing(m *asm.Module, n int) {
	for range n {
		m.ImportMemory("a", "b")
	}
}

func TestRewrite_BoundsWhatAModuleHolds(t *testing.T) {
	for _, c := range bounded() {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			for _, n := range []int{c.bound, c.bound + 1} {
				m := asm.New(1)
				c.build(m, n)
				decoded, err := Decode(m.Bytes())
				if err == nil {
					_, err = decoded.Rewrite()
				}
				if n == c.bound {
					if err != nil {
						t.Errorf("%d: %v", n, err)
					}
					continue
				}
				var bad *Error
				if !errors.As(err, &bad) || !errors.Is(bad.Kind, ErrBound) || bad.What != c.what ||
					bad.Number != uint64(n) || bad.Bound != uint64(c.bound) {
					t.Errorf("%d: %v, want it refused for %d %s", n, err, n, c.what)
				}
			}
		})
	}
}

// Many segments go through several functions; they must still be put in their places in order.
func TestRewrite_PutsManySegmentsInTheirPlaces(t *testing.T) {
	for _, n := range []int{1, placedAtOnce, placedAtOnce + 1, 3*placedAtOnce + 7} {
		m := asm.New(1)
		m.Func("f", nil, nil, 0)
		want := make([]byte, 1<<16)
		for k := range n {
			text := bytes.Repeat([]byte{byte(k), byte(k >> 8), 1}, 1+k%3)
			at := (k * 5) % 999 // many lie over others
			m.Data(int32(at), text)
			copy(want[at:], text)
		}
		r := newWazero(t, wazero.NewRuntimeConfig())
		result := rewrite(t, m.Bytes())
		mod, err := r.InstantiateWithConfig(t.Context(), result.Code, wazero.NewModuleConfig().WithName("").WithStartFunctions())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := mod.ExportedFunction(DataCall).Call(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, _ := mod.Memory().Read(0, 1<<16); !bytes.Equal(got, want) {
			t.Errorf("%d segments: memory differs", n)
		}
	}
}
