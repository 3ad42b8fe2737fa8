package wasm

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/guest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/internal/linear"
	"github.com/rlhost/rlhost/plugins/wasm/internal/wasmtest"
)

// Every SDK's allocator finds memory for windows many times as large as the limit, in an instance, in its fork and after Renew.
func TestBind_WindowsDoNotCountAgainstTheLimit(t *testing.T) {
	for name, source := range exampleGuests(t, "cartpole") {
		t.Run(name, func(t *testing.T) {
			limit := uint64(2 << 20)
			if strings.Contains(name, "go") || strings.Contains(name, "assemblyscript") {
				limit = 8 << 20 // of a runtime with a collector
			}
			p := load(t, newRuntime(t), name, source, env.Source{Limits: env.Limits{Memory: limit}})
			o := env.Options{Envs: 512}
			e, other := newEnv(t, p, o), newEnv(t, p, o)
			all := blocks(t, p.Spec(), trajectory.Shape{Steps: 1024, Envs: 512}, 3)
			if n := uint64(all[0].Schema.GuestBytes); n < limit {
				t.Fatalf("blocks of %d bytes, want more than the limit of %d", n, limit)
			}
			rewards := func(e *Env) {
				t.Helper()
				begin(t, e, all)
				for _, b := range all {
					must(t, e.Bind(b))
					must(t, e.Step(1023))
					if got := b.Float32(trajectory.Reward)[512*1024-1]; got != 1 {
						t.Errorf("the last reward of block %d is %v", b.Index, got)
					}
					b.Float32(trajectory.Reward)[512*1024-1] = 0
				}
				keepsLimits(t, e)
			}
			rewards(e)
			must(t, other.CopyFrom(e))
			rewards(other)
			must(t, e.Renew())
			rewards(e)
		})
	}
}

// keepsLimits checks that an instance has no more memory of its own than it may, and that windows do not overlap.
func keepsLimits(t *testing.T, e *Env) {
	t.Helper()
	sum := uint64(0)
	for k, w := range e.windows {
		sum += uint64(w.bytes)
		for _, other := range e.windows[:k] {
			if guest.Overlap(w.ptr, w.bytes, other.ptr, other.bytes) {
				t.Errorf("the windows of blocks %d and %d overlap", other.block, w.block)
			}
		}
	}
	m := e.inst.Mem
	if m.Donated != sum || m.Size > m.Limit+sum {
		t.Errorf("a memory of %d bytes with windows of %d, of which %d are known, and a limit of %d", m.Size, sum, m.Donated, m.Limit)
	}
}

// grown is code that grows the memory page by page until that fails.
var grown = asm.Loop + asm.Void + asm.Const(1) + asm.MemoryGrow + asm.Const(-1) + asm.Eq + asm.Eqz + asm.BrIf(0) + asm.End

// greedyLimit is the limit of guests that take all memory that they can get. They have most of it from the beginning.
const greedyLimit = 2 << 20

// greedy returns a guest that grows in each step, and has a rl_alloc that does something else before it looks for memory of an
// alignment.
func greedy(align int32, first asm.Code) []byte {
	alloc := asm.Get(1) + asm.Const(align) + asm.Eq + asm.If + asm.Void + first + asm.End + wasmtest.Allocate()
	return wasmtest.Guest{Functions: map[string]asm.Code{hostabi.ExportAlloc: alloc, hostabi.ExportStep: grown + asm.Const(0)}, Pages: 24}.Bytes()
}

// greedyEnv returns an Env of a greedy guest, and blocks that are nearly a mebibyte.
func greedyEnv(t *testing.T, guest []byte, limit uint64, n int) (*Env, []env.Block) {
	t.Helper()
	p := load(t, newRuntime(t), "guest.wasm", guest, env.Source{Limits: env.Limits{Memory: limit}})
	all := blocks(t, p.Spec(), trajectory.Shape{Steps: 800, Envs: 64}, n)
	if got := all[0].Schema.GuestBytes; got < 3<<18 || got > 1<<20 {
		t.Fatalf("blocks of %d bytes", got)
	}
	return newEnv(t, p, env.Options{Envs: 64}), all
}

// windowAlign is the alignment of windows' memory.
const windowAlign = 65536

// oldMemory is an address of memory that greedy guests have from the beginning.
const oldMemory = 2 << 16

// A guest may have its limit of its own memory, plus the memory that it gives: in any order of growing and giving it gets so far, and
// no page further.
func TestLimit_IsWhatAGuestHasOfItsOwn(t *testing.T) {
	last := asm.MemorySize + asm.Const(16) + asm.Shl + asm.Get(0) + asm.Sub + asm.Const(-windowAlign) + asm.And
	for name, guest := range map[string][]byte{
		"gives what it grows by":                 greedy(windowAlign, ""),
		"grows, and gives some of that":          greedy(windowAlign, grown),
		"grows, and gives what it had":           greedy(windowAlign, grown+asm.Const(oldMemory)+asm.Return),
		"grows, and gives the end":               greedy(windowAlign, grown+last+asm.Return),
		"gives what it had":                      greedy(windowAlign, asm.Const(oldMemory)+asm.Return),
		"grows between the window and its words": greedy(64, grown),
	} {
		t.Run(name, func(t *testing.T) {
			e, all := greedyEnv(t, guest, greedyLimit, 1)
			must(t, e.Bind(all[0]))
			keepsLimits(t, e)
			most := (greedyLimit + e.inst.Mem.Donated) / linear.WasmPage * linear.WasmPage
			for range 2 {
				must(t, e.Step(0))
				if got := e.inst.Mem.Size; got != most {
					t.Errorf("it has %d bytes, want %d", got, most)
				}
			}
			all[0].Mem[99] = 77
			if w := e.windows[0]; e.inst.View(w.ptr, w.bytes)[99] != 77 {
				t.Error("what it gave is not the block")
			}
		})
	}
}

// faultOf checks that an error is a fault of memory, and its words.
func faultOf(t *testing.T, err error, words string) {
	t.Helper()
	var f *env.Fault
	if !errors.As(err, &f) || f.Kind != env.FaultMemory || !f.Poisons() || !strings.Contains(err.Error(), words) {
		t.Errorf("it ends with %v, want a fault of memory with %q", err, words)
	}
}

// A guest that grows by the allowance for a window and gives none is never called again with that memory.
func TestLimit_WhoGivesNoWindowLosesWhatItGrewBy(t *testing.T) {
	for name, c := range map[string]struct {
		answer asm.Code
		words  string
	}{
		"nothing":               {asm.Const(0) + asm.Return, "the guest has no"},
		"beyond its end":        {asm.Const(-windowAlign) + asm.Return, "outside of its memory"},
		"between pages":         {asm.Const(oldMemory+4096) + asm.Return, "not aligned"},
		"what it gave before":   {asm.Const(wasmtest.HeapAt) + asm.Return, "memory that it gave to the host before"},
		"nothing, and it traps": {asm.Unreachable, "unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			e, all := greedyEnv(t, greedy(windowAlign, grown+c.answer), greedyLimit, 1)
			for range 2 {
				faultOf(t, e.Bind(all[0]), c.words)
				if err := e.Step(0); !errors.Is(err, env.ErrPoisoned) {
					t.Errorf("Step = %v, want %v", err, env.ErrPoisoned)
				}
				must(t, e.Renew())
				if m := e.inst.Mem; m.Donated != 0 || m.Size > m.Limit {
					t.Errorf("after Renew it has %d bytes and windows of %d, its limit is %d", m.Size, m.Donated, m.Limit)
				}
			}
		})
	}
}

// Memory cannot shrink: a guest that has filled the memory that smaller windows leave continues in a new instance, a guest that
// has room for it continues in its own.
func TestLimit_HoldsWhenWindowsBecomeSmaller(t *testing.T) {
	for _, fills := range []bool{true, false} {
		e, all := greedyEnv(t, greedy(windowAlign, ""), greedyLimit+1<<20, 1)
		small := blocks(t, e.plugin.spec, trajectory.Shape{Steps: 7, Envs: 64}, 1)[0]
		must(t, e.Bind(all[0]))
		if fills {
			must(t, e.Step(0))
			faultOf(t, e.Bind(small), "of its own besides windows of")
			must(t, e.Renew())
		}
		must(t, e.Bind(small))
		keepsLimits(t, e)
		must(t, e.Bind(all[0]))
		keepsLimits(t, e)
	}
}

// The windows belong to the state of an instance.
func TestLimit_GoesWithTheState(t *testing.T) {
	e, all := greedyEnv(t, greedy(windowAlign, ""), greedyLimit, 2)
	other := newEnv(t, e.plugin, env.Options{Envs: 64})
	for _, b := range all {
		must(t, e.Bind(b))
	}
	must(t, e.Step(0))
	snap, err := e.Snapshot()
	must(t, err)
	for name, put := range map[string]func() error{
		"Restore":                func() error { return other.Restore(snap) },
		"CopyFrom":               func() error { return other.CopyFrom(e) },
		"Restore after Renew":    func() error { return errors.Join(other.Renew(), other.Restore(snap)) },
		"CopyFrom after a block": func() error { return errors.Join(other.Renew(), other.Bind(all[1]), other.CopyFrom(e)) },
	} {
		must(t, put())
		keepsLimits(t, other)
		must(t, other.Bind(all[1]))
		must(t, other.Step(0))
		if got, want := other.inst.Mem.Size, e.inst.Mem.Size; got != want {
			t.Errorf("after %s it can have %d bytes, want %d", name, got, want)
		}
	}
	narrow, _ := greedyEnv(t, greedy(windowAlign, ""), greedyLimit-linear.WasmPage, 1)
	if err := narrow.Restore(snap); !errors.Is(err, env.ErrUnsupported) || !strings.Contains(err.Error(), "of memory without windows, the limit is 1984 KiB") {
		t.Errorf("Restore with a lower limit = %v", err)
	}
	twice := *e.windows[0]
	e.windows = append(e.windows, &twice)
	forged, err := e.Snapshot()
	must(t, err)
	e.windows = e.windows[:2]
	if err := other.Restore(forged); !errors.Is(err, env.ErrUnsupported) || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("Restore with windows on the same memory = %v", err)
	}
}

// A module that declares the largest size of its memory ends there, which is known before anything runs.
func TestBind_WithinWhatTheModuleDeclares(t *testing.T) {
	guest := wasmtest.Guest{After: func(m *asm.Module) { m.MaxPages(8) }}.Bytes()
	e, all := greedyEnv(t, guest, greedyLimit, 1)
	faultOf(t, e.Bind(all[0]), "though a window does not count against its memory limit of 2 MiB, and its memory ends at 512 KiB")
	var short *env.MemoryError
	err := env.CheckMemory(e.plugin, 1, all[0].Schema)
	if !errors.As(err, &short) || !strings.HasSuffix(err.Error(), "more than the 0.5 MiB that the module declares to be its most") {
		t.Errorf("CheckMemory = %v", err)
	}
}

// Windows end where a module's addresses do, whatever the limit is.
func TestMemoryFor_EndsWithTheAddresses(t *testing.T) {
	p := load(t, newRuntime(t), cartPole, nil, env.Source{Limits: env.Limits{Memory: 1 << 20}})
	s, err := trajectory.NewSchema(p.Spec(), trajectory.Shape{Steps: 4095, Envs: 4096})
	must(t, err)
	fit := (linear.Addressable - 1) / s.GuestBytes
	if err := env.CheckMemory(p, fit, s); err != nil {
		t.Errorf("%d blocks of %d bytes: %v", fit, s.GuestBytes, err)
	}
	if err := env.CheckMemory(p, fit+1, s); err == nil || !strings.HasSuffix(err.Error(), "more than the 4096.0 MiB that a module can address") {
		t.Errorf("%d blocks of %d bytes: %v", fit+1, s.GuestBytes, err)
	}
}
