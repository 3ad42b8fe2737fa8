package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/wasm/guest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/internal/codecache"
	"github.com/rlhost/rlhost/plugins/wasm/internal/wasmtest"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// First arguments that make the test binary compile a module for another, die of it, and compile it where there is no
// room for code.
const (
	compilerRole = "compile-a-module"
	dyingRole    = "die-of-a-module"
	fullRole     = "compile-without-room"
)

// serve does not return if the test binary has a role.
func serve(role string, args []string) {
	switch role {
	case compilerRole:
		os.Exit(serveCompiler(args, ran))
	case fullRole:
		os.Exit(serveWithoutRoom(args))
	case dyingRole:
		panic("\x1b[31mred")
	}
}

// apart returns a runtime that compiles in processes which begin with that argument, and what it logs.
func apart(t *testing.T, dir, role string) (*Runtime, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	r, err := New(Options{CacheDir: dir, Compiler: role, Log: slog.New(slog.NewTextHandler(&log, nil))})
	must(t, err)
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
	p := load(t, r, "guest.wasm", source, env.Source{})
	e := newEnv(t, p, env.Options{Envs: 2})
	all := blocks(t, p.Spec(), trajectory.Shape{Steps: 4, Envs: 2}, 2)
	begin(t, e, all)
	return play(t, e, all, 2)
}

// counting is a guest that is like no other with another number.
func counting(n int32) []byte {
	return wasmtest.Guest{Functions: atStep(3, asm.Const(n)+asm.Drop)}.Bytes()
}

// slow is a guest that takes the compiler seconds, although no bound is reached.
func slow() []byte {
	loops := asm.Repeat(6_000, asm.Loop, asm.Void, asm.End)
	return wasmtest.Guest{After: func(m *asm.Module) { m.Func("", nil, nil, 0, loops) }}.Bytes()
}

// big is a module that takes the compiler hundreds of megabytes.
func big() []byte {
	tables := asm.Repeat(1_000, asm.Block, asm.Void, asm.Get(0), asm.BrTable(make([]uint32, 1_000)...), asm.End)
	return wasmtest.Guest{After: func(m *asm.Module) { m.Func("", asm.I32s(1), nil, 0, tables) }}.Bytes()
}

func TestCompiler_MakesTheSameCode(t *testing.T) {
	source, dir := counting(1), t.TempDir()
	want := played(t, newRuntime(t), source)
	r, log := apart(t, dir, compilerRole)
	if !bytes.Equal(played(t, r, source), want) {
		t.Error("the guest writes other bytes when another process has compiled it")
	}
	// A cached module needs no process: this one could not be started.
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
	invalid := wasmtest.Guest{After: func(m *asm.Module) { m.Func("", nil, nil, 0, asm.Add) }}.Bytes()
	keepsLimit(t, "time", slow(), env.Source{Limits: env.Limits{Compile: 100 * time.Millisecond}},
		"E017 bomb.wasm: takes longer to compile than its limit of 100ms; raise limits.compile of the environment if the module is yours, or make it smaller")
	keepsLimit(t, "validity", invalid, env.Source{}, "E014 bomb.wasm: is not valid: invalid function[")
}

// keepsLimit checks that a source is refused in these words, and that the next one is not affected.
func keepsLimit(t *testing.T, what string, source []byte, config env.Source, want string) {
	t.Run(what, func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		r, log := apart(t, dir, compilerRole)
		_, err := r.Load(t.Context(), "bomb.wasm", source, config)
		var bad *table.Error
		if !errors.As(err, &bad) || !strings.HasPrefix(bad.Error(), want) {
			t.Errorf("Load = %v, want %s", err, want)
		}
		if log.Len() > 0 {
			t.Error(log.String())
		}
		played(t, r, counting(3))
		if left, err := os.ReadDir(filepath.Join(dir, codecache.Folder)); err != nil || len(left) != 3 {
			t.Errorf("%v, %v lie in the cache; want a key, an entry and a folder to hand it over in", left, err)
		}
	})
}

// A busy machine costs a module nothing: its limit is processor time. The compiler's process is stopped here for longer than its limit.
func TestCompiler_LimitIsProcessorTime(t *testing.T) {
	t.Parallel()
	r, _ := apart(t, t.TempDir(), compilerRole)
	const limit = 2 * time.Second
	loaded := make(chan error, 1)
	began := time.Now()
	go func() {
		p, err := r.Load(t.Context(), "waits.wasm", counting(7), env.Source{Limits: env.Limits{Compile: limit}})
		if err == nil {
			err = p.Close()
		}
		loaded <- err
	}()
	var pid int
	testkit.Until(t, "the compiler runs", func() bool { pid = childNamed("waits.wasm"); return pid != 0 || len(loaded) > 0 })
	if pid != 0 && unix.Kill(pid, unix.SIGSTOP) == nil {
		testkit.Until(t, "its limit is over by the clock", func() bool { return time.Since(began) > limit+limit/4 || len(loaded) > 0 })
		_ = unix.Kill(pid, unix.SIGCONT) // it may be dead
	}
	if err := <-loaded; err != nil {
		t.Error(err)
	}
}

// childNamed returns the child of this process that has that argument; 0 if there is none.
func childNamed(argument string) int {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(text)) {
			line, _ := os.ReadFile("/proc/" + word + "/cmdline")
			if bytes.HasSuffix(line, []byte("\x00"+argument+"\x00")) {
				pid, _ := strconv.Atoi(word)
				return pid
			}
		}
	}
	return 0
}

func TestCompiler_EndsWithItsContext(t *testing.T) {
	r, _ := apart(t, t.TempDir(), compilerRole)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := r.Load(ctx, "slow.wasm", slow(), env.Source{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Load = %v", err)
	}
}

// A compiler that dies costs the module, not the host.
func TestCompiler_MayDie(t *testing.T) {
	r, _ := apart(t, t.TempDir(), dyingRole)
	_, err := r.Load(t.Context(), "bomb.wasm", counting(4), env.Source{})
	var bad *table.Error
	want := `cannot be compiled: the compiler's process: exit status 2: "panic: \x1b[31mred"`
	if !errors.As(err, &bad) || bad.Code != module.CodeFeature || bad.Reason != want {
		t.Errorf("Load = %v, want %s", err, want)
	}
}

// deadly is the path of a module whose first run ends the process that it is in.
const deadly = "deadly.wasm"

// stuck is the path of a module that keeps its process for ever, without using the processor time that the host counts.
const stuck = "stuck.wasm"

// ran is the end of a first run: it lets the module survive unless that is deadly or stuck.
func ran(m *guest.Module, err error) {
	if m.File.Path == deadly {
		fmt.Fprintf(os.Stderr, "described: %t, %v", err == nil, err)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	if m.File.Path == stuck {
		time.Sleep(time.Hour)
	}
}

// serveWithoutRoom compiles a module whose code is larger than a file may be.
func serveWithoutRoom(args []string) int {
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1024, Max: 1024}); err != nil {
		panic(err)
	}
	return serveCompiler(args, ran)
}

// died checks that a deadly module died in its compiler's process after it had described itself.
func died(t *testing.T, err error) {
	t.Helper()
	var bad *table.Error
	want := `dies at its first run: its process: signal: killed: "described: true, <nil>"`
	if !errors.As(err, &bad) || bad.Code != module.CodeFeature || bad.Reason != want {
		t.Errorf("Load = %v, want %s", err, want)
	}
}

// A module that ends its process when it first runs costs itself alone, each time, whether or not its code can be kept.
func TestCompiler_RunsAModuleFirst(t *testing.T) {
	for _, role := range []string{compilerRole, fullRole} {
		t.Run(role, func(t *testing.T) {
			r, log := apart(t, t.TempDir(), role)
			source := counting(5)
			for range 2 {
				_, err := r.Load(t.Context(), deadly, source, env.Source{})
				died(t, err)
			}
			if log.Len() > 0 {
				t.Error(log.String())
			}
			played(t, r, source)
			if warned := strings.Contains(log.String(), "compile cache not used"); warned != (role == fullRole) {
				t.Error(log.String())
			}
		})
	}
}

// The time for a first run begins when the module is compiled, and ends even where the guest's own limits do not hold.
func TestCompiler_EndsAFirstRun(t *testing.T) {
	t.Parallel()
	r, _ := apart(t, t.TempDir(), compilerRole)
	_, err := r.Load(t.Context(), stuck, counting(6), env.Source{Limits: env.Limits{Compile: 5 * time.Second, Init: time.Millisecond}})
	var bad *table.Error
	want := "does not end its first run within 5.01s, although that has limits of its own"
	if !errors.As(err, &bad) || bad.Code != module.CodeFeature || bad.Reason != want {
		t.Errorf("Load = %v, want %s", err, want)
	}
}
