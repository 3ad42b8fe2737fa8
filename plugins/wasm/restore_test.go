package wasm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/guest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/internal/linear"
	"github.com/rlhost/rlhost/plugins/wasm/internal/wasmtest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/words"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// reader is a guest with all that a snapshot has: a reset opens a file, each step rewards with its next byte, reads the clock, draws random
// bytes, and clears the one byte of a page that its image has.
func reader() wasmtest.Guest {
	const fd, vector, read, at, clock, random, image = 0x3000, 0x3010, 0x3020, 0x3030, 0x3040, 0x3050, 0x5000
	return wasmtest.Guest{
		Before: func(m *asm.Module) {
			m.Import(module.WASI, "path_open", []byte{asm.I32, asm.I32, asm.I32, asm.I32, asm.I32, asm.I64, asm.I64, asm.I32, asm.I32}, asm.I32s(1))
			m.Import(module.WASI, "fd_read", asm.I32s(4), asm.I32s(1))
			m.Import(module.WASI, "random_get", asm.I32s(2), asm.I32s(1))
			m.Import(module.WASI, "clock_time_get", []byte{asm.I32, asm.I64, asm.I32}, asm.I32s(1))
		},
		Functions: map[string]asm.Code{
			hostabi.ExportReset: asm.Const(3) + asm.Const(0) + asm.Const(0x3100) + asm.Const(5) + asm.Const(0) + asm.Const64(0) + asm.Const64(0) + asm.Const(0) + asm.Const(fd) + asm.Call(0),
			hostabi.ExportStep: asm.Const(fd) + asm.Load(0) + asm.Const(vector) + asm.Const(1) + asm.Const(read) + asm.Call(1) + asm.Drop +
				asm.Const(random) + asm.Const(4) + asm.Call(2) + asm.Drop + asm.Const(0) + asm.Const64(0) + asm.Const(clock) + asm.Call(3) + asm.Drop +
				asm.Const(image) + asm.Const(0) + asm.Store(0) +
				asm.Const(wasmtest.BindingsAt) + asm.Load(2*hostabi.BindingBytes) + asm.Const(wasmtest.BindingsAt) + asm.Load(2*hostabi.BindingBytes+4) + asm.Get(1) + asm.Mul + asm.Add +
				asm.Const(at) + asm.Load(0) + asm.Store(0) + asm.Const(0),
		},
		After: func(m *asm.Module) {
			m.Data(0x3100, []byte("a.txt"))
			m.Data(vector, []byte{at & 0xff, at >> 8, 0, 0, 1})
			m.Data(image, []byte("page"))
		},
	}
}

// reading returns a plugin of the reader, with its data and an argument.
func reading(t *testing.T) *Plugin {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("abcdefghij"), 0o644))
	return load(t, newRuntime(t), "reader.wasm", reader().Bytes(), env.Source{Data: dir, Args: map[string]string{"level": "1"}})
}

// read makes steps from row t on and returns the bytes.
func read(t *testing.T, e *Env, b env.Block, from, n int) (text string) {
	t.Helper()
	must(t, e.Bind(b))
	for k := from; k < from+n; k++ {
		must(t, e.Step(k))
		text += string(b.Bytes(trajectory.Reward)[4*e.options.Envs*k])
	}
	return text
}

// Every part of a state is in a snapshot and in a copy: where a file is read, the clock, random streams, what the host keeps, and pages that
// have become zero.
func TestSnapshot_HasEveryPart(t *testing.T) {
	p := reading(t)
	o := env.Options{Envs: 2, Seed: 9}
	e := newEnv(t, p, o)
	b := blocks(t, p.Spec(), trajectory.Shape{Steps: 8, Envs: 2}, 1)[0]
	must(t, e.Bind(b))
	must(t, e.Reset(0, nil, []uint64{1, 2}))
	if got := read(t, e, b, 0, 3); got != "abc" {
		t.Fatalf("it reads %q", got)
	}
	e.batch = 77 // as a guest may have called it
	snap, err := e.Snapshot()
	must(t, err)
	if e.inst.ArgsPtr == 0 || e.inst.ErrorPtr == 0 || e.scratch == 0 {
		t.Fatal("the host keeps no places in the guest")
	}
	for name, bring := range map[string]func(to *Env) error{
		"restored": func(to *Env) error { return to.Restore(snap) },
		"copied":   func(to *Env) error { return to.CopyFrom(e) },
	} {
		other := newEnv(t, p, env.Options{Envs: 2, Seed: 5})
		must(t, other.Bind(blocks(t, p.Spec(), trajectory.Shape{Steps: 8, Envs: 2}, 1)[0]))
		other.batch, other.scratch = 1, 1
		must(t, bring(other))
		if other.batch != 77 || other.scratch != e.scratch {
			t.Errorf("%s: batch %d and scratch %d, want 77 and %d", name, other.batch, other.scratch, e.scratch)
		}
		if err := other.Step(0); !errors.Is(err, env.ErrUnsupported) {
			t.Errorf("%s: a step without a bound block = %v", name, err)
		}
		if again, err := other.Snapshot(); err != nil || !bytes.Equal(again, snap) {
			t.Errorf("%s: its snapshot is another one, %v", name, err)
		}
		if got := read(t, other, b, 3, 2); got != "de" {
			t.Errorf("%s: it reads %q, want %q", name, got, "de")
		}
	}
}

// places are where the parts of a snapshot of the reader are.
type places struct{ head, windows, files, pages int }

func placesOf(e *Env) (p places) {
	p.head = len(e.identity())
	p.windows = p.head + binary.Size(snapshotHead{}) + 8*(e.options.Envs+1) + 8*e.plugin.file.Metered.Globals
	p.files = p.windows + 16*len(e.windows)
	p.pages = p.files + 4 + 12
	return p
}

// A snapshot is checked part by part: what lies at the end of what there is is taken, what lies beyond is not.
func TestDecode_ChecksEveryPart(t *testing.T) {
	p := reading(t)
	e := newEnv(t, p, env.Options{Envs: 2})
	all := blocks(t, p.Spec(), trajectory.Shape{Steps: 8, Envs: 2}, 2)
	must(t, e.Bind(all[1]))
	must(t, e.Bind(all[0]))
	must(t, e.Reset(0, nil, []uint64{1, 2}))
	snap, err := e.Snapshot()
	must(t, err)
	at, size, entries := placesOf(e), e.inst.Mem.Size, uint32(len(p.file.Data.Entries))
	first, second := e.windows[0], e.windows[1]
	u32 := func(place int, v uint32) func(b []byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint32(b[place:], v); return b }
	}
	u64 := func(place int, v uint64) func(b []byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint64(b[place:], v); return b }
	}
	const most = 5 << 20 // with the windows
	p.file.Config.Memory = most - uint64(first.bytes) - uint64(second.bytes)
	args, bindings := uint32(len(p.file.Args)), p.bindingsBytes()
	const damaged = "the snapshot is damaged"
	for _, c := range []struct {
		name   string
		change func(b []byte) []byte
		want   string // what is wrong; empty if nothing is
	}{
		{"as it is", func(b []byte) []byte { return b }, ""},
		{"of another", func(b []byte) []byte { b[at.head-1]++; return b }, "the snapshot is not of reader.wasm with 2 environments"},
		{"a byte less", func(b []byte) []byte { return b[:len(b)-1] }, damaged},
		{"a byte more", func(b []byte) []byte { return append(b, 0) }, damaged},
		{"a page less", func(b []byte) []byte { return b[:len(b)-pageBytes] }, damaged},
		{"no pages", func(b []byte) []byte { return u32(at.head+60, 0)(b[:at.pages]) }, ""},
		{"the head alone", func(b []byte) []byte { return b[:at.head] }, damaged},
		{"most of the head", func(b []byte) []byte { return b[:at.head+40] }, damaged},
		{"no windows", func(b []byte) []byte { return b[:at.windows] }, damaged},
		{"windows without end", u32(at.head+56, 1<<32-1), damaged},
		{"files without end", u32(at.files, 1<<32-1), damaged},
		{"a size between pages", u64(at.head, size+1), damaged},
		{"less than the module has", u64(at.head, p.file.MemoryMin-linear.WasmPage), damaged},
		{"more than there can be", u64(at.head, linear.Addressable+linear.WasmPage), damaged},
		{"as much as the limit", u64(at.head, most), ""},
		{"more than the limit", u64(at.head, most+linear.WasmPage), fmt.Sprintf("the snapshot has %s of memory without windows, the limit is %s", words.Bytes(p.file.Config.Memory+linear.WasmPage), words.Bytes(p.file.Config.Memory))},
		{"another global", u32(at.head+52, uint32(p.file.Metered.Globals)+1), damaged},
		{"arguments at the end", u32(at.head+40, uint32(size)-args), ""},
		{"arguments beyond it", u32(at.head+40, uint32(size)-args+1), damaged},
		{"the error's text at the end", u32(at.head+44, uint32(size)-guest.ErrorBytes), ""},
		{"the error's text beyond it", u32(at.head+44, uint32(size)-guest.ErrorBytes+1), damaged},
		{"seeds at the end", u32(at.head+48, uint32(size)-e.scratchBytes()), ""},
		{"seeds beyond it", u32(at.head+48, uint32(size)-e.scratchBytes()+1), damaged},
		{"seeds far beyond it", u32(at.head+48, 1<<31), damaged},
		{"a window at the end", u32(at.windows+4, uint32(size)-first.bytes), ""},
		{"a window beyond it", u32(at.windows+4, uint32(size)-first.bytes+linear.HostPage), damaged},
		{"a window between pages", u32(at.windows+4, first.ptr+64), damaged},
		{"a window of no whole pages", u32(at.windows+8, first.bytes-64), damaged},
		{"two windows in one place", u32(at.windows+4, second.ptr), damaged},
		{"bindings at the end", u32(at.windows+12, uint32(size)-bindings), ""},
		{"bindings beyond it", u32(at.windows+12, uint32(size)-bindings+1), damaged},
		{"the last file", u32(at.files+4, entries), ""},
		{"a file that there is not", u32(at.files+4, entries+1), damaged},
		{"a file more", u32(at.files, 2), damaged},
		{"the last page", u32(at.pages, uint32(size/linear.HostPage)-1), ""},
		{"a page beyond it", u32(at.pages, uint32(size/linear.HostPage)), damaged},
	} {
		s, err := e.decode(c.change(bytes.Clone(snap)))
		if c.want == "" && (err != nil || s == nil) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// A snapshot has as much memory as its module begins with, up to all that there can be.
func TestDecode_MemoryIsTheModules(t *testing.T) {
	e := newEnv(t, load(t, newRuntime(t), "guest.wasm", wasmtest.Guest{Pages: 40}.Bytes(), env.Source{}), env.Options{Envs: 2})
	snap, err := e.Snapshot()
	must(t, err)
	e.plugin.file.Config.Memory = linear.Addressable
	least := e.plugin.file.MemoryMin
	for size, want := range map[uint64]error{least - linear.WasmPage: errDamaged, least: nil, linear.Addressable: nil, linear.Addressable + linear.WasmPage: errDamaged} {
		binary.LittleEndian.PutUint64(snap[len(e.identity()):], size)
		if _, err := e.decode(snap); !errors.Is(err, want) {
			t.Errorf("of %d bytes: %v, want %v", size, err, want)
		}
	}
}

// A snapshot that is refused changes nothing, of a poisoned Env neither; one that cannot be brought back poisons it, and a sound one heals it.
func TestRestore_PoisonsAndHeals(t *testing.T) {
	g := wasmtest.Guest{After: func(m *asm.Module) { m.MaxPages(16) }}
	e := newEnv(t, load(t, newRuntime(t), "guest.wasm", g.Bytes(), env.Source{}), env.Options{Envs: 2})
	snap, err := e.Snapshot()
	must(t, err)
	poisoned := func() bool { return errors.Is(e.Step(0), env.ErrPoisoned) }
	if err := e.Restore(snap[:20]); !errors.Is(err, env.ErrUnsupported) || poisoned() {
		t.Errorf("%v; it is poisoned by what it refuses: %v", err, poisoned())
	}
	_, err = e.gate.EnterPoisoned()
	must(t, err)
	e.gate.Poison()
	if err := e.Restore(snap[:20]); !errors.Is(err, env.ErrUnsupported) || !poisoned() {
		t.Errorf("%v; it is still poisoned: %v", err, poisoned())
	}
	if must(t, e.Restore(snap)); poisoned() {
		t.Error("a sound snapshot does not heal it")
	}
	large := bytes.Clone(snap)
	binary.LittleEndian.PutUint64(large[len(e.identity()):], 20*linear.WasmPage) // 4 pages beyond the module's maximum
	var f *env.Fault
	if err := e.Restore(large); !errors.As(err, &f) || !poisoned() {
		t.Errorf("a memory that cannot grow: %v; it is poisoned: %v", err, poisoned())
	}
	if must(t, e.Restore(snap)); poisoned() {
		t.Error("a sound snapshot does not heal it after that")
	}
	must(t, e.Close())
	if _, err := e.Snapshot(); !errors.Is(err, env.ErrUnsupported) {
		t.Errorf("Snapshot after Close = %v", err)
	}
	if err := e.Restore(snap); !errors.Is(err, env.ErrUnsupported) {
		t.Errorf("Restore after Close = %v", err)
	}
}

// Neither a copy nor a succession is made of, or into, an Env that cannot be used; a copy heals one that is poisoned.
func TestCopyFrom_NeedsTwoThatCanBeUsed(t *testing.T) {
	p := load(t, newRuntime(t), "guest.wasm", wasmtest.Guest{}.Bytes(), env.Source{})
	b := blocks(t, p.Spec(), trajectory.Shape{Steps: 8, Envs: 2}, 1)[0]
	made := func() *Env {
		e := newEnv(t, p, env.Options{Envs: 2})
		must(t, e.Bind(b))
		return e
	}
	poison := func(e *Env) *Env {
		must(t, e.gate.Enter())
		e.gate.Poison()
		return e
	}
	closed := made()
	must(t, closed.Close())
	for name, from := range map[string]*Env{"closed": closed, "poisoned": poison(made())} {
		e := made()
		if err := e.CopyFrom(from); err == nil {
			t.Errorf("it is copied from one that is %s", name)
		}
		if err := e.TakeOver(from); err == nil {
			t.Errorf("it takes over one that is %s", name)
		}
		must(t, e.Step(0)) // it is as it was
		if err := closed.CopyFrom(e); err == nil {
			t.Error("it is copied into one that is closed")
		}
		if err := poison(made()).TakeOver(e); !errors.Is(err, env.ErrPoisoned) {
			t.Errorf("a poisoned one takes over: %v", err)
		}
		must(t, e.Step(1)) // and so is the other one of a succession
		to := poison(made())
		must(t, to.CopyFrom(e))
		must(t, to.Bind(b))
		must(t, to.Step(0))
	}
	one, two := made(), made()
	must(t, one.TakeOver(two))
	for _, e := range []*Env{one, two} {
		if err := e.Step(0); !errors.Is(err, env.ErrUnsupported) {
			t.Errorf("a step after the change without a bound block = %v", err)
		}
	}
}
