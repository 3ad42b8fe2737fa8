package meter

import (
	"context"
	"errors"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
)

// samples returns small valid modules that between them have everything that the rewriter touches.
func samples() [][]byte {
	full := asm.New(1)
	log := full.Import("rl", "log", asm.I32s(3), nil)
	g := full.Global(true, 7)
	full.Global(false, 9)
	full.Table(4)
	leaf := full.Func("leaf", asm.I32s(2), asm.I32s(1), 0, asm.Get(0), asm.Get(1), asm.Add)
	spin := full.Func("spin", asm.I32s(1), asm.I32s(1), 1,
		asm.Block, asm.Void, asm.Loop, asm.Void,
		asm.Get(1), asm.Const(1), asm.Call(leaf), asm.Tee(1), asm.Get(0), asm.GeU, asm.BrIf(1),
		asm.Get(1), asm.Get(1), asm.Const(1<<20), asm.Eq, asm.BrIf(2), asm.Drop, asm.Br(0), asm.End, asm.End,
		asm.Get(1), asm.GlobalSet(g), asm.Get(1), asm.Return)
	full.Func("bulk", asm.I32s(3), nil, 0, asm.Get(0), asm.Get(1), asm.Get(2), asm.MemoryFill,
		asm.Get(0), asm.Get(1), asm.Get(2), asm.MemoryCopy, asm.Get(0), asm.Get(1), asm.Get(2), asm.Call(log))
	start := full.Func("", nil, nil, 0, asm.Const(3), asm.Call(spin), asm.Drop)
	full.Elements(leaf, spin, start)
	full.Start(start)
	full.Data(100, []byte("hello"))
	full.Name("log", "leaf", "spin")
	empty := asm.Bare()
	indirect := asm.New(1)
	indirect.Table(1)
	self := indirect.Func("f", nil, nil, 0, asm.Const(0), "\x11\x00\x00")
	indirect.Elements(self)
	table := asm.Bare()
	nested := "\x02\x7f\x41\x05\x41\x01\x0e\x02\x00\x02\x00\x0b" // br_table out of a block with a value
	table.Func("g", nil, asm.I32s(1), 0, asm.Loop, "\x7f", asm.Code(nested), asm.End)
	return [][]byte{full.Bytes(), empty.Bytes(), indirect.Bytes(), table.Bytes()}
}

// valid reports whether wazero takes a module.
func valid(r wazero.Runtime, code []byte) error {
	ctx := context.Background()
	compiled, err := r.CompileModule(ctx, code)
	if err != nil {
		return err
	}
	return compiled.Close(ctx)
}

func TestRewrite_SamplesStayValid(t *testing.T) {
	r := newWazero(t, wazero.NewRuntimeConfig())
	for k, code := range samples() {
		if err := valid(r, code); err != nil {
			t.Errorf("sample %d is not valid: %v", k, err)
			continue
		}
		if err := valid(r, rewrite(t, code).Code); err != nil {
			t.Errorf("sample %d is not valid any more: %v", k, err)
		}
	}
}

// withoutCustom returns a module that was decoded, without its custom sections: the rewriter leaves them out, so
// mistakes in them do not matter.
func withoutCustom(code []byte) []byte {
	out := append([]byte(nil), magic...)
	for r := (&reader{b: code, p: len(magic)}); r.more(); {
		start := r.p
		id := r.u8()
		r.take(r.u32())
		if id != sectionCustom {
			out = append(out, code[start:r.p]...)
		}
	}
	return out
}

// FuzzRewrite checks that a module stays exactly as valid as before, and that no input makes the rewriter panic.
// Modules that Decode refuses are not shown to wazero, which reserves memory by any number that it reads.
func FuzzRewrite(f *testing.F) {
	for _, code := range samples() {
		f.Add(code)
	}
	// The interpreter checks modules like the compiler does, and is done sooner.
	r := newWazero(f, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
	f.Fuzz(func(t *testing.T, code []byte) {
		m, err := Decode(code)
		var result *Result
		if err == nil {
			result, err = m.Rewrite()
		}
		if err != nil {
			var reserved ErrReserved
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrFeature) && !errors.As(err, &reserved) {
				t.Errorf("error of no known kind: %v", err)
			}
			return
		}
		before, after := valid(r, withoutCustom(code)), valid(r, result.Code)
		if (before == nil) != (after == nil) {
			t.Errorf("before: %v\nafter: %v", before, after)
		}
	})
}

// FuzzReadLines holds that no line table makes its reader panic or keep more than it may.
func FuzzReadLines(f *testing.F) {
	f.Add(debugLine(100))
	f.Add(append(debugLine(5000), debugLine(70)...))
	// Special opcodes, constant and fixed advances, another file and an operand of an opcode that is not known.
	f.Add(withLength([]byte("\x02\x00\x13\x00\x00\x00\x01\x01\xfb\x0e\x0a\x00\x01\x01\x01\x01\x00\x00\x00\x01\x00a\x00\x00\x00\x00b\x00\x00\x00\x00\x00" +
		"\x00\x05\x02\x10\x00\x00\x00\x04\x02\x20\x08\x09\x07\x00\x03\x7f\x01\x00\x01\x01")))
	f.Fuzz(func(t *testing.T, table []byte) {
		l := ReadLines(table)
		if len(l.rows) > len(table) || len(l.files) > len(table) {
			t.Errorf("%d rows, %d files of %d bytes", len(l.rows), len(l.files), len(table))
		}
		for _, at := range []uint32{0, 1, 16, 99, 1 << 31, 1<<32 - 1} {
			if file, line, ok := l.At(at); ok && (line == 0 || len(file) > maxFileName) {
				t.Errorf("At(%d) = %q, %d", at, file, line)
			}
		}
	})
}
