//go:build !race

// The race detector maps its shadow memory in the compiler's process, many times the limits of these tests.

package wasm

import (
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/internal/linear"
	"github.com/rlhost/rlhost/plugins/wasm/internal/wasmtest"
)

func TestCompiler_KeepsItsLimitOfMemory(t *testing.T) {
	keepsLimit(t, "memory", big(), env.Source{Limits: env.Limits{CompileMemory: 96 << 20}},
		"E017 bomb.wasm: takes more memory to compile than its limit of 96 MiB; raise limits.compile_memory of the environment if the module is yours, or make it smaller")
}

// The host reports a guest's mistakes within its limits, as if no other process had seen them.
func TestCompiler_LeavesAGuestsMistakesToTheHost(t *testing.T) {
	r, log := apart(t, t.TempDir(), compilerRole)
	cases := wrongStarts()
	for i := range cases {
		cases[i].config.CompileMemory = 128 << 20 // a stack without end takes more
	}
	refuses(t, r, cases)
	if log.Len() > 0 {
		t.Error(log.String())
	}
}

// The limit on the compiler's memory does not reduce the guest's memory.
func TestCompiler_GivesAGuestItsMemory(t *testing.T) {
	const limit = 1600 << 20
	eat := asm.Block + asm.Void + asm.Loop + asm.Void + asm.Const(16) + asm.MemoryGrow + asm.Const(-1) + asm.Eq + asm.BrIf(1) + asm.Br(0) + asm.End + asm.End +
		asm.MemorySize + asm.Const(limit/linear.WasmPage) + asm.Eq + asm.Eqz + asm.If + asm.Void + asm.Unreachable + asm.End
	source := wasmtest.Guest{Pages: 16, After: func(m *asm.Module) { m.Start(m.Func("", nil, nil, 0, eat)) }}.Bytes()
	c := env.Source{Limits: env.Limits{Memory: limit, CompileMemory: 256 << 20}}
	r, _ := apart(t, t.TempDir(), compilerRole)
	_, err := r.Load(t.Context(), deadly, source, c)
	died(t, err) // but its start function had returned
	load(t, r, "eater.wasm", source, c)
}
