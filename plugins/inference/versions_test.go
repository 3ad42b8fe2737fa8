package inference

import (
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
)

// drawing is a rig of policy main, whose versions are drawn, with blocks in whose rows two policies act: main in environments with odd
// numbers. held versions stay.
func drawing(t *testing.T, held int) *rig {
	t.Helper()
	r := shared(t, network(), 1024)
	c := r.component.(*Inference)
	c.drawn, c.config.Versions = true, held
	r.MustSettle()
	return r
}

// played asks about row 0 and returns the versions that played environments 1 and 3, which are main's, and their values.
func (r *rig) played(t *testing.T, asked ...uint64) (versions [2]uint64, values [2]float32) {
	t.Helper()
	tr := r.blocks[0]
	all := tr.PlayedVersions(0)
	for i := range all {
		all[i] = untouched
	}
	all[1], all[3] = asked[0], asked[1]
	r.ask(t, 0, 0, nil)
	r.MustSettle()
	if all[0] != untouched || all[2] != untouched || all[4] != untouched {
		t.Errorf("versions of another policy's rows were written: %v", all)
	}
	value := tr.Float32(trajectory.Value)
	return [2]uint64{all[1], all[3]}, [2]float32{value[1], value[3]}
}

// An episode is played with the version that it has begun with, as long as that is held, and a new one with the newest.
func TestVersions_AnEpisodeKeepsIts(t *testing.T) {
	const anew = trajectory.AnyVersion
	r := drawing(t, 2)
	alone := map[uint64][2]float32{}
	for _, version := range []uint64{0, 1, 2} { // the results of each version where it is the only one
		x := drawing(t, 1)
		x.publish(t, x.network, version)
		_, alone[version] = x.played(t, anew, anew)
	}
	check := func(want [2]uint64, asked ...uint64) {
		t.Helper()
		versions, values := r.played(t, asked...)
		if versions != want {
			t.Errorf("asked for %v: played with %v, want %v", asked, versions, want)
		}
		for i, version := range versions {
			if values[i] != alone[version][i] {
				t.Errorf("asked for %v: environment %d has the value %v, version %d says %v", asked, 2*i+1, values[i], version, alone[version][i])
			}
		}
	}
	r.publish(t, r.network, 0) // after 1: an earlier version is drawn
	check([2]uint64{0, 0}, anew, anew)
	check([2]uint64{1, 0}, 1, anew)
	check([2]uint64{1, 0}, 1, 0)
	r.publish(t, r.network, 2) // two are held: 1 is held no more
	check([2]uint64{2, 0}, 1, 0)
	check([2]uint64{2, 2}, anew, 2)
	if n := r.Host.Stats.Counter("inference/versions_gone").Value(); n != 1 {
		t.Errorf("%d episodes went on with another version, want 1", n)
	}
}

// The versions of a snapshot are played after it, and the newest version is the one that arrives.
func TestVersions_AreSaved(t *testing.T) {
	r := drawing(t, 4)
	for _, version := range []uint64{5, 3, 5} {
		r.publish(t, r.network, version)
		r.MustSettle()
	}
	state, err := r.component.Snapshot()
	if err == nil {
		state, err = state.Frozen()
	}
	if err != nil {
		t.Fatal(err)
	}
	again := drawing(t, 4)
	if err := again.component.Restore(state); err != nil {
		t.Fatal(err)
	}
	again.publish(t, again.network, 8)
	versions, _ := again.played(t, 3, trajectory.AnyVersion)
	if versions != [2]uint64{3, 8} {
		t.Errorf("played with %v, want 3 and 8", versions)
	}
	var held []uint64
	for _, v := range again.component.(*Inference).versions {
		held = append(held, v.number)
	}
	if !slices.Equal(held, []uint64{1, 3, 5, 8}) {
		t.Errorf("%v are held", held)
	}
	if err := again.component.Restore(component.State{}); err != nil {
		t.Errorf("a state from before versions were held: %v", err)
	}
}

func TestVersions_AllocateNothing(t *testing.T) {
	r := drawing(t, 4)
	for i := range r.blocks[0].PlayedVersions(0) {
		for row := range steps + 1 {
			r.blocks[0].PlayedVersions(row)[i] = uint64(i % 2)
		}
	}
	r.publish(t, r.network, 0)
	r.servesWithoutAllocating(t)
}
