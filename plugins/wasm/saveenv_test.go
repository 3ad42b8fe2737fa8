package wasm

import (
	"bytes"
	"errors"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
)

// savers returns the example guests that can save an environment: the corridors of other languages leave that out.
func savers(t *testing.T) map[string][]byte {
	all := exampleGuests(t, "cartpole")
	all["corridor-c"] = readGuest(t, examples+"corridor-c/corridor.wasm")
	return all
}

// A state goes from one batch to another, whether or not it fits into the memory that the guest gave before.
func TestSaveEnv_SmallAndLargeStatesAreTheSame(t *testing.T) {
	for name, source := range savers(t) {
		t.Run(name, func(t *testing.T) {
			p := load(t, newRuntime(t), name, source, env.Source{})
			many, one := newEnv(t, p, env.Options{Envs: 32}), newEnv(t, p, env.Options{Envs: 1})
			all := blocks(t, p.Spec(), trajectory.Shape{Steps: 8, Envs: 32}, 1)
			begin(t, many, all)
			play(t, many, all, 1)
			for _, env := range []int{0, 17, 31} {
				small, err := many.SaveEnv(env, []byte("before"))
				must(t, err)
				state := small[len("before"):]
				if len(state) <= int(one.scratchBytes()) || len(state) > int(many.scratchBytes()) {
					t.Fatalf("%d bytes: the test looks at one way only", len(state))
				}
				must(t, one.LoadEnv(0, state))
				large, err := one.SaveEnv(0, nil)
				if err != nil || !bytes.Equal(large, state) {
					t.Errorf("environment %d is %x, then %x (%v)", env, state, large, err)
				}
				if err := many.LoadEnv(env, large); err != nil {
					t.Error(err)
				}
			}
			for _, bad := range [][]byte{nil, make([]byte, 3), make([]byte, 4096)} {
				if err := many.LoadEnv(0, bad); err == nil {
					t.Errorf("%d zeros are taken for a state", len(bad))
				}
			}
			if _, err := many.SaveEnv(32, nil); !errors.Is(err, env.ErrUnsupported) {
				t.Errorf("environment 32 of 32: %v", err)
			}
		})
	}
}

func TestSaveEnv_AllocatesNothing(t *testing.T) {
	for name, source := range savers(t) {
		p := load(t, newRuntime(t), name, source, env.Source{})
		from, to := newEnv(t, p, env.Options{Envs: 32}), newEnv(t, p, env.Options{Envs: 32})
		all := blocks(t, p.Spec(), trajectory.Shape{Steps: 8, Envs: 32}, 1)
		begin(t, from, all)
		state := make([]byte, 0, 256)
		n := testing.AllocsPerRun(100, func() {
			for env := range 32 {
				var err error
				if state, err = from.SaveEnv(env, state[:0]); err != nil {
					t.Fatal(err)
				}
				must(t, to.LoadEnv(env, state))
			}
		})
		if n != 0 {
			t.Errorf("%s: carrying 32 environments over allocates %v times", name, n)
		}
	}
}

// Saving and loading takes nothing of the guest's memory.
func TestSaveEnv_GrowsNoGuest(t *testing.T) {
	for name, source := range savers(t) {
		p := load(t, newRuntime(t), name, source, env.Source{})
		e := newEnv(t, p, env.Options{Envs: 32})
		begin(t, e, blocks(t, p.Spec(), trajectory.Shape{Steps: 8, Envs: 32}, 1))
		size := e.inst.Mem.Size
		var state []byte
		for k := range 4000 {
			var err error
			if state, err = e.SaveEnv(k%32, state[:0]); err != nil {
				t.Fatal(err)
			}
			must(t, e.LoadEnv(k%32, state))
		}
		if e.inst.Mem.Size > size {
			t.Errorf("%s has grown from %d to %d bytes", name, size, e.inst.Mem.Size)
		}
	}
}

// Bind finds the blocks that are mapped ahead, and steps write into them.
func TestMapAhead_BindFindsTheBlocks(t *testing.T) {
	p := load(t, newRuntime(t), cartPole, nil, env.Source{})
	o, shape := env.Options{Envs: 8, Seed: 3}, trajectory.Shape{Steps: 16, Envs: 8}
	other, e := newEnv(t, p, o), newEnv(t, p, o)
	all, own, pads := blocks(t, p.Spec(), shape, 3), blocks(t, p.Spec(), shape, 3), blocks(t, p.Spec(), shape, 3)
	begin(t, other, all)
	want := play(t, other, all, 2)
	for k := range own {
		own[k].Schema, pads[k].Schema = all[k].Schema, all[k].Schema
	}
	for _, b := range pads[:2] { // the third is not known yet
		begin(t, e, []env.Block{b})
	}
	must(t, e.Renew())
	for _, b := range pads[:2] {
		must(t, e.Bind(b))
	}
	must(t, e.MapAhead(own))
	if err := e.Step(0); err == nil {
		t.Error("a step is made though nothing is bound")
	}
	if len(e.windows) != 2 || e.windows[0].offset != own[0].Offset || e.windows[1].offset != own[1].Offset {
		t.Errorf("the windows are %+v", e.windows)
	}
	before := bytes.Clone(pads[0].Mem)
	begin(t, e, own)
	if !bytes.Equal(play(t, e, own, 2), want) {
		t.Error("what is played in blocks that were mapped ahead differs")
	}
	if !bytes.Equal(pads[0].Mem, before) {
		t.Error("something was written to a block that is not bound")
	}
	own[0].Offset++
	if err := e.MapAhead(own[:1]); !errors.Is(err, env.ErrUnsupported) {
		t.Errorf("a block that begins within a page: %v", err)
	}
}

// Every binding of a block survives a copy: the other one's blocks are elsewhere in their files.
func TestCopyFrom_BindingsAreThoseOfTheBlock(t *testing.T) {
	p := load(t, newRuntime(t), cartPole, nil, env.Source{})
	o := env.Options{Envs: 8, Seed: 3}
	from, to := newEnv(t, p, o), newEnv(t, p, o)
	rows, columns := blocks(t, p.Spec(), trajectory.Shape{Steps: 16, Envs: 8}, 2), blocks(t, p.Spec(), trajectory.Shape{Steps: 16, Envs: 8, SoA: true}, 2)
	begin(t, from, rows)
	play(t, from, rows, 1)
	begin(t, to, columns)
	play(t, to, columns, 1)
	want := play(t, from, columns, 1)
	must(t, from.Renew())
	begin(t, from, rows)
	play(t, from, rows, 1)
	must(t, to.CopyFrom(from))
	if !bytes.Equal(play(t, to, columns, 1), want) {
		t.Error("the copy plays something else in blocks that it was bound to before")
	}
}
