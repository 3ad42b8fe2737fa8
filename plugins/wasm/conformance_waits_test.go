package wasm

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
)

// outside gives the last agent of environment 1 an action outside its space. It is refused, and nothing has moved; that of an environment
// that waits is not read, and is left there.
func (c *conformanceCase) outside(t *testing.T, d *env.Driver, waits bool) {
	t.Helper()
	tr, row := d.Acting()
	actions := tr.Rows(nil, trajectory.Action, row)
	last := actions[len(actions)-1]
	action := &last.Int32()[(last.Rows-1)*last.StrideRow/4]
	legal := *action
	if *action = 7; waits {
		return
	}
	for range 2 { // the second time as the first
		_, err := d.Step()
		c.tells(t, err)
		var f *env.Fault
		if !errors.As(err, &f) || f.Kind != env.FaultStatus || f.Env != 1 {
			t.Errorf("%v, want a status of environment 1", err)
		}
	}
	*action = legal
}

// masked checks the masks of mask-elements: the second value of the first element is legal behind an end alone.
func masked(t *testing.T, d *env.Driver, mode string, waits bool) {
	t.Helper()
	want := []byte{1, 0, 1, 1, 1}
	if waits {
		want[1] = 1
	}
	for k := range 2 {
		if got := bytesOf(d.Mask(), k); !bytes.Equal(got, want) {
			t.Errorf("%s: the mask of environment %d is %v, want %v", mode, k, got, want)
		}
	}
}

// waits is about a batch all of whose environments wait. Under disabled two steps change nothing, whatever the actions are. In
// save-waiting it continues first in another instance, which is given its states and its observations.
func (c *conformanceCase) waits(t *testing.T, p env.Plugin, d *env.Driver, mode string) error {
	if c.Name == "save-waiting" {
		if err := elsewhere(t, p, d, mode); err != nil {
			return err
		}
	}
	if mode != "disabled" {
		return nil
	}
	want := shown(d)
	for _, action := range []int32{9, 1} {
		for k := range d.Action() {
			d.Action()[k] = action
		}
		if _, err := d.Step(); err != nil {
			return err
		}
		if !slices.Equal(d.Reward(), []float32{0, 0}) || !bytes.Equal(d.Terminated(), []uint8{0, 0}) || !bytes.Equal(d.Truncated(), []uint8{0, 0}) {
			t.Errorf("an environment that waits has %v %v %v, want zeros", d.Reward(), d.Terminated(), d.Truncated())
		}
		if got := shown(d); !bytes.Equal(got, want) {
			t.Errorf("an environment that waits shows %v, want %v", got, want)
		}
	}
	return nil
}

// shown returns the bytes of what the environments observe.
func shown(d *env.Driver) (row []byte) {
	tr, now := d.Acting()
	return bytes.Clone(tr.RowBytes(trajectory.Obs, now))
}

// elsewhere puts another instance in the place of the driver's, which has the saved states of it and no more.
func elsewhere(t *testing.T, p env.Plugin, d *env.Driver, mode string) error {
	next, err := p.NewEnv(env.Options{Name: "elsewhere", Envs: 2, Autoreset: modeOf(mode)})
	must(t, err)
	before := d.Env.(env.Stater)
	kept := shown(d)
	old := d.Env
	d.Env = next
	if err := errors.Join(d.Bind(), d.Reset(nil, []uint64{5, 6})); err != nil {
		return errors.Join(err, old.Close())
	}
	for k := range 2 {
		state, err := before.SaveEnv(k, nil)
		if err := errors.Join(err, next.(env.Stater).LoadEnv(k, state)); err != nil {
			return errors.Join(err, old.Close())
		}
	}
	tr, now := d.Acting()
	copy(tr.RowBytes(trajectory.Obs, now), kept)
	return old.Close()
}
