package wasm

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/engine"
	"github.com/rlhost/rlhost/plugins/wasm/guest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/internal/wasmtest"
)

func TestStep_AllocatesNothing(t *testing.T) {
	for _, name := range []string{cartPole, examples + "cartpole-rust/cartpole.wasm"} {
		p := load(t, newRuntime(t), name, nil, env.Source{})
		e := newEnv(t, p, env.Options{Envs: 16})
		all := blocks(t, p.Spec(), trajectory.Shape{Steps: 8, Envs: 16}, 2)
		begin(t, e, all)
		n := testing.AllocsPerRun(500, func() {
			must(t, e.Step(3))
		})
		if n != 0 {
			t.Errorf("%s: %v allocations a step", name, n)
		}
		must(t, e.Bind(all[1]))
		k := 0
		n = testing.AllocsPerRun(100, func() {
			k++
			must(t, e.Bind(all[k&1]))
		})
		if n != 0 {
			t.Errorf("%s: %v allocations to switch blocks", name, n)
		}
	}
}

// Fuel depends on the guest's work, not on how long it took.
func TestFuelUsed_IsTheSameForTheSameWork(t *testing.T) {
	p := load(t, newRuntime(t), cartPole, nil, env.Source{})
	all := blocks(t, p.Spec(), trajectory.Shape{Steps: 32, Envs: 64}, 1)
	var used []uint64
	for range 2 {
		e := newEnv(t, p, env.Options{Envs: 64})
		begin(t, e, all)
		play(t, e, all, 5)
		used = append(used, e.FuelUsed())
	}
	if used[0] != used[1] || used[0] < 32*64*5 {
		t.Errorf("fuel used: %v", used)
	}
}

func TestEnv_UseAfterClose(t *testing.T) {
	r := newRuntime(t)
	p := load(t, r, "built.wasm", wasmtest.Guest{}.Bytes(), env.Source{})
	e := newEnv(t, p, env.Options{Envs: 1})
	b := blocks(t, p.Spec(), trajectory.Shape{Steps: 1, Envs: 1}, 1)[0]
	for range 2 {
		must(t, e.Close())
	}
	_, snapErr := e.Snapshot()
	for what, err := range map[string]error{"Bind": e.Bind(b), "Step": e.Step(0), "Reset": e.Reset(0, nil, nil),
		"Renew": e.Renew(), "Restore": e.Restore(nil), "Snapshot": snapErr} {
		if !errors.Is(err, engine.ErrClosed) {
			t.Errorf("%s after Close = %v", what, err)
		}
	}
}

// Environments outlive their plugin, and both outlive the runtime's Close.
func TestClose_InAnyOrder(t *testing.T) {
	r, err := New(Options{CacheDir: testCache})
	must(t, err)
	p, err := r.Load(t.Context(), cartPole, nil, env.Source{})
	must(t, err)
	e, err := p.NewEnv(env.Options{Envs: 8, Autoreset: hostabi.SameStep})
	must(t, err)
	all := blocks(t, p.Spec(), trajectory.Shape{Steps: 8, Envs: 8}, 1)
	must(t, errors.Join(p.Close(), p.Close()))
	begin(t, e.(*Env), all)
	if _, err := p.NewEnv(env.Options{Envs: 8, Autoreset: hostabi.SameStep}); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("NewEnv of a closed plugin = %v", err)
	}
	files := openFiles(t)
	must(t, r.Close())
	if openFiles(t) != files {
		t.Error("the engine is gone while an environment lives")
	}
	must(t, e.Close())
	if openFiles(t) >= files {
		t.Error("the engine lives on after the last environment")
	}
}

func TestNewEnv_RefusesOptions(t *testing.T) {
	p := load(t, newRuntime(t), "built.wasm", wasmtest.Guest{}.Bytes(), env.Source{})
	for _, o := range []env.Options{{Envs: 0, Autoreset: hostabi.NextStep}, {Envs: 1 << 21, Autoreset: hostabi.NextStep},
		{Envs: 1, Autoreset: hostabi.SameStep}, {Envs: 1, Autoreset: hostabi.SameStep | hostabi.NextStep}, {Envs: 1}} {
		if _, err := p.NewEnv(o); !errors.Is(err, env.ErrUnsupported) {
			t.Errorf("NewEnv(%+v) = %v", o, err)
		}
	}
}

func TestNewEnv_FaultsInCreate(t *testing.T) {
	for _, c := range []struct {
		code asm.Code
		want string
	}{
		{says("no such level") + asm.Const(-5), `lander: status in rl_create at step 0: configuration not accepted: "no such level" (guest.wasm)`},
		{asm.Unreachable, `lander: trap in rl_create at step 0: unreachable in function 4 (guest.wasm)`},
		{endless, `lander: deadline in rl_create at step 0: stopped after its limit of 1ns in function 4 (guest.wasm)`},
	} {
		g := wasmtest.Guest{Functions: map[string]asm.Code{hostabi.ExportCreate: c.code}}
		p := load(t, newRuntime(t), "guest.wasm", g.Bytes(), env.Source{Limits: env.Limits{Init: wasmtest.TwoSlices}})
		_, err := p.NewEnv(env.Options{Name: "lander", Envs: 1, Autoreset: hostabi.NextStep})
		if err == nil || err.Error() != c.want {
			t.Errorf("NewEnv = %v, want %s", err, c.want)
		}
	}
}

func TestConfig_ReachesTheGuestSorted(t *testing.T) {
	// rl_create keeps where its configuration is.
	g := wasmtest.Guest{Functions: map[string]asm.Code{hostabi.ExportCreate: asm.Const(wasmtest.CounterAt) + asm.Get(0) + asm.Store(0) +
		asm.Const(wasmtest.CounterAt) + asm.Get(1) + asm.Store(4) + asm.Const(0), hostabi.ExportLastError: wasmtest.Absent}}
	p := load(t, newRuntime(t), "guest.wasm", g.Bytes(), env.Source{Args: map[string]string{"wind.power": "3", "level": "ö x=1", "b": ""}})
	e := newEnv(t, p, env.Options{Envs: 1})
	at := words32(e.inst.View(wasmtest.CounterAt, 32))
	if got, want := string(e.inst.View(at[0], at[1])), "b=\nlevel=ö x=1\nwind.power=3\n"; got != want {
		t.Errorf("configuration %q, want %q", got, want)
	}
}

func TestPlugin_ServesManyGoroutines(t *testing.T) {
	p := load(t, newRuntime(t), cartPole, nil, env.Source{})
	all := blocks(t, p.Spec(), trajectory.Shape{Steps: 16, Envs: 8}, 8)
	want := func() []byte {
		e := newEnv(t, p, env.Options{Envs: 8})
		begin(t, e, all[:1])
		return play(t, e, all[:1], 3)
	}()
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			for range 5 {
				e, err := p.NewEnv(env.Options{Name: "e", Envs: 8, Autoreset: hostabi.SameStep})
				if err != nil {
					t.Error(err)
					return
				}
				begin(t, e.(*Env), all[k:k+1])
				if !bytes.Equal(play(t, e.(*Env), all[k:k+1], 3), want) {
					t.Error("another goroutine's environment is in the way")
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestNew_CacheThatCannotBeWrittenIsSaidOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	var log bytes.Buffer
	r, err := New(Options{CacheDir: filepath.Join(file, "cache"), Log: slog.New(slog.NewTextHandler(&log, nil))})
	must(t, err)
	defer r.Close()
	for range 2 {
		load(t, r, "built.wasm", wasmtest.Guest{}.Bytes(), env.Source{})
	}
	if got := strings.Count(log.String(), "compiled modules are not kept"); got != 1 {
		t.Errorf("said %d times:\n%s", got, log.String())
	}
}

func TestLoad_DamagedCacheCostsOnlyTime(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		var log bytes.Buffer
		r, err := New(Options{CacheDir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
		must(t, err)
		p, err := r.Load(t.Context(), "built.wasm", wasmtest.Guest{}.Bytes(), env.Source{})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if damaged := strings.Contains(log.String(), "compiled module not used"); damaged != (round > 0) {
			t.Errorf("round %d: log is %s", round, log.String())
		}
		must(t, errors.Join(p.Close(), r.Close()))
		kept := 0
		err = filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
			if err != nil || !info.Mode().IsRegular() {
				return err
			}
			kept++
			return os.Truncate(path, info.Size()/2)
		})
		if err != nil || kept == 0 {
			t.Fatalf("round %d: %d files kept, %v", round, kept, err)
		}
	}
}

// withoutFiles makes a runtime use its own engine, without a cache.
func withoutFiles(t testing.TB, r *Runtime, config wazero.RuntimeConfig) {
	t.Helper()
	must(t, r.engine.Close())
	var err error
	r.engine, err = engine.New(engine.Options{Config: config, Imports: guest.Imports})
	must(t, err)
}

// Where the compiler does not know the CPU, the interpreter does the same work.
func TestInterpreter_DoesTheSame(t *testing.T) {
	run := func(r *Runtime) ([]byte, uint64) {
		p := load(t, r, cartPole, nil, env.Source{})
		e := newEnv(t, p, env.Options{Envs: 8})
		all := blocks(t, p.Spec(), trajectory.Shape{Steps: 16, Envs: 8}, 2)
		begin(t, e, all)
		return play(t, e, all, 3), e.FuelUsed()
	}
	want, fuel := run(newRuntime(t))
	r := newRuntime(t)
	withoutFiles(t, r, wazero.NewRuntimeConfigInterpreter())
	got, gotFuel := run(r)
	if !bytes.Equal(got, want) || gotFuel != fuel {
		t.Errorf("the interpreter differs; fuel %d against %d", gotFuel, fuel)
	}
	p := load(t, r, "guest.wasm", wasmtest.Guest{Functions: atStep(2, endless)}.Bytes(), env.Source{Limits: env.Limits{Step: wasmtest.TwoSlices}})
	e, _ := opened(t, p, env.Options{Envs: 1})
	var f *env.Fault
	if err := stepUntilFault(t, e, 2); !errors.As(err, &f) || f.Kind != env.FaultDeadline {
		t.Errorf("endless step = %v", err)
	}
}

// A module is started once, when it is loaded; environments begin from the image of that.
func TestNewEnv_StartsNothingAgain(t *testing.T) {
	count := func(at int32) asm.Code {
		return asm.Const(at) + asm.Const(at) + asm.Load(0) + asm.Const(1) + asm.Add + asm.Store(0)
	}
	g := wasmtest.Guest{After: func(m *asm.Module) {
		m.Start(m.Func("", nil, nil, 0, count(wasmtest.CounterAt)))
		m.Func(hostabi.ExportInitialize, nil, nil, 0, asm.Const(wasmtest.CounterAt), asm.Load(0), asm.Eqz, asm.If, asm.Void,
			asm.Unreachable, asm.End, count(wasmtest.CounterAt))
	}}
	p := load(t, newRuntime(t), "guest.wasm", g.Bytes(), env.Source{})
	for range 3 {
		e := newEnv(t, p, env.Options{Envs: 1})
		if got := words32(e.inst.View(wasmtest.CounterAt, 32))[0]; got != 2 {
			t.Errorf("start and _initialize counted to %d, want 2", got)
		}
		if !bytes.Equal(e.inst.View(wasmtest.DescribedAt, 64), wasmtest.Description()[:64]) {
			t.Error("the data segment is not in the memory of a new environment")
		}
	}
}
