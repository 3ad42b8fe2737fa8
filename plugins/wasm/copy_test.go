package wasm

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
)

// A copy is what Snapshot and Restore make, between environments of one plugin and of two made of the same file,
// and onto one that has played before. What is bound in the copy stays as it is.
func TestCopyFrom_IsSnapshotAndRestoreInOne(t *testing.T) {
	for name, source := range exampleGuests(t, "") {
		t.Run(name, func(t *testing.T) {
			r := newRuntime(t)
			p := load(t, r, name, source, env.Source{})
			o := env.Options{Envs: 32, Seed: 5}
			shape := trajectory.Shape{Steps: 32, Envs: 32}
			e := newEnv(t, p, o)
			all := blocks(t, p.Spec(), shape, 3)
			begin(t, e, all)
			play(t, e, all, 3)
			snap, err := e.Snapshot()
			must(t, err)
			fuel := e.FuelUsed()
			fresh, played := newEnv(t, load(t, r, name, source, env.Source{}), o), newEnv(t, p, o)
			own := blocks(t, p.Spec(), shape, 3)
			begin(t, played, own)
			play(t, played, own, 2)
			kept := bytes.Clone(own[0].Mem)
			turned, last := newEnv(t, p, o), blocks(t, p.Spec(), shape, 3) // its windows lie elsewhere
			slices.Reverse(last)
			begin(t, turned, last)
			play(t, turned, last, 2)
			for what, to := range map[string]*Env{"fresh": fresh, "played": played, "turned": turned} {
				if err := to.CopyFrom(e); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if to.FuelUsed() != fuel {
					t.Errorf("%s: fuel %d, want %d", what, to.FuelUsed(), fuel)
				}
				if got, err := to.Snapshot(); err != nil || !bytes.Equal(got, snap) {
					t.Errorf("%s: its snapshot differs (%v)", what, err)
				}
			}
			if !bytes.Equal(own[0].Mem, kept) {
				t.Error("the copy has written to a block that was bound")
			}
			want := play(t, e, all, 3)
			for what, to := range map[string]*Env{"fresh": fresh, "played": played, "turned": turned} {
				if !bytes.Equal(play(t, to, all, 3), want) {
					t.Errorf("%s: the future differs", what)
				}
			}
		})
	}
}

func TestCopyFrom_RefusesOthers(t *testing.T) {
	p := load(t, newRuntime(t), cartPole, nil, env.Source{})
	e, wider := newEnv(t, p, env.Options{Envs: 8}), newEnv(t, p, env.Options{Envs: 9})
	for what, from := range map[string]env.Env{"itself": e, "as many": wider, "another kind": nil} {
		if err := e.CopyFrom(from); !errors.Is(err, env.ErrUnsupported) {
			t.Errorf("%s: %v, want ErrUnsupported", what, err)
		}
	}
	must(t, wider.Close())
	if _, err := e.Snapshot(); err != nil {
		t.Errorf("it is not as it was: %v", err)
	}
}
