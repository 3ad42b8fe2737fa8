package rollout

import (
	"encoding/binary"
	"encoding/hex"

	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/tape"
	"github.com/rlhost/rlhost/core/trajectory"
)

// maxVersions bounds how many versions are counted apart; more are counted together.
const maxVersions = 64

// maxCast bounds how many makers of one block are distinguished.
const maxCast = 1 << 15

// stampedBySeveral is the version of a block that several versions have made.
const stampedBySeveral = ^uint64(0)

// version describes one version of the environments: all that come from one file.
type version struct {
	id                         uint64 // first 8 bytes of the SHA-256
	envSteps, episodes, faults *stat.Counter
	returns                    *stat.Gauge // sum of the returns of its episodes
}

// maker says what made a row, as far as counters tell rows apart.
type maker struct {
	version *version
	task    uint16       // see trajectory.Episode
	onTrial bool         // next to environments that are trained for; its reports count nowhere
	tape    *tape.Writer // of the environments
}

// versionID is the first 8 bytes of a SHA-256 in hexadecimal.
func versionID(hash string) uint64 {
	b, err := hex.DecodeString(hash)
	if err != nil || len(b) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// knownVersions counts versions apart.
type knownVersions struct {
	stats *stat.Registry
	byID  map[uint64]*version
}

// of returns the version with that hash. It is for the loop, and for Start.
func (k *knownVersions) of(hash string) *version {
	id := versionID(hash)
	if v := k.byID[id]; v != nil {
		return v
	}
	name := "others"
	if len(k.byID) < maxVersions {
		name = hash[:min(8, len(hash))]
	}
	name = "version/" + name + "/"
	v := &version{id: id,
		envSteps: k.stats.Counter(name + "env_steps"), episodes: k.stats.Counter(name + "episodes"),
		faults: k.stats.Counter(name + "faults"), returns: k.stats.Gauge(name + "return_sum"),
	}
	if len(k.byID) < maxVersions {
		k.byID[id] = v
	}
	return v
}

// makerOf returns the maker of a row: by, if it made all of them.
func (r *rows) makerOf(at int, by *maker) *maker {
	if by != nil {
		return by
	}
	return &r.cast[r.makers[at]]
}

// stamp records the maker of the rows before row t of the environments, or agents, from first to end, so that another can make
// the rows from t on.
func (r *rows) stamp(first, end, t int, by maker) {
	if t == 0 {
		return
	}
	made, place := r.tr.Uint64(trajectory.PluginVersion), r.place(by)
	for i := first; i < end; i++ {
		for row := int(r.stamped[i]); row < t; row++ {
			made[row*r.n+i], r.makers[row*r.n+i] = by.version.id, place
		}
		r.stamped[i] = max(r.stamped[i], int32(t))
	}
	r.mixed, r.stamps[r.block] = true, stampedBySeveral
}

// place returns the place of a maker in the block's cast.
func (r *rows) place(m maker) uint16 {
	for i, have := range r.cast {
		if have == m {
			return uint16(i)
		}
	}
	if len(r.cast) < maxCast {
		r.cast = append(r.cast, m)
	}
	return uint16(len(r.cast) - 1)
}

// stampAll is for a block of one version. A block keeps its contents, unless it is poisoned when it is freed.
func (r *rows) stampAll(by maker) {
	made, id, stamp := r.tr.Uint64(trajectory.PluginVersion), by.version.id, &r.stamps[r.block]
	if *stamp == id && made[0] == id && made[len(made)-1] == id {
		return
	}
	for i := range made {
		made[i] = id
	}
	*stamp = id
}
