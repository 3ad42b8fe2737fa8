package wasm

import (
	"bytes"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/internal/wasmtest"
)

// The guest's stores are in the block itself: no copy is made anywhere.
func TestBind_GuestWritesIntoTheBlock(t *testing.T) {
	p := load(t, newRuntime(t), cartPole, nil, env.Source{})
	e := newEnv(t, p, env.Options{Envs: 64})
	all := blocks(t, p.Spec(), trajectory.Shape{Steps: 32, Envs: 64}, 2)
	begin(t, e, all)
	w := e.windows[0]
	b := all[0]
	if guest, host := e.inst.View(w.ptr, w.bytes), b.Mem[:b.Schema.GuestBytes]; !bytes.Equal(guest, host) {
		t.Error("guest and host see different bytes")
	}
	b.Mem[100] ^= 0xff
	if e.inst.View(w.ptr, w.bytes)[100] != b.Mem[100] {
		t.Error("the guest does not see what the host writes")
	}
	must(t, e.Step(31))
	if got := b.Float32(trajectory.Reward)[31*64+5]; got != 1 {
		t.Errorf("reward in the block = %v", got)
	}
	if got := all[1].Float32(trajectory.Reward)[31*64+5]; got != 0 {
		t.Errorf("reward in a block that is not bound = %v", got)
	}
}

func TestBind_TellsTheGuestWhereTensorsLie(t *testing.T) {
	p := load(t, newRuntime(t), cartPole, nil, env.Source{})
	columns := map[hostabi.Role]trajectory.Column{
		hostabi.RoleAction: trajectory.Action, hostabi.RoleObservation: trajectory.Obs, hostabi.RoleReward: trajectory.Reward,
		hostabi.RoleTerminated: trajectory.Terminated, hostabi.RoleTruncated: trajectory.Truncated,
		hostabi.RoleFinalObservation: trajectory.FinalObs,
	}
	for _, soa := range []bool{false, true} {
		e := newEnv(t, p, env.Options{Envs: 64})
		b := blocks(t, p.Spec(), trajectory.Shape{Steps: 32, Envs: 64, SoA: soa}, 1)[0]
		must(t, e.Bind(b))
		w := e.windows[0]
		for k, d := range p.spec.Tensors {
			l, ok := b.Schema.Layout(columns[d.Role])
			if !ok {
				t.Fatalf("no column for %v", d.Role)
			}
			got := words32(e.inst.View(w.bindings+uint32(k*hostabi.BindingBytes), hostabi.BindingBytes))
			want := [8]uint32{w.ptr + uint32(l.Offset), uint32(l.StrideT), uint32(l.StrideEnv), 0, uint32(l.StrideElem), uint32(l.Rows)}
			if d.Role == hostabi.RoleFinalObservation {
				want[1] = 0
			}
			want[6], got[6] = 0, checkRowAlign(t, &l, got[6])
			if got != want {
				t.Errorf("binding of %v = %v, want %v", d.Role, got, want)
			}
		}
	}
}

// A guest may scribble over everything that it can address, also after the block was handed on; the host's region
// does not change, and neither does the other guest's block.
func TestWindow_GuestCannotReachTheHostsRegion(t *testing.T) {
	scribble := asm.Const(wasmtest.DescribedAt) + asm.Const(0xEE) +
		asm.MemorySize + asm.Const(16) + asm.Shl + asm.Const(wasmtest.DescribedAt) + asm.Sub + asm.MemoryFill
	r := newRuntime(t)
	hostile := load(t, r, "hostile.wasm", wasmtest.Guest{Functions: map[string]asm.Code{hostabi.ExportStep: scribble + asm.Const(0)}}.Bytes(), env.Source{})
	all := blocks(t, hostile.Spec(), trajectory.Shape{Steps: 100, Envs: 20}, 3)
	for _, b := range all {
		for k := range b.Mem {
			b.Mem[k] = byte(k * 7)
		}
	}
	e := newEnv(t, hostile, env.Options{Envs: 20})
	for _, k := range []int{0, 2} {
		must(t, e.Bind(all[k]))
	}
	must(t, e.Step(0))
	for k, b := range all {
		for at, got := range b.Mem {
			want := byte(at * 7)
			if k != 1 && at < b.Schema.GuestBytes {
				want = 0xEE
			}
			if got != want {
				t.Fatalf("block %d byte %d of %d = %#x, want %#x", k, at, b.Schema.GuestBytes, got, want)
			}
		}
	}
}

func TestEnvs_OfOnePluginHaveTheirOwnBlocks(t *testing.T) {
	p := load(t, newRuntime(t), cartPole, nil, env.Source{})
	all := blocks(t, p.Spec(), trajectory.Shape{Steps: 8, Envs: 4}, 2)
	var envs []*Env
	for k := range 2 {
		e := newEnv(t, p, env.Options{Envs: 4})
		must(t, e.Bind(all[k]))
		must(t, e.Reset(0, nil, []uint64{uint64(k), 2, 3, 4}))
		envs = append(envs, e)
	}
	before := bytes.Clone(all[1].Mem)
	must(t, envs[0].Step(0))
	if !bytes.Equal(before, all[1].Mem) {
		t.Error("a step of one Env is in the block of another")
	}
	a, b := all[0].Float32(trajectory.Obs), all[1].Float32(trajectory.Obs)
	if a[0] == b[0] || math.Float32bits(a[4]) != math.Float32bits(b[4]) {
		t.Errorf("first observations %v and %v: only the seed of environment 0 differs", a[:8], b[:8])
	}
}

func TestBind_RefusesBlocksThatItCannotMap(t *testing.T) {
	p := load(t, newRuntime(t), cartPole, nil, env.Source{})
	e := newEnv(t, p, env.Options{Envs: 8})
	good := blocks(t, p.Spec(), trajectory.Shape{Steps: 8, Envs: 8}, 1)[0]
	unsealed, err := unix.MemfdCreate("unsealed", unix.MFD_CLOEXEC)
	must(t, err)
	defer unix.Close(unsealed)
	must(t, unix.Ftruncate(unsealed, 1<<20))
	other, err := trajectory.NewSchema(p.Spec(), trajectory.Shape{Steps: 8, Envs: 9})
	must(t, err)
	stranger := load(t, newRuntime(t), "built.wasm", wasmtest.Guest{}.Bytes(), env.Source{})
	foreign, err := trajectory.NewSchema(stranger.Spec(), trajectory.Shape{Steps: 8, Envs: 8})
	must(t, err)
	cases := []struct {
		name   string
		change func(b *env.Block)
		want   string
	}{
		{"ordinary memory", func(b *env.Block) { b.FD = -1 }, "ordinary memory, which cannot be mapped"},
		{"no schema", func(b *env.Block) { b.Schema = nil }, "no schema"},
		{"other envs", func(b *env.Block) { b.Schema = other }, "room for 9 environments, this batch has 8"},
		{"other tensors", func(b *env.Block) { b.Schema = foreign }, "laid out for another environment (built@1)"},
		{"odd offset", func(b *env.Block) { b.Offset = 64 }, "not made of whole pages"},
		{"negative offset", func(b *env.Block) { b.Offset = -4096 }, "is at offset -4096"},
		{"file that can shrink", func(b *env.Block) { b.FD = unsealed }, "not sealed against shrinking"},
		{"behind the end of the file", func(b *env.Block) { b.Offset = 1 << 30 }, "the block ends at"},
		{"no file", func(b *env.Block) { b.FD = 99999 }, "bad file descriptor"},
	}
	for _, c := range cases {
		b := good
		c.change(&b)
		err := e.Bind(b)
		if !errors.Is(err, env.ErrUnsupported) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Bind = %v, want %q in it", c.name, err, c.want)
		}
	}
	if err := e.Bind(good); err != nil {
		t.Errorf("Bind of a good block afterwards = %v", err)
	}
}

// A block index that comes back with other memory, as from another arena, is mapped again.
func TestBind_FollowsABlockToAnotherArena(t *testing.T) {
	p := load(t, newRuntime(t), cartPole, nil, env.Source{})
	e := newEnv(t, p, env.Options{Envs: 8})
	for _, steps := range []int{8, 8, 600, 8} {
		b := blocks(t, p.Spec(), trajectory.Shape{Steps: steps, Envs: 8}, 1)[0]
		begin(t, e, []env.Block{b})
		must(t, e.Step(steps-1))
		if got := b.Float32(trajectory.Reward)[8*steps-1]; got != 1 {
			t.Errorf("reward after a new arena of %d steps = %v", steps, got)
		}
	}
	if len(e.windows) != 1 {
		t.Errorf("%d windows, want 1", len(e.windows))
	}
}

// mappings returns how many mappings the process has.
func mappings(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	must(t, err)
	return bytes.Count(b, []byte("\n"))
}

func TestClose_LeavesNoMappingsAndFiles(t *testing.T) {
	p := load(t, newRuntime(t), "rust", readGuest(t, examples+"cartpole-rust/cartpole.wasm"), env.Source{})
	b := blocks(t, p.Spec(), trajectory.Shape{Steps: 8, Envs: 8}, 1)[0]
	cycle := func(n int) {
		for k := range n {
			e, err := p.NewEnv(env.Options{Name: "e", Envs: 8, Autoreset: hostabi.SameStep})
			must(t, err)
			must(t, e.Bind(b))
			if k%3 == 0 {
				must(t, e.Renew())
			}
			must(t, e.Close())
		}
	}
	cycle(20)
	maps, files := mappings(t), openFiles(t)
	cycle(1000)
	// The Go heap may have grown by a few mappings; each Env has several.
	if got := mappings(t); got > maps+50 {
		t.Errorf("%d mappings after 1000 environments, %d before", got, maps)
	}
	if got := openFiles(t); got > files {
		t.Errorf("%d open files after 1000 environments, %d before", got, files)
	}
}

// checkRowAlign reports an alignment that a row of the column does not have, and returns 0.
func checkRowAlign(t *testing.T, l *trajectory.Layout, align uint32) uint32 {
	t.Helper()
	if align == 0 || align&(align-1) != 0 {
		t.Errorf("rows of %v are aligned to %d", l.Column, align)
		return 0
	}
	for row := range l.Rows {
		for envs := range l.Envs {
			if at := l.Offset + row*l.StrideT + envs*l.StrideEnv; at%int(align) != 0 {
				t.Errorf("row %d of environment %d of %v lies at %d, said to be aligned to %d", row, envs, l.Column, at, align)
			}
		}
	}
	return 0
}
