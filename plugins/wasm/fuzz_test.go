package wasm

import (
	"errors"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/internal/wasmtest"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// FuzzLoad gives modules of any kind to the host and uses the loadable ones. They end in errors of the known kinds;
// the host neither crashes nor hangs, and a module that is loaded twice does the same twice.
func FuzzLoad(f *testing.F) {
	for _, g := range []wasmtest.Guest{
		{},
		{Functions: atStep(2, endless)},
		{Functions: atStep(1, asm.Unreachable), After: func(m *asm.Module) { m.Func("_initialize", nil, nil, 0) }},
		{Functions: map[string]asm.Code{hostabi.ExportAlloc: asm.Const(65536)}, Pages: 2},
		{Before: func(m *asm.Module) {
			m.Import("rl", "log", asm.I32s(3), nil)
			m.Import(module.WASI, "fd_write", asm.I32s(4), asm.I32s(1))
		}, Functions: map[string]asm.Code{hostabi.ExportStep: asm.Const(1) + asm.Const(1024) + asm.Const(9) + asm.Call(0) +
			asm.Const(1) + asm.Const(0) + asm.Const(1) + asm.Const(0) + asm.Call(1)}},
	} {
		f.Add(g.Bytes())
	}
	r := newRuntime(f)
	withoutFiles(f, r, wazero.NewRuntimeConfig()) // compiled code of the fuzzer's finds would fill the disk
	config := env.Source{Grants: []string{module.GrantLog, module.GrantClock, module.GrantMetric},
		Limits: env.Limits{Memory: 4 << 20, Step: wasmtest.TwoSlices, Init: wasmtest.TwoSlices}}
	f.Fuzz(func(t *testing.T, module []byte) {
		p, err := r.Load(t.Context(), "fuzz.wasm", module, config)
		if err != nil {
			var load *table.Error
			if !errors.As(err, &load) || load.Code == "" || load.Reason == "" || load.Help == "" {
				t.Errorf("Load = %v, want all of a table.Error", err)
			}
			return
		}
		defer p.Close()
		spec := p.Spec()
		e, err := p.NewEnv(env.Options{Name: "fuzz", Envs: 1, Autoreset: spec.PickAutoreset()})
		if err != nil {
			return
		}
		defer e.Close()
		if schema, err := trajectory.NewSchema(spec, trajectory.Shape{Steps: 2, Envs: 1}); err != nil || schema.GuestBytes > 1<<20 {
			return
		}
		b := blocks(t, spec, trajectory.Shape{Steps: 2, Envs: 1}, 1)[0]
		for range 2 {
			useFuzzed(t, e.(*Env), b)
			if err := e.Renew(); err != nil {
				return
			}
		}
	})
}

// useFuzzed makes the calls of a rollout, and expects errors of the known kinds alone.
func useFuzzed(t *testing.T, e *Env, b env.Block) {
	calls := []func() error{
		func() error { return e.Bind(b) },
		func() error { return e.Reset(0, nil, []uint64{1}) },
		func() error { return e.Step(0) },
		func() error {
			s, err := e.Snapshot()
			if err != nil {
				return err
			}
			return e.Restore(s)
		},
		func() error { return e.Bind(b) },
		func() error { return e.Step(1) },
	}
	for k, call := range calls {
		err := call()
		var fault *env.Fault
		if err != nil && !errors.As(err, &fault) && !errors.Is(err, env.ErrUnsupported) && !errors.Is(err, env.ErrPoisoned) {
			t.Errorf("call %d = %v, an error of no known kind", k, err)
		}
		if err == nil && e.inst.OverLimit() {
			t.Errorf("after call %d the guest has %d bytes with windows of %d, more than its limit of %d", k, e.inst.Mem.Size, e.inst.Mem.Donated, e.inst.Mem.Limit)
		}
	}
}
