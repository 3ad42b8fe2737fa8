package wasm

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/engine"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/internal/wasmtest"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// atStep makes the guest do something in its nth step.
func atStep(n int32, code asm.Code) map[string]asm.Code {
	when := asm.Const(wasmtest.CounterAt) + asm.Load(0) + asm.Const(n-1) + asm.Eq + asm.If + asm.Void + code + asm.End
	return map[string]asm.Code{hostabi.ExportStep: when + wasmtest.Standard()[hostabi.ExportStep]}
}

// says makes the guest say something in rl_last_error, up to 15 letters.
func says(text string) asm.Code {
	var code asm.Code
	text += strings.Repeat("\x00", 16-len(text))
	for k := range 4 {
		v := int32(uint32(text[4*k]) | uint32(text[4*k+1])<<8 | uint32(text[4*k+2])<<16 | uint32(text[4*k+3])<<24)
		code += asm.Const(wasmtest.WordsAt+int32(4*k)) + asm.Const(v) + asm.Store(0)
	}
	return code
}

// bound returns an Env of a built guest with a block bound.
func bound(t *testing.T, g wasmtest.Guest, c env.Source) (*Env, env.Block) {
	t.Helper()
	p := load(t, newRuntime(t), "guest.wasm", g.Bytes(), c)
	return opened(t, p, env.Options{Envs: 20, FirstEnv: 100})
}

// stepUntilFault steps until an error comes.
func stepUntilFault(t *testing.T, e *Env, most int) error {
	t.Helper()
	for k := range most {
		if err := e.Step(k % 4); err != nil {
			return err
		}
	}
	t.Fatalf("no error in %d steps", most)
	return nil
}

// faultCase is a guest that fails in a step, and the expected error.
type faultCase struct {
	name   string
	guest  wasmtest.Guest
	config env.Source
	kind   env.FaultKind
	want   string
}

// trapping are guests that stop in the middle.
func trapping() []faultCase {
	rawExit := func(m *asm.Module) { m.Import(module.WASI, "proc_exit", asm.I32s(1), nil) }
	return []faultCase{
		{"trap with its env and the guest's words", wasmtest.Guest{Functions: atStep(40112, says("pole fell off")+asm.Unreachable),
			After: func(m *asm.Module) {
				m.Func(hostabi.ExportCurrentEnv, nil, asm.I32s(1), 0, asm.Const(17))
				m.Name(hostabi.ExportABI, "describe", "alloc", "free", "create", "bind", "reset", "advance_pole")
			}}, env.Source{}, env.FaultTrap,
			`rollout[0] env 117: trap in rl_step at step 40112: unreachable in advance_pole: "pole fell off" (guest.wasm)`},
		{"endless recursion", wasmtest.Guest{Functions: atStep(2, asm.Get(0)+asm.Get(1)+asm.Call(7)+asm.Drop)},
			env.Source{Limits: env.Limits{Step: time.Minute}}, env.FaultTrap,
			`rollout[0]: trap in rl_step at step 2: stack overflow (guest.wasm)`},
		{"store out of memory", wasmtest.Guest{Functions: atStep(2, asm.Const(-8)+asm.Const(1)+asm.Store(0))}, env.Source{}, env.FaultTrap,
			`rollout[0]: trap in rl_step at step 2: out of bounds memory access in function 7 (guest.wasm)`},
		{"proc_exit", wasmtest.Guest{Before: rawExit, Functions: atStep(2, asm.Const(3)+asm.Call(0))}, env.Source{}, env.FaultTrap,
			`rollout[0]: trap in rl_step at step 2: the guest exited with code 3 in function 8 (guest.wasm)`},
		{"index of an env that is not there", wasmtest.Guest{Functions: atStep(1, asm.Unreachable), After: func(m *asm.Module) {
			m.Func(hostabi.ExportCurrentEnv, nil, asm.I32s(1), 0, asm.Const(20))
		}}, env.Source{}, env.FaultTrap,
			`rollout[0]: trap in rl_step at step 1: unreachable in function 7 (guest.wasm)`},
		{"rl_last_error that never ends", wasmtest.Guest{Functions: map[string]asm.Code{hostabi.ExportLastError: endless,
			hostabi.ExportStep: asm.Unreachable}}, env.Source{}, env.FaultTrap,
			`rollout[0]: trap in rl_step at step 1: unreachable in function 7 (guest.wasm)`},
	}
}

// neverEnding are guests that must be stopped.
func neverEnding() []faultCase {
	fill := asm.Const(0x100000) + asm.Const(0) + asm.Const(8<<20) + asm.MemoryFill
	return []faultCase{
		{"endless loop in step 3", wasmtest.Guest{Functions: atStep(3, endless)}, env.Source{Limits: env.Limits{Step: wasmtest.TwoSlices}}, env.FaultDeadline,
			`rollout[0]: deadline in rl_step at step 3: stopped after its limit of 1ns in function 7 (guest.wasm)`},
		{"endless recursion that takes too long", wasmtest.Guest{Functions: atStep(2, asm.Get(0)+asm.Get(1)+asm.Call(7)+asm.Drop)},
			env.Source{Limits: env.Limits{Step: wasmtest.TwoSlices}}, env.FaultDeadline,
			`rollout[0]: deadline in rl_step at step 2: stopped after its limit of 1ns in function 7 (guest.wasm)`},
		{"bulk operations one after the other", wasmtest.Guest{Pages: 300, Functions: atStep(1, asm.Code(strings.Repeat(string(fill), 1000)))},
			env.Source{Limits: env.Limits{Step: wasmtest.TwoSlices}}, env.FaultDeadline,
			`rollout[0]: deadline in rl_step at step 1: stopped after its limit of 1ns in function 7 (guest.wasm)`},
	}
}

// complaining are guests that say no, or run out of memory.
func complaining() []faultCase {
	return []faultCase{
		{"error status with words", wasmtest.Guest{Functions: map[string]asm.Code{
			hostabi.ExportStep: says("action 9 of 2") + asm.Const(int32(hostabi.StatusAction))},
			After: func(m *asm.Module) {
				m.Func(hostabi.ExportCurrentEnv, nil, asm.I32s(1), 0, asm.Const(3))
			}}, env.Source{}, env.FaultStatus,
			`rollout[0] env 103: status in rl_step at step 1: action outside its space: "action 9 of 2" (guest.wasm)`},
		{"error status without words", wasmtest.Guest{Functions: map[string]asm.Code{hostabi.ExportLastError: wasmtest.Absent,
			hostabi.ExportStep: asm.Const(int32(hostabi.StatusState))}}, env.Source{}, env.FaultStatus,
			`rollout[0]: status in rl_step at step 1: call not allowed in this state (guest.wasm)`},
		{"memory.grow without end", wasmtest.Guest{Functions: atStep(2, asm.Loop+asm.Void+asm.Const(16)+asm.MemoryGrow+asm.Const(-1)+asm.Eq+asm.Eqz+
			"\x0d\x00"+asm.End+asm.Unreachable)}, env.Source{Limits: env.Limits{Memory: 8 << 20}}, env.FaultMemory,
			`rollout[0]: memory in rl_step at step 2: unreachable in function 7, after the memory limit of 8 MiB was reached (guest.wasm)`},
	}
}

func TestStep_FaultsNameComponentEnvStepAndReason(t *testing.T) {
	cases := slices.Concat(trapping(), neverEnding(), complaining())
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e, b := bound(t, c.guest, c.config)
			err := stepUntilFault(t, e, 50_000)
			var f *env.Fault
			if !errors.As(err, &f) || f.Kind != c.kind {
				t.Fatalf("Step = %v, want a fault of kind %v", err, c.kind)
			}
			if got := err.Error(); got != c.want {
				t.Errorf("it says\n%s\nwant\n%s", got, c.want)
			}
			checkAfterFault(t, e, b, f)
		})
	}
}

// checkAfterFault expects that a poisoned Env refuses work until it is renewed, and works then.
func checkAfterFault(t *testing.T, e *Env, b env.Block, f *env.Fault) {
	t.Helper()
	if !f.Poisons() {
		if err := e.Bind(b); err != nil {
			t.Errorf("Bind after a fault that does not poison = %v", err)
		}
		return
	}
	if err := e.Step(0); !errors.Is(err, env.ErrPoisoned) {
		t.Errorf("Step of a poisoned Env = %v", err)
	}
	if err := e.Renew(); err != nil {
		t.Fatalf("Renew = %v", err)
	}
	if err := e.Step(0); !errors.Is(err, env.ErrUnsupported) {
		t.Errorf("Step without a block = %v", err)
	}
	if err := e.Bind(b); err != nil {
		t.Fatalf("Bind after Renew = %v", err)
	}
	if f.Step > 1 {
		if err := e.Step(0); err != nil {
			t.Errorf("Step after Renew = %v", err)
		}
	}
}

func TestBind_RefusesBadDonations(t *testing.T) {
	windowsOnly := func(answer asm.Code) map[string]asm.Code {
		return map[string]asm.Code{hostabi.ExportAlloc: asm.Get(1) + asm.Const(65536) + asm.Eq + asm.If + asm.Void + answer +
			asm.Return + asm.End + wasmtest.Allocate()}
	}
	cases := []struct {
		name   string
		answer asm.Code
		want   string
	}{
		{"null", asm.Const(0),
			`rollout[0]: memory in rl_alloc at step 0: the guest has no 4 KiB to give, though a window does not count against its memory limit of 64 MiB (guest.wasm)`},
		{"misaligned", asm.Const(4096),
			`rollout[0]: memory in rl_alloc at step 0: the guest gave memory at 0x1000, which is not aligned to 65536 bytes as asked (guest.wasm)`},
		{"out of range", asm.Const(1 << 20),
			`rollout[0]: memory in rl_alloc at step 0: the guest gave 4096 bytes at 0x100000, which is outside of its memory of 128 KiB (guest.wasm)`},
		{"beyond the end by a byte", asm.MemorySize + asm.Const(16) + asm.Shl,
			`rollout[0]: memory in rl_alloc at step 0: the guest gave 4096 bytes at 0x20000, which is outside of its memory of 128 KiB (guest.wasm)`},
		{"wrapping around", asm.Const(-65536),
			`rollout[0]: memory in rl_alloc at step 0: the guest gave 4096 bytes at 0xffff0000, which is outside of its memory of 128 KiB (guest.wasm)`},
		{"over what the host has", asm.Const(65536),
			`rollout[0]: memory in rl_alloc at step 0: the guest gave 4096 bytes at 0x10000, which overlap memory that it gave to the host before (guest.wasm)`},
		{"trap", asm.Unreachable,
			`rollout[0]: trap in rl_alloc at step 0: unreachable in function 2 (guest.wasm)`},
		{"endless", endless,
			`rollout[0]: deadline in rl_alloc at step 0: stopped after its limit of 1ns in function 2 (guest.wasm)`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := load(t, newRuntime(t), "guest.wasm", wasmtest.Guest{Functions: windowsOnly(c.answer)}.Bytes(), env.Source{Limits: env.Limits{Init: wasmtest.TwoSlices}})
			e := newEnv(t, p, env.Options{Envs: 2})
			b := blocks(t, p.Spec(), trajectory.Shape{Steps: 4, Envs: 2}, 1)[0]
			err := e.Bind(b)
			var f *env.Fault
			if !errors.As(err, &f) || !f.Poisons() {
				t.Fatalf("Bind = %v, want a fault that poisons", err)
			}
			if got := err.Error(); got != c.want {
				t.Errorf("it says\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestBind_RefusesTheSameMemoryTwice(t *testing.T) {
	// Windows at 2 MiB, all of them.
	again := map[string]asm.Code{hostabi.ExportAlloc: asm.Get(1) + asm.Const(65536) + asm.Eq + asm.If + asm.Void +
		asm.Const(2<<20) + asm.Return + asm.End + wasmtest.Allocate()}
	p := load(t, newRuntime(t), "guest.wasm", wasmtest.Guest{Functions: again, Pages: 64}.Bytes(), env.Source{})
	e := newEnv(t, p, env.Options{Envs: 2})
	all := blocks(t, p.Spec(), trajectory.Shape{Steps: 4, Envs: 2}, 2)
	must(t, e.Bind(all[0]))
	err := e.Bind(all[1])
	want := "rollout[0]: memory in rl_alloc at step 0: the guest gave 4096 bytes at 0x200000, which overlap the window of block 0 (guest.wasm)"
	if err == nil || err.Error() != want {
		t.Errorf("Bind = %v, want %s", err, want)
	}
}

func TestStep_EndsNotBeforeItsLimit(t *testing.T) {
	const limit = 30 * time.Millisecond
	e, _ := bound(t, wasmtest.Guest{Functions: atStep(1, endless)}, env.Source{Limits: env.Limits{Step: limit}})
	began := time.Now()
	err := e.Step(0)
	var f *env.Fault
	if took := time.Since(began); !errors.As(err, &f) || f.Kind != env.FaultDeadline || took < limit {
		t.Errorf("Step = %v after %v, want a deadline after %v or more", err, took, limit)
	}
}

// A guest that loops must not hold up the garbage collector, which waits for every goroutine to stop somewhere.
// If it did, this test would not end.
func TestStep_LoopingGuestLetsTheCollectorRun(t *testing.T) {
	r, done := loopingForever(t)
	for range 5 {
		runtime.GC()
		select {
		case err := <-done:
			t.Fatalf("the endless step ended: %v", err)
		default:
		}
	}
	must(t, r.Close())
	if err := <-done; err == nil {
		t.Error("an endless step ended well")
	}
}

// loopingForever starts a step without end and returns its runtime and where its error will come.
func loopingForever(t *testing.T) (*Runtime, chan error) {
	t.Helper()
	r := newRuntime(t)
	p := load(t, r, "guest.wasm", wasmtest.Guest{Functions: atStep(1, endless)}.Bytes(), env.Source{Limits: env.Limits{Step: time.Hour}})
	e, _ := opened(t, p, env.Options{Envs: 20})
	done := make(chan error, 1)
	go func() { done <- e.Step(0) }()
	for !e.gate.Busy() {
		runtime.Gosched()
	}
	return r, done
}

func TestRuntimeClose_EndsCallsThatRun(t *testing.T) {
	r, done := loopingForever(t)
	must(t, r.Close())
	err := <-done
	var f *env.Fault
	if !errors.As(err, &f) || f.Kind != env.FaultDeadline || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("Step = %v, want a deadline fault that says why", err)
	}
	if _, err := r.Load(t.Context(), "guest.wasm", wasmtest.Guest{}.Bytes(), env.Source{}); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("Load after Close = %v", err)
	}
}

// TestFault_LeavesOutCallersWithoutNames nests functions of which two have names: the innermost is shown in any case, as a number.
func TestFault_LeavesOutCallersWithoutNames(t *testing.T) {
	g := wasmtest.Guest{After: func(m *asm.Module) {
		inner := m.Func("", nil, nil, 0, asm.Unreachable)
		for range 11 {
			inner = m.Func("", nil, nil, 0, asm.Call(inner), asm.Unreachable)
		}
		own := []string{hostabi.ExportABI, "describe", "alloc", "free", "create", "bind", "reset", "step", "last_error"}
		m.Name(append(own, "", "", "look", "", "", "", "", "", "", "", "", "play")...)
	}, Functions: map[string]asm.Code{hostabi.ExportStep: asm.Call(9+11) + asm.Const(0)}}
	e, _ := bound(t, g, env.Source{})
	want := "rollout[0]: trap in rl_step at step 1: unreachable in function 9, called by look, play, step (guest.wasm)"
	if err := e.Step(0); err == nil || err.Error() != want {
		t.Errorf("Step = %v\nwant %s", err, want)
	}
}

// TestFault_ShowsTheStackInTheAuthorsWords nests functions whose names are as compilers write them.
func TestFault_ShowsTheStackInTheAuthorsWords(t *testing.T) {
	names := []string{ // innermost first
		"_ZNK4walk5BoardIfLi8EE2atEj",                            // C++
		"_ZN4walk5board5Board4look17h1a2b3c4d5e6f7a8bE",          // Rust, as it was
		"_RNvMNtCs1234_4walk5boardNtB2_5Board4look",              // Rust
		"debug.FullPanic((function 'defaultPanic')).outOfBounds", // Zig
		"~lib/array/Array<i32>#__get",                            // AssemblyScript
		"main.(*Walk).Step",                                      // Go
		"plain_c",
	}
	g := wasmtest.Guest{After: func(m *asm.Module) {
		inner := m.Func("", nil, nil, 0, asm.Unreachable)
		for range names[1:] {
			inner = m.Func("", nil, nil, 0, asm.Call(inner), asm.Unreachable)
		}
		if inner != 9+uint32(len(names))-1 {
			t.Fatalf("the last function is %d", inner)
		}
		own := []string{hostabi.ExportABI, "describe", "alloc", "free", "create", "bind", "reset", "step", "last_error"}
		m.Name(append(own, names...)...)
	}, Functions: map[string]asm.Code{hostabi.ExportStep: asm.Call(9+6) + asm.Const(0)}}
	e, _ := bound(t, g, env.Source{})
	want := "rollout[0]: trap in rl_step at step 1: unreachable in walk::Board<float, 8>::at, called by walk::board::Board::look, <walk::board::Board>::look, " +
		"debug.FullPanic((function 'defaultPanic')).outOfBounds, ~lib/array/Array<i32>#__get, main.(*Walk).Step, plain_c, step (guest.wasm)"
	if err := e.Step(0); err == nil || err.Error() != want {
		t.Errorf("Step = %v\nwant %s", err, want)
	}
}
