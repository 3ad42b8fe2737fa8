package inference

import (
	"slices"
	"strconv"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
)

// maxVersions bounds the versions that are held: each has the memory of the policy.
const maxVersions = 1024

// none is the number of a slot into which no version has been loaded.
const none = trajectory.AnyVersion

// version is a version of the policy, with its actor.
type version struct {
	number uint64
	actor  policy.Actor
	blob   []byte // its weights, of a policy whose versions are drawn

	requests []policy.Request // that wait
	rows     int              // of them
}

// hold makes a version the newest. The one before it stays only where versions are drawn: episodes are played to their ends with it.
func (inf *Inference) hold(w policy.Weights, block []byte) error {
	if err := inf.keep(w, block); err != nil {
		return err
	}
	inf.now = inf.versions[len(inf.versions)-1]
	return nil
}

// keep puts a version after all others, and drops the first one where there are too many.
func (inf *Inference) keep(w policy.Weights, block []byte) error {
	v, err := inf.room(w.Version)
	if err != nil {
		return err
	}
	if v.number = w.Version; inf.drawn {
		v.blob = append(v.blob[:0], block[:inf.format.Bytes()]...)
	}
	return v.actor.Load(w)
}

// room returns the last of the held versions, for that number.
func (inf *Inference) room(number uint64) (*version, error) {
	at := inf.placeOf(number)
	if at < 0 {
		at = inf.placeOf(none)
	}
	if at < 0 && (!inf.drawn || len(inf.versions) >= inf.config.Versions) {
		at = 0
	}
	if at < 0 {
		at = len(inf.versions)
		if err := inf.addVersion(); err != nil {
			return nil, err
		}
	}
	v := inf.versions[at]
	inf.versions = append(slices.Delete(inf.versions, at, at+1), v)
	return v, nil
}

// addVersion makes an actor for a version.
func (inf *Inference) addVersion() error {
	actor, err := policy.NewActor(inf.backend, inf.network, inf.config.MaxRows)
	if err == nil {
		inf.versions = append(inf.versions, &version{number: none, actor: actor})
	}
	return err
}

// placeOf returns the index of a version in versions, -1 if it is not held.
func (inf *Inference) placeOf(number uint64) int {
	return slices.IndexFunc(inf.versions, func(v *version) bool { return v.number == number })
}

// addByVersion adds the own rows of a request to the batches of the versions that their episodes are played with. Where none is known, or it is
// held no more, it is the newest from here on.
func (inf *Inference) addByVersion(r policy.Request, played []uint64) error {
	for _, row := range inf.own {
		known := played[row] != trajectory.AnyVersion
		if known && inf.placeOf(played[row]) >= 0 {
			continue
		}
		if known {
			inf.gone.Inc()
		}
		played[row] = inf.now.number
	}
	for _, v := range inf.versions {
		inf.some = inf.some[:0]
		for _, row := range inf.own {
			if played[row] == v.number {
				inf.some = append(inf.some, row)
			}
		}
		if len(inf.some) == 0 {
			continue
		}
		if err := inf.add(v, inf.picked.Pick(&r, inf.some)); err != nil {
			return err
		}
	}
	return nil
}

// savedVersions are the versions that a state holds, in their order.
type savedVersions struct {
	Held []uint64 `json:"held"`
}

// Snapshot has the versions that episodes are played with, of a policy whose versions are drawn. Else it is empty: weights come from the learner,
// requests are sent again.
func (inf *Inference) Snapshot() (component.State, error) {
	if !inf.drawn {
		return component.State{}, nil
	}
	var saved savedVersions
	state := component.State{Blobs: map[string][]byte{}}
	for _, v := range inf.versions {
		if v.number == none {
			continue
		}
		saved.Held = append(saved.Held, v.number)
		state.Blobs[blobOf(v.number)] = slices.Clone(v.blob)
	}
	state.Meta = saved
	return state, nil
}

// Restore holds the versions of a snapshot. The newest one arrives next.
func (inf *Inference) Restore(state component.State) error {
	var saved savedVersions
	if err := state.Decode(&saved); err != nil || !inf.drawn {
		return err
	}
	for _, number := range saved.Held {
		blob := state.Blobs[blobOf(number)]
		w, err := inf.format.Read(blob)
		if err == nil {
			err = inf.keep(w, blob)
		}
		if err != nil {
			inf.h.Log.Warn("a version is no longer of this network: episodes go on with the newest one", "version", number, "err", err)
			return nil
		}
	}
	return nil
}

func blobOf(version uint64) string { return "version" + strconv.FormatUint(version, 10) }
