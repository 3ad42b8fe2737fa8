// Package bombs has modules that are small for what they ask of a compiler, or of who reads them.
package bombs

import (
	"bytes"
	"strings"

	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
)

// Bomb is one of them.
type Bomb struct {
	Name  string
	Build func() []byte
}

// Guest builds a correct guest with more imports, and more sections of any kind after its own; each may be nil.
type Guest func(imports, after func(m *asm.Module)) []byte

// with makes a guest with something more.
func (g Guest) with(after func(m *asm.Module)) func() []byte {
	return func() []byte { return g(nil, after) }
}

// code is a guest with one more function, of one parameter.
func (g Guest) code(locals uint32, code func() asm.Code) func() []byte {
	return g.with(func(m *asm.Module) { m.Func("", asm.I32s(1), nil, locals, code()) })
}

// custom appends a section of the module's own.
func custom(name string, module, content []byte) []byte {
	body := append([]byte{byte(len(name))}, name...)
	body = append(body, content...)
	size := []byte{0}
	for n := uint32(len(body)); ; n >>= 7 {
		if n < 0x80 {
			size = append(size, byte(n))
			break
		}
		size = append(size, byte(n)|0x80)
	}
	return append(append(module, size...), body...)
}

// Light are refused while they are read, or compiled within seconds.
func (g Guest) Light() []Bomb {
	return append(g.Locals(), []Bomb{
		{"5,000 locals in 20,000 ifs", g.code(5_000, ifs(5_000, 20_000))},
		{"a million signatures", g.with(many(1_000_000, func(m *asm.Module) { m.Type(nil, nil) }))},
		{"ten thousand signatures of a thousand", g.with(many(10_000, func(m *asm.Module) { m.Type(asm.I32s(1_000), nil) }))},
		{"a million globals", g.with(many(1_000_000, func(m *asm.Module) { m.Global(true, 0) }))},
		{"a million data segments", g.with(many(1_000_000, func(m *asm.Module) { m.Data(0, nil) }))},
		{"a million segments for a table", g.with(func(m *asm.Module) {
			m.Table(1)
			many(1_000_000, func(m *asm.Module) { m.Elements(0) })(m)
		})},
		{"30 MB of table entries", g.with(func(m *asm.Module) {
			m.Table(1)
			m.Elements(make([]uint32, 30_000_000)...)
		})},
		{"a million exports", g.with(many(1_000_000, func(m *asm.Module) { m.Export("e", 0, 0) }))},
		{"a million imports", func() []byte {
			return g(many(1_000_000, func(m *asm.Module) { m.ImportMemory("a", "b") }), nil)
		}},
		{"an export with a name of 30 MB", g.with(func(m *asm.Module) { m.Export(strings.Repeat("n", 30<<20), 0, 0) })},
		{"ten million memories", func() []byte {
			return append([]byte("\x00asm\x01\x00\x00\x00\x05\x84\xad\xe2\x04\x80\xad\xe2\x04"), make([]byte, 10_000_000)...)
		}},
		{"a million functions", g.with(func(m *asm.Module) { m.Copies(1_000_000, m.Type(nil, nil)) })},
		{"a million blocks within blocks", g.code(0, func() asm.Code {
			return asm.Repeat(1_000_000, asm.Block, asm.Void) + asm.Repeat(1_000_000, asm.End)
		})},
		{"a table of ten million branches", g.code(0, func() asm.Code { return asm.Get(0) + asm.BrTable(make([]uint32, 10_000_000)...) })},
		{"ten million calls of a thousand parameters", g.with(func(m *asm.Module) {
			f := m.Func("", asm.I32s(1_000), nil, 0)
			m.Func("", nil, nil, 0, asm.Unreachable+asm.Repeat(10_000_000, asm.Call(f)))
		})},
		{"30 MB of names", func() []byte {
			names := append([]byte{1, 0x84, 0x87, 0xa7, 0x0e, 0x80, 0xad, 0xe2, 0x04}, bytes.Repeat([]byte{1, 1, 'a'}, 10_000_000)...)
			return custom("name", g(nil, nil), names)
		}},
		{"30 MB of nothing", func() []byte { return custom("nothing", g(nil, nil), make([]byte, 30<<20)) }},
	}...)
}

// Locals have many locals.
func (g Guest) Locals() []Bomb {
	return []Bomb{
		{"10,000 locals in 1,000 ifs", g.code(10_000, ifs(10_000, 1_000))},
		{"50,000 locals in each of 1,000 functions", g.with(many(1_000, func(m *asm.Module) { m.Func("", nil, nil, 50_000) }))},
	}
}

// Heavy pass every bound and meet the limits on compiling, or just do not.
func (g Guest) Heavy() []Bomb {
	repeated := func(n int, code ...asm.Code) func() []byte {
		return g.code(0, func() asm.Code { return asm.Repeat(n, code...) })
	}
	return []Bomb{
		{"800 locals in 10,000 ifs", g.code(800, ifs(800, 10_000))},
		{"a million loops", repeated(1_000_000, asm.Loop, asm.Void, asm.End)},
		{"3,000 loops within loops", g.code(10, func() asm.Code {
			return asm.Repeat(3_000, asm.Loop, asm.Void) + asm.Get(0) + asm.BrIf(0) + asm.Repeat(3_000, asm.End)
		})},
		{"50,000 blocks within blocks", g.code(0, func() asm.Code {
			return asm.Repeat(50_000, asm.Block, asm.Void) + asm.Repeat(50_000, asm.End)
		})},
		{"three million calls", g.with(func(m *asm.Module) {
			f := m.Func("", nil, nil, 0)
			m.Func("", nil, nil, 0, asm.Repeat(3_000_000, asm.Call(f)))
		})},
		{"a thousand calls of a thousand parameters", g.with(func(m *asm.Module) {
			f := m.Func("", asm.I32s(1_000), nil, 0)
			m.Func("", nil, nil, 0, asm.Repeat(1_000, asm.Repeat(1_000, asm.Const(1)), asm.Call(f)))
		})},
		{"a hundred thousand functions", g.with(func(m *asm.Module) { m.Copies(99_900, m.Type(nil, nil)) })},
		{"a hundred thousand data segments", g.with(many(99_900, func(m *asm.Module) { m.Data(60_000, []byte{1}) }))},
		{"ten thousand exports", g.with(func(m *asm.Module) {
			for k := range 9_900 {
				m.Export(strings.Repeat("e", 1_000)+string(rune('0'+k)), 0, 0)
			}
		})},
		{"a thousand tables of a thousand branches", repeated(1_000, asm.Block, asm.Void, asm.Get(0),
			asm.BrTable(make([]uint32, 1_000)...), asm.End)},
		{"a body of 30 MB: additions", repeated(3_900_000, asm.Get(0), asm.Const(3), asm.Add, asm.Set(0))},
		{"a body of 30 MB: loads", repeated(3_900_000, asm.Get(0), asm.Load(0), asm.Set(0))},
		{"a body of 30 MB: nothing", repeated(30_000_000, "\x01")},
		{"a body of 30 MB that is not valid", repeated(30_000_000, asm.Add)},
		{"bodies of 30 MB with lines", func() []byte {
			module := g.with(func(m *asm.Module) {
				m.Copies(1_000, m.Type(nil, nil), asm.Repeat(28_000, "\x01"))
			})()
			return custom(".debug_line", module, make([]byte, 1<<20))
		}},
	}
}

// ifs sets locals, one after the other, in so many ifs.
func ifs(locals, n int) func() asm.Code {
	return func() asm.Code {
		var b strings.Builder
		for k := range n {
			b.WriteString(string(asm.Get(0) + asm.If + asm.Void + asm.Const(int32(k)) + asm.Set(uint32(k%locals)) + asm.End))
		}
		return asm.Code(b.String())
	}
}

func many(n int, add func(m *asm.Module)) func(*asm.Module) {
	return func(m *asm.Module) {
		for range n {
			add(m)
		}
	}
}
