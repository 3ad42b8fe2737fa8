package wasm

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/rollout"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
)

// apart returns a runtime that compiles in processes which begin with that argument, and what it logs.
func apart(t *testing.T, dir, role string) (*Runtime, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	r, err := New(Options{CacheDir: dir, Compiler: role, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r, &log
}

// played loads a guest and returns what it writes into its blocks.
func played(t *testing.T, r *Runtime, source []byte) []byte {
	t.Helper()
	p := load(t, r, "guest.wasm", source, Config{})
	e := newEnv(t, p, rollout.EnvOptions{Envs: 2})
	all := blocks(t, p.Spec(), rollout.Shape{Steps: 4, Envs: 2}, 2)
	begin(t, e, all)
	return play(t, e, all, 2)
}

// counting is a guest that is like no other with another number.
func counting(n int32) []byte {
	return built{functions: atStep(3, asm.Const(n)+asm.Drop)}.bytes()
}

// slow is a guest that takes the compiler seconds, although no bound is reached.
func slow() []byte {
	loops := asm.Repeat(6_000, asm.Loop, asm.Void, asm.End)
	return built{after: func(m *asm.Module) { m.Func("", nil, nil, 0, loops) }}.bytes()
}

// big is one that takes it hundreds of megabytes.
func big() []byte {
	tables := asm.Repeat(1_000, asm.Block, asm.Void, asm.Get(0), asm.BrTable(make([]uint32, 1_000)...), asm.End)
	return built{after: func(m *asm.Module) { m.Func("", asm.I32s(1), nil, 0, tables) }}.bytes()
}

func TestCompiler_MakesTheSameCode(t *testing.T) {
	source, dir := counting(1), t.TempDir()
	want := played(t, newRuntime(t), source)
	r, log := apart(t, dir, compilerRole)
	if !bytes.Equal(played(t, r, source), want) {
		t.Error("the guest writes other bytes when another process has compiled it")
	}
	// What is in the cache needs no process: this one could not be started.
	other, _ := apart(t, dir, "no-role")
	if !bytes.Equal(played(t, other, source), want) {
		t.Error("the guest from the cache writes other bytes")
	}
	if log.Len() > 0 {
		t.Error(log.String())
	}
}

func TestCompiler_WorksWithoutACache(t *testing.T) {
	r, log := apart(t, "/dev/null/nowhere", compilerRole)
	played(t, r, counting(2))
	if n := strings.Count(log.String(), "level="); n != 1 || !strings.Contains(log.String(), "compiled modules are not kept") {
		t.Error(log.String())
	}
}

func TestCompiler_KeepsItsLimits(t *testing.T) {
	invalid := built{after: func(m *asm.Module) { m.Func("", nil, nil, 0, asm.Add) }}.bytes()
	for _, c := range []struct {
		what   string
		source []byte
		config Config
		want   string
	}{
		{"time", slow(), Config{Compile: 100 * time.Millisecond},
			"E017 bomb.wasm: takes longer to compile than its limit of 100ms; raise limits.compile of the environment if the module is yours, or make it smaller"},
		{"memory", big(), Config{CompileMemory: 96 << 20},
			"E017 bomb.wasm: takes more memory to compile than its limit of 96 MiB; raise limits.compile_memory of the environment if the module is yours, or make it smaller"},
		{"validity", invalid, Config{}, "E014 bomb.wasm: is not valid: invalid function["},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			r, log := apart(t, t.TempDir(), compilerRole)
			_, err := r.Load(t.Context(), "bomb.wasm", c.source, c.config)
			var bad *LoadError
			if !errors.As(err, &bad) || !strings.HasPrefix(bad.Error(), c.want) {
				t.Errorf("Load = %v, want %s", err, c.want)
			}
			if log.Len() > 0 {
				t.Error(log.String())
			}
			played(t, r, counting(3)) // the next one is none the worse
			if left, err := os.ReadDir(r.cache.path("")); err != nil || len(left) != 3 {
				t.Errorf("%v, %v lie in the cache; want a key, an entry and a folder to hand it over in", left, err)
			}
		})
	}
}

func TestCompiler_EndsWithItsContext(t *testing.T) {
	r, _ := apart(t, t.TempDir(), compilerRole)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := r.Load(ctx, "slow.wasm", slow(), Config{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Load = %v", err)
	}
}

// A compiler that dies costs the module, not the host.
func TestCompiler_MayDie(t *testing.T) {
	r, _ := apart(t, t.TempDir(), dyingRole)
	_, err := r.Load(t.Context(), "bomb.wasm", counting(4), Config{})
	var bad *LoadError
	want := `cannot be compiled: the compiler's process: exit status 2: "panic: \x1b[31mred"`
	if !errors.As(err, &bad) || bad.Code != CodeFeature || bad.Reason != want {
		t.Errorf("Load = %v, want %s", err, want)
	}
}
