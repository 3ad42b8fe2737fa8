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

// none is the number of what no version has been loaded into.
const none = trajectory.AnyVersion

// version is a version of the policy, and what acts with it.
type version struct {
	number uint64
	actor  policy.Actor
	blob   []byte // its weights, of a policy whose versions are drawn

	requests []policy.Request // that wait
	rows     int              // of them
}

// hold makes a version the newest. The one before it stays only where versions are drawn: episodes are played to their ends with it.
func (c *Inference) hold(w policy.Weights, block []byte) error {
	if err := c.keep(w, block); err != nil {
		return err
	}
	c.now = c.versions[len(c.versions)-1]
	return nil
}

// keep puts a version behind all others, in the place of the first one where there are too many.
func (c *Inference) keep(w policy.Weights, block []byte) error {
	v, err := c.room(w.Version)
	if err != nil {
		return err
	}
	if v.number = w.Version; c.drawn {
		v.blob = append(v.blob[:0], block[:c.format.Bytes()]...)
	}
	return v.actor.Load(w)
}

// room returns the last of the held versions, for that number.
func (c *Inference) room(number uint64) (*version, error) {
	at := c.placeOf(number)
	if at < 0 {
		at = c.placeOf(none)
	}
	if at < 0 && (!c.drawn || len(c.versions) >= c.config.Versions) {
		at = 0
	}
	if at < 0 {
		at = len(c.versions)
		if err := c.addVersion(); err != nil {
			return nil, err
		}
	}
	v := c.versions[at]
	c.versions = append(slices.Delete(c.versions, at, at+1), v)
	return v, nil
}

// addVersion makes what a version can act with.
func (c *Inference) addVersion() error {
	actor, err := policy.NewActor(c.backend, c.network, c.config.MaxRows)
	if err == nil {
		c.versions = append(c.versions, &version{number: none, actor: actor})
	}
	return err
}

// placeOf returns the index of a version in versions, -1 if it is not held.
func (c *Inference) placeOf(number uint64) int {
	return slices.IndexFunc(c.versions, func(v *version) bool { return v.number == number })
}

// addByVersion adds the own rows of a request to the batches of the versions that their episodes are played with. Where none is known, or it is
// held no more, it is the newest from here on.
func (c *Inference) addByVersion(r policy.Request, played []uint64) error {
	for _, row := range c.own {
		known := played[row] != trajectory.AnyVersion
		if known && c.placeOf(played[row]) >= 0 {
			continue
		}
		if known {
			c.gone.Inc()
		}
		played[row] = c.now.number
	}
	for _, v := range c.versions {
		c.some = c.some[:0]
		for _, row := range c.own {
			if played[row] == v.number {
				c.some = append(c.some, row)
			}
		}
		if len(c.some) == 0 {
			continue
		}
		if err := c.add(v, c.picked.Pick(&r, c.some)); err != nil {
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
func (c *Inference) Snapshot() (component.State, error) {
	if !c.drawn {
		return component.State{}, nil
	}
	var saved savedVersions
	state := component.State{Blobs: map[string][]byte{}}
	for _, v := range c.versions {
		if v.number == none {
			continue
		}
		saved.Held = append(saved.Held, v.number)
		state.Blobs[blobOf(v.number)] = slices.Clone(v.blob)
	}
	state.Meta = saved
	return state, nil
}

// Restore holds the versions of a snapshot. The newest one is what comes next.
func (c *Inference) Restore(state component.State) error {
	var saved savedVersions
	if err := state.Decode(&saved); err != nil || !c.drawn {
		return err
	}
	for _, number := range saved.Held {
		blob := state.Blobs[blobOf(number)]
		w, err := c.format.Read(blob)
		if err == nil {
			err = c.keep(w, blob)
		}
		if err != nil {
			c.h.Log.Warn("a version is no longer of this network: episodes go on with the newest one", "version", number, "err", err)
			return nil
		}
	}
	return nil
}

func blobOf(version uint64) string { return "version" + strconv.FormatUint(version, 10) }
