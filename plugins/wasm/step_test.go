package wasm

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/internal/wasmtest"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// A step in several calls writes the same as a step in one call, for every number of calls.
func TestStep_InPartsDoesTheSame(t *testing.T) {
	for name, source := range exampleGuests(t, "") {
		t.Run(name, func(t *testing.T) {
			p := load(t, newRuntime(t), name, source, env.Source{})
			all := blocks(t, p.Spec(), trajectory.Shape{Steps: 16, Envs: 13}, 1)
			var want []byte
			for _, parts := range []int{1, 2, 5, 13} {
				e := newEnv(t, p, env.Options{Envs: 13})
				clear(all[0].Mem) // what nobody writes must not differ between runs
				begin(t, e, all)
				e.pace.parts = parts
				var got []byte
				for range 3 {
					got = append(got, playParts(t, e, all[0], parts)...)
				}
				if parts == 1 {
					want = got
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%d calls a step differ from one", parts)
				}
			}
		})
	}
}

// playParts plays one block; the pace does not change, no matter how long steps take.
func playParts(t *testing.T, e *Env, b env.Block, parts int) []byte {
	t.Helper()
	for k := range b.Int32(trajectory.Action) {
		b.Int32(trajectory.Action)[k] = int32(k & 1)
	}
	for k := range b.Schema.Shape.Steps {
		e.pace = pace{parts: parts}
		must(t, e.Step(k))
	}
	return bytes.Clone(b.Mem[:b.Schema.GuestBytes])
}

func TestPace_KeepsCallsShort(t *testing.T) {
	var p pace
	for _, c := range []struct {
		took  time.Duration
		parts int
	}{
		{20 * time.Millisecond, 0},   // a first measurement alone decides nothing
		{300 * time.Microsecond, 1},  // the shorter of two counts
		{4100 * time.Microsecond, 1}, //
		{4100 * time.Microsecond, 5}, // and now both are long
		{100 * time.Millisecond, 5},  //
		{100 * time.Millisecond, 16}, // not more calls than environments
		{500 * time.Microsecond, 1},  //
	} {
		p.update(c.took, 16)
		if p.parts != c.parts {
			t.Errorf("after %v: %d calls a step, want %d", c.took, p.parts, c.parts)
		}
	}
}

func TestStep_FaultInAPart(t *testing.T) {
	part := asm.Get(2) + asm.Const(10) + asm.Eq + asm.If + asm.Void + asm.Unreachable + asm.End + asm.Const(0)
	g := wasmtest.Guest{After: func(m *asm.Module) {
		m.Func(hostabi.ExportStepRange, asm.I32s(4), asm.I32s(1), 0, part)
		m.Func(hostabi.ExportCurrentEnv, nil, asm.I32s(1), 0, asm.Const(12))
	}}
	e, _ := bound(t, g, env.Source{})
	e.pace.parts = 2
	err := e.Step(0)
	want := "rollout[0] env 112: trap in rl_step_range at step 1: unreachable in function 9 (guest.wasm)"
	if err == nil || err.Error() != want {
		t.Errorf("Step = %v, want %s", err, want)
	}
}

// A guest may export what it imports: the host then calls itself, and finds the guest all the same.
func TestStep_ThroughAReexportedImport(t *testing.T) {
	g := wasmtest.Guest{Functions: map[string]asm.Code{hostabi.ExportStep: wasmtest.Absent}, Before: func(m *asm.Module) {
		m.Import(module.WASI, "random_get", asm.I32s(2), asm.I32s(1))
		m.Export(hostabi.ExportStep, 0, 0)
	}}
	p := load(t, newRuntime(t), "guest.wasm", g.Bytes(), env.Source{})
	e, _ := opened(t, p, env.Options{Envs: 1})
	if err := e.Step(3); err != nil {
		t.Errorf("Step = %v", err)
	}
	if err := e.Step(4); !errors.Is(err, env.ErrUnsupported) {
		t.Errorf("Step behind the block = %v", err)
	}
}
