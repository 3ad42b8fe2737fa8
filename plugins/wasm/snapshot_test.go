package wasm

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/internal/testkit"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/internal/wasmtest"
)

// begin binds the first block and seeds all environments.
func begin(t testing.TB, e *Env, all []env.Block) {
	t.Helper()
	must(t, e.Bind(all[0]))
	must(t, e.Reset(0, nil, seeds(e.options.Envs)))
}

// A snapshot brings everything back, in the Env that it was taken from and in another one: the guest's later writes,
// the fuel that it burned, and the place of its memory.
func TestSnapshot_ReplaysBitForBit(t *testing.T) {
	for name, source := range exampleGuests(t, "") {
		t.Run(name, func(t *testing.T) {
			p := load(t, newRuntime(t), name, source, env.Source{})
			o := env.Options{Envs: 32, Seed: 5}
			e, other := newEnv(t, p, o), newEnv(t, p, o)
			all := blocks(t, p.Spec(), trajectory.Shape{Steps: 32, Envs: 32}, 3)
			begin(t, e, all)
			first, firstFuel := play(t, e, all, 3), e.FuelUsed()
			snap, err := e.Snapshot()
			must(t, err)
			second, secondFuel := play(t, e, all, 3), e.FuelUsed()
			for _, env := range []*Env{e, other, e} {
				must(t, env.Restore(snap))
				if got := env.FuelUsed(); got != firstFuel {
					t.Errorf("fuel after Restore = %d, want %d", got, firstFuel)
				}
				if !bytes.Equal(play(t, env, all, 3), second) || env.FuelUsed() != secondFuel {
					t.Error("the future after Restore differs")
				}
			}
			must(t, e.Renew())
			begin(t, e, all)
			if !bytes.Equal(play(t, e, all, 3), first) || e.FuelUsed() != firstFuel {
				t.Error("the future after Renew differs")
			}
			t.Logf("%d bytes", len(snap))
		})
	}
}

func TestSnapshot_LeavesBlocksOut(t *testing.T) {
	p := load(t, newRuntime(t), cartPole, nil, env.Source{})
	e := newEnv(t, p, env.Options{Envs: 8})
	all := blocks(t, p.Spec(), trajectory.Shape{Steps: 1024, Envs: 8}, 2)
	begin(t, e, all)
	before, err := e.Snapshot()
	must(t, err)
	for k := range all[0].Mem {
		all[0].Mem[k] = byte(k)
	}
	after, err := e.Snapshot()
	must(t, err)
	if !bytes.Equal(before, after) {
		t.Error("the content of a block is in the snapshot")
	}
	most, err := p.StateBytes(8)
	must(t, err)
	if int64(len(after)) > most || most > 1<<24 {
		t.Errorf("a state has %d bytes, at most %d were forecast", len(after), most)
	}
	kept := bytes.Clone(all[0].Mem)
	must(t, e.Restore(after))
	if !bytes.Equal(kept, all[0].Mem) {
		t.Error("Restore changed a block")
	}
}

func TestRestore_RefusesWhatDoesNotFit(t *testing.T) {
	r := newRuntime(t)
	p := load(t, r, cartPole, nil, env.Source{})
	e := newEnv(t, p, env.Options{Envs: 8})
	all := blocks(t, p.Spec(), trajectory.Shape{Steps: 8, Envs: 8}, 1)
	begin(t, e, all)
	snap, err := e.Snapshot()
	must(t, err)
	others := map[string]*Env{
		"another number of environments": newEnv(t, p, env.Options{Envs: 9}),
		"another autoreset":              newEnv(t, p, env.Options{Envs: 8, Autoreset: hostabi.NextStep}),
		"another plugin":                 newEnv(t, load(t, r, "built.wasm", wasmtest.Guest{}.Bytes(), env.Source{}), env.Options{Envs: 8}),
	}
	for name, other := range others {
		if err := other.Restore(snap); !errors.Is(err, env.ErrUnsupported) {
			t.Errorf("%s: Restore = %v", name, err)
		}
	}
	if err := e.Step(0); err != nil {
		t.Errorf("Step after refused snapshots = %v", err)
	}
}

// Damaged snapshots are refused or give some state; neither they nor that state hurt the host.
func TestRestore_SurvivesDamage(t *testing.T) {
	p := load(t, newRuntime(t), cartPole, nil, env.Source{})
	e := newEnv(t, p, env.Options{Envs: 8})
	all := blocks(t, p.Spec(), trajectory.Shape{Steps: 8, Envs: 8}, 1)
	begin(t, e, all)
	snap, err := e.Snapshot()
	must(t, err)
	for n := 0; n < len(snap); n += 1 + n/7 {
		if err := e.Restore(snap[:n]); !errors.Is(err, env.ErrUnsupported) {
			t.Fatalf("Restore of %d of %d bytes = %v", n, len(snap), err)
		}
	}
	random := testkit.Random(t)
	for range 300 {
		bad := bytes.Clone(snap)
		head := min(len(bad), 200)
		if random.IntN(4) == 0 {
			head = len(bad)
		}
		for range 1 + random.IntN(3) {
			bad[random.IntN(head)] ^= byte(1 + random.IntN(255))
		}
		if err := e.Restore(bad); err != nil {
			continue
		}
		if err := e.Bind(all[0]); err != nil {
			continue
		}
		_ = e.Step(0)
	}
	if err := e.Restore(snap); err != nil {
		t.Errorf("Restore of the sound snapshot = %v", err)
	}
}

// A module that changes its tables cannot be forked: it goes the whole way each time, and says no to snapshots.
func TestEnv_WithChangingTablesStartsAgain(t *testing.T) {
	g := wasmtest.Guest{After: func(m *asm.Module) {
		m.Table(2)
		m.Func("change", nil, nil, 0, asm.Const(0), "\xd0\x70", "\x26\x00")
	}}
	p := load(t, newRuntime(t), "guest.wasm", g.Bytes(), env.Source{})
	e := newEnv(t, p, env.Options{Envs: 2})
	b := blocks(t, p.Spec(), trajectory.Shape{Steps: 4, Envs: 2}, 1)[0]
	if _, err := e.Snapshot(); !errors.Is(err, env.ErrUnsupported) {
		t.Errorf("Snapshot = %v", err)
	}
	if err := e.Restore(nil); !errors.Is(err, env.ErrUnsupported) || !strings.Contains(err.Error(), "the module has") {
		t.Errorf("Restore = %v", err)
	}
	if err := e.CopyFrom(newEnv(t, p, env.Options{Envs: 2})); !errors.Is(err, env.ErrUnsupported) {
		t.Errorf("CopyFrom = %v", err)
	}
	for range 2 {
		must(t, e.Bind(b))
		for k := range 3 {
			must(t, e.Step(k))
			if got := b.Bytes(trajectory.Reward)[8*k]; int(got) != k+1 {
				t.Errorf("step %d counts %d", k, got)
			}
		}
		must(t, e.Renew())
	}
}
