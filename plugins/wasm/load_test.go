package wasm

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/internal/wasmtest"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// endless is code that never ends.
const endless = asm.Loop + asm.Void + "\x0c\x00" + asm.End + asm.Unreachable

// loadCase is a module that cannot be loaded, and the expected error.
type loadCase struct {
	name   string
	source []byte
	config env.Source
	code   string
	want   string
}

// with returns a guest with one function replaced, importing one with one import more, adding one with more of
// whatever kind.
func with(name string, code asm.Code) []byte {
	return wasmtest.Guest{Functions: map[string]asm.Code{name: code}}.Bytes()
}

func importing(module, name string, params, results []byte) []byte {
	return wasmtest.Guest{Before: func(m *asm.Module) { m.Import(module, name, params, results) }}.Bytes()
}

func adding(add func(m *asm.Module)) []byte { return wasmtest.Guest{After: add}.Bytes() }

// notModules are files that are no modules.
func notModules() []loadCase {
	good := wasmtest.Guest{}.Bytes()
	return []loadCase{
		{"empty file", []byte{}, env.Source{}, module.CodeFormat,
			`E014 guest.wasm: is empty; build or copy the file again`},
		{"text file", []byte("[env.lander]\nkind = \"wasm\"\n"), env.Source{}, module.CodeFormat,
			`E014 guest.wasm: is a text file, not a WebAssembly module; give the .wasm file that the compiler wrote`},
		{"text format", []byte("(module (memory 1))"), env.Source{}, module.CodeFormat,
			`E014 guest.wasm: is WebAssembly text, not a binary module; translate it with wat2wasm`},
		{"native program", []byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00"), env.Source{}, module.CodeFormat,
			`E014 guest.wasm: is a native program (ELF), not a WebAssembly module; compile it for wasm32, such as with clang --target=wasm32 or GOOS=wasip1`},
		{"component", []byte("\x00asm\x0d\x00\x01\x00\x00\x00"), env.Source{}, module.CodeFormat,
			`E014 guest.wasm: is a component (component model), not a core module; build for wasm32-unknown-unknown or wasm32-wasip1, not wasm32-wasip2`},
		{"cut off in its magic", []byte("\x00asm\x01"), env.Source{}, module.CodeFormat,
			`E014 guest.wasm: is cut off after 5 bytes; build or copy the file again`},
		{"cut off in a section", good[:len(good)/2], env.Source{}, module.CodeFormat,
			`E014 guest.wasm: is damaged at offset 0x1b4: it ends too early: 793 bytes wanted, 178 left; build or copy the file again`},
		{"other bytes", []byte{0x89, 'P', 'N', 'G', 13, 10, 26, 10, 0}, env.Source{}, module.CodeFormat,
			`E014 guest.wasm: is not a WebAssembly module; give the .wasm file that the compiler wrote`},
		{"invalid code", with(hostabi.ExportStep, asm.Add), env.Source{}, module.CodeFormat,
			`E014 guest.wasm: is not valid: invalid function[7] export["rl_step"]: cannot pop the 1st operand for i32.add: i32 missing; build or copy the file again`},
	}
}

// wrongExports are modules without an environment's required exports.
func wrongExports() []loadCase {
	library := asm.New(1)
	library.Func("rl_describe", nil, nil, 0)
	return []loadCase{
		{"command module", adding(func(m *asm.Module) { m.Func("_start", nil, nil, 0) }), env.Source{}, module.CodeCommand,
			`E013 guest.wasm: is a command module (it exports _start); build a reactor: clang --target=wasm32 -Wl,--no-entry without a function _start, or -mexec-model=reactor for wasm32-wasi`},
		{"command module of WASI", wasmtest.Guest{Before: func(m *asm.Module) { m.Import(module.WASI, "proc_exit", asm.I32s(1), nil) },
			After: func(m *asm.Module) { m.Func("_start", nil, nil, 0) }}.Bytes(), env.Source{}, module.CodeCommand,
			`E013 guest.wasm: is a command module (it exports _start); build a reactor: clang or zig cc for wasm32-wasi with -mexec-model=reactor, go build -buildmode=c-shared, or Rust crate-type cdylib`},
		{"no environment", library.Bytes(), env.Source{}, module.CodeExport,
			`E015 guest.wasm: does not export rl_env_v1(); export it from the guest's source, as the SDKs do`},
		{"misspelt export", wasmtest.Guest{Functions: map[string]asm.Code{hostabi.ExportStep: wasmtest.Absent},
			After: func(m *asm.Module) { m.Func("rl_stepp", asm.I32s(2), asm.I32s(1), 0, asm.Const(0)) }}.Bytes(), env.Source{}, module.CodeExport,
			`E015 guest.wasm: does not export rl_step(i32, i32) -> i32; did you mean it by rl_stepp?`},
		{"export of another type", wasmtest.Guest{Functions: map[string]asm.Code{hostabi.ExportStep: wasmtest.Absent},
			After: func(m *asm.Module) {
				m.Func("rl_step", []byte{asm.I64}, asm.I32s(1), 0, asm.Const(0))
			}}.Bytes(), env.Source{}, module.CodeExport,
			`E015 guest.wasm: exports rl_step(i64) -> i32, it must be rl_step(i32, i32) -> i32; correct the parameters in the guest's source`},
		{"export that is no function", wasmtest.Guest{Functions: map[string]asm.Code{hostabi.ExportStep: wasmtest.Absent},
			After: func(m *asm.Module) { m.Export("rl_step", 3, 0) }}.Bytes(), env.Source{}, module.CodeExport,
			`E015 guest.wasm: exports rl_step, but not as a function; export the function of that name`},
		{"reserved export", adding(func(m *asm.Module) { m.Export("__rl_fuel", 3, 0) }), env.Source{}, module.CodeExport,
			`E015 guest.wasm: takes the name __rl_fuel, which is reserved for the host; give it another name in the guest's source`},
		{"future ABI", wasmtest.Guest{Functions: map[string]asm.Code{hostabi.ExportABI: wasmtest.Absent},
			After: func(m *asm.Module) { m.Func("rl_env_v2", nil, nil, 0) }}.Bytes(), env.Source{}, module.CodeFuture,
			`E050 guest.wasm: needs ABI 2, this rlhost speaks 1; update rlhost, or build the guest with an older SDK`},
		{"candidate of the ABI", wasmtest.Guest{Functions: map[string]asm.Code{hostabi.ExportABI: wasmtest.Absent},
			After: func(m *asm.Module) { m.Func("rl_abi_v1rc", nil, nil, 0) }}.Bytes(), env.Source{}, module.CodeFuture,
			`E050 guest.wasm: is built for a candidate of ABI 1 of environments, or an older one; build it again with the SDK that belongs to this rlhost; without an SDK see docs/reference/env-abi.md`},
	}
}

// wrongImports are modules with imports that the host does not offer.
func wrongImports() []loadCase {
	good := wasmtest.Guest{}.Bytes()
	return []loadCase{
		{"import that is not granted", importing("rl", "log_enabled", asm.I32s(1), asm.I32s(1)), env.Source{}, module.CodeImport,
			`E016 guest.wasm: imports rl.log_enabled, which is not granted; add "log" to the environment's grants, or build the guest without it`},
		{"import that does not exist", importing("rl", "metric_en", asm.I32s(2), asm.I32s(1)), env.Source{}, module.CodeImport,
			`E016 guest.wasm: imports rl.metric_en, which this host does not have; did you mean rl.metric_env?`},
		{"import from elsewhere", importing("env", "emscripten_notify_memory_growth", asm.I32s(1), nil), env.Source{}, module.CodeImport,
			`E016 guest.wasm: imports env.emscripten_notify_memory_growth, which this host does not have; no library that was linked defines emscripten_notify_memory_growth: define it in the guest, or link what has it`},
		{"AssemblyScript's abort", importing("env", "abort", asm.I32s(4), nil), env.Source{}, module.CodeImport,
			`E016 guest.wasm: imports env.abort, which this host does not have; with AssemblyScript, compile with --use abort=assembly/index/abort and define that function, or --use abort= for a plain trap`},
		{"import with another type", importing("rl", "clock_ns", nil, asm.I32s(1)), env.Source{Grants: []string{module.GrantClock}}, module.CodeImport,
			`E016 guest.wasm: imports rl.clock_ns() -> i32, it is rl.clock_ns() -> i64; correct the declaration in the guest's source`},
		{"import of the host's own", importing("rl", "yield", nil, nil), env.Source{}, module.CodeImport,
			`E016 guest.wasm: imports rl.yield, which is the host's own; leave it out; the host adds it`},
		{"import of a memory", wasmtest.Guest{Before: func(m *asm.Module) { m.ImportMemory("env", "memory") }}.Bytes(), env.Source{}, module.CodeImport,
			`E016 guest.wasm: imports env.memory, which is not a function; let the guest define it itself`},
		{"unknown capability", good, env.Source{Grants: []string{"files"}}, module.CodeImport,
			`E016 guest.wasm: is granted "files", which does not exist; there are clock, log, metric`},
		{"atomics", with(hostabi.ExportStep, "\xfe\x03\x00"+asm.Const(0)), env.Source{}, module.CodeFeature,
			`E017 guest.wasm: needs atomic operations (threads) (at offset 0x163); build it without, in C and C++ without -pthread and -matomics, in Rust without the target feature atomics; WebAssembly 2.0 with SIMD and bulk memory is there`},
		{"tail call", with(hostabi.ExportStep, asm.Get(0)+asm.Get(1)+"\x12\x08"), env.Source{}, module.CodeFeature,
			`E017 guest.wasm: needs tail calls (at offset 0x167); build it without, in C and C++ with -mno-tail-call, in Rust with -C target-feature=-tail-call; WebAssembly 2.0 with SIMD and bulk memory is there`},
		{"exceptions", with(hostabi.ExportStep, "\x06\x40\x0b"+asm.Const(0)), env.Source{}, module.CodeFeature,
			`E017 guest.wasm: needs exception handling (at offset 0x163); build it without, in C++ with -fno-exceptions, in Rust with panic = "abort"; WebAssembly 2.0 with SIMD and bulk memory is there`},
	}
}

// wrongStarts are modules that fail before their first environment.
func wrongStarts() []loadCase {
	good := wasmtest.Guest{}.Bytes()
	recursion := adding(func(m *asm.Module) { m.Func("_initialize", nil, nil, 0, asm.Call(9)) })
	quick := env.Source{Limits: env.Limits{Init: wasmtest.TwoSlices}}
	return []loadCase{
		{"too much memory", wasmtest.Guest{Pages: 2000}.Bytes(), env.Source{}, module.CodeStart,
			`E019 guest.wasm: begins with 125 MiB of memory, its limit is 64 MiB; give the environment 128000KiB or more: limits = { memory = "128000KiB" } in its table of the file, --memory on a command line; or build it with a smaller stack`},
		{"describe that returns garbage", with(hostabi.ExportDescribe, asm.Const(64)), env.Source{}, module.CodeDescription,
			`E018 guest.wasm: describes itself wrongly: 64 bytes, the head alone has 128; correct what the guest's rl_describe writes, or its arguments; rlhost explain E018 says where each SDK has it`},
		{"describe of huge length", with(hostabi.ExportDescribe, asm.Const(1<<30)), env.Source{}, module.CodeDescription,
			`E018 guest.wasm: wants 1073741824 bytes for its description, at most 1048576 are accepted; correct what the guest's rl_describe writes, or its arguments; rlhost explain E018 says where each SDK has it`},
		{"describe that cannot decide", with(hostabi.ExportDescribe, asm.Get(3)+asm.Const(64)+asm.Add), env.Source{}, module.CodeDescription,
			`E018 guest.wasm: wants 64 bytes for its description at first and 128 then; correct what the guest's rl_describe writes, or its arguments; rlhost explain E018 says where each SDK has it`},
		{"describe that fails", with(hostabi.ExportDescribe,
			asm.Const(wasmtest.WordsAt)+asm.Const(0x6f6f6e)+asm.Store(0)+asm.Const(-5)), env.Source{}, module.CodeDescription,
			`E018 guest.wasm: cannot describe itself: configuration not accepted: "noo"; correct what the guest's rl_describe writes, or its arguments; rlhost explain E018 says where each SDK has it`},
		{"argument with a line break", good, env.Source{Args: map[string]string{"level": "1\n2"}}, module.CodeDescription,
			`E018 guest.wasm: cannot be given the argument "level" = "1\n2"; use one line of text, and no = in the key`},
		{"trap in _initialize", adding(func(m *asm.Module) { m.Func("_initialize", nil, nil, 0, asm.Unreachable) }), env.Source{}, module.CodeStart,
			`E019 guest.wasm: fails in _initialize: unreachable in function 9; correct the guest, it must start with nothing but its arguments`},
		{"endless _initialize", adding(func(m *asm.Module) { m.Func("_initialize", nil, nil, 0, endless) }), quick, module.CodeStart,
			`E019 guest.wasm: fails in _initialize: stopped after its limit of 1ns in function 9; correct the guest, or raise the limit on its start if it has a reason to take so long`},
		{"endless recursion in _initialize", recursion, env.Source{}, module.CodeStart,
			`E019 guest.wasm: fails in _initialize: stack overflow; correct the guest, it must start with nothing but its arguments`},
		{"endless start function", adding(func(m *asm.Module) { m.Start(m.Func("", nil, nil, 0, endless)) }), quick, module.CodeStart,
			`E019 guest.wasm: fails in its start function: stopped after its limit of 1ns in function 9; correct the guest, or raise the limit on its start if it has a reason to take so long`},
		{"data beyond memory", adding(func(m *asm.Module) { m.Data(65530, make([]byte, 100)) }), env.Source{}, module.CodeStart,
			`E019 guest.wasm: fails in its data segments: out of bounds memory access in function 9; correct the guest, it must start with nothing but its arguments`},
		{"rl_alloc that gives nothing", with(hostabi.ExportAlloc, asm.Const(0)), env.Source{}, module.CodeStart,
			`E019 guest.wasm: fails in rl_alloc: the guest has no 256 bytes to give, its memory limit is 64 MiB; raise the environment's memory limit, or correct the guest's rl_alloc`},
		{"rl_alloc beyond memory", with(hostabi.ExportAlloc, asm.Const(-65536)), env.Source{}, module.CodeStart,
			`E019 guest.wasm: fails in rl_alloc: the guest gave 256 bytes at 0xffff0000, which is outside of its memory of 64 KiB; correct the guest's rl_alloc: what it gives is aligned as it was asked, inside of the guest's memory, and given once`},
		{"rl_alloc that traps", with(hostabi.ExportAlloc, asm.Unreachable), env.Source{}, module.CodeStart,
			`E019 guest.wasm: fails in rl_alloc: unreachable in function 2; correct the guest, it must start with nothing but its arguments`},
	}
}

func TestLoad_SaysWhatIsWrongAndWhatToDo(t *testing.T) {
	refuses(t, newRuntime(t), slices.Concat(notModules(), wrongExports(), wrongImports(), wrongStarts()))
}

// refuses checks that a runtime says of modules what it should.
func refuses(t *testing.T, r *Runtime, cases []loadCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, err := r.Load(t.Context(), "guest.wasm", c.source, c.config)
			if err == nil {
				p.Close()
				t.Fatal("it was loaded")
			}
			var load *table.Error
			if !errors.As(err, &load) || load.Code != c.code {
				t.Fatalf("Load = %v, want code %s", err, c.code)
			}
			if got := load.Error(); got != c.want {
				t.Errorf("it says\n%s\nwant\n%s", got, c.want)
			}
			if c.code == module.CodeDescription && !errors.Is(err, hostabi.ErrSpec) {
				t.Error("it does not wrap ErrSpec")
			}
		})
	}
}

func TestLoad_FileTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "guest.wasm")
	must(t, os.WriteFile(path, wasmtest.Guest{}.Bytes(), 0o600))
	r, err := New(Options{CacheDir: t.TempDir(), MaxFileBytes: 100})
	must(t, err)
	_, err = r.Load(t.Context(), path, nil, env.Source{})
	want := "E014 " + path + ": is larger than 100 bytes; strip debug information, or raise the limit on plugin files"
	if closed := r.Close(); closed != nil || err == nil || err.Error() != want {
		t.Errorf("Load = %v, want %s; closed with %v", err, want, closed)
	}
}

func TestLoad_MissingFile(t *testing.T) {
	_, err := newRuntime(t).Load(t.Context(), "envs/lander.wasm", nil, env.Source{})
	want := "E012 envs/lander.wasm: does not exist; build it first, or correct the path"
	if err == nil || err.Error() != want || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load = %v, want %s", err, want)
	}
}

// onWrite is a log that calls a function for each line.
type onWrite func()

func (f onWrite) Write(line []byte) (int, error) {
	f()
	return len(line), nil
}

func TestLoad_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, err := New(Options{CacheDir: testCache, Log: slog.New(slog.NewTextHandler(onWrite(cancel), nil))})
	must(t, err)
	defer r.Close()
	guest := wasmtest.Guest{
		Before: func(m *asm.Module) { m.Import("rl", "log", asm.I32s(3), nil) },
		After: func(m *asm.Module) {
			m.Func("_initialize", nil, nil, 0, asm.Const(2), asm.Const(wasmtest.DescribedAt), asm.Const(1), asm.Call(0), endless)
		},
	}
	_, err = r.Load(ctx, "guest.wasm", guest.Bytes(), env.Source{Grants: []string{module.GrantLog}, Limits: env.Limits{Init: time.Hour}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Load = %v, want the context's error", err)
	}
}
