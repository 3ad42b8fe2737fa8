package rollout

import (
	"encoding/binary"
	"encoding/hex"

	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/core/stat"
)

// maxVersions bounds how many versions are counted apart; more are counted together.
const maxVersions = 64

// version is what is known of one version of the environments: of all that come from one file.
type version struct {
	id                         uint64 // first 8 bytes of the SHA-256
	envSteps, episodes, faults *stat.Counter
	returns                    *stat.Gauge // sum of the returns of its episodes
}

// versionID is the first 8 bytes of a SHA-256 in hexadecimal.
func versionID(hash string) uint64 {
	b, err := hex.DecodeString(hash)
	if err != nil || len(b) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// versionOf returns the version with that hash. It is for the loop, and for Start.
func (c *Rollout) versionOf(hash string) *version {
	id := versionID(hash)
	if v := c.versions[id]; v != nil {
		return v
	}
	if len(c.versions) >= maxVersions {
		v := c.countVersion("others")
		v.id = id
		return v
	}
	v := c.countVersion(hash[:min(8, len(hash))])
	v.id = id
	if c.versions == nil {
		c.versions = map[uint64]*version{}
	}
	c.versions[id] = v
	return v
}

func (c *Rollout) countVersion(name string) *version {
	name = "version/" + name + "/"
	return &version{
		envSteps: c.h.Stats.Counter(name + "env_steps"), episodes: c.h.Stats.Counter(name + "episodes"),
		faults: c.h.Stats.Counter(name + "faults"), returns: c.h.Stats.Gauge(name + "return_sum"),
	}
}

// maker is who made a row, as far as it is counted.
type maker struct {
	version *version
	task    uint16 // see trajectory.Episode
	onTrial bool   // beside environments that are trained for; its reports count nowhere
}

// maxCast bounds how many makers of one block are told apart.
const maxCast = 1 << 15

// place returns where a maker stands in the block's cast.
func (s *split) place(m maker) uint16 {
	for i, have := range s.cast {
		if have == m {
			return uint16(i)
		}
	}
	if len(s.cast) < maxCast {
		s.cast = append(s.cast, m)
	}
	return uint16(len(s.cast) - 1)
}

// stampedBySeveral stands for the version of a block that no one version has made.
const stampedBySeveral = ^uint64(0)

// stamp writes down who made the rows of one environment before row t, so that somebody else can make those from there
// on.
func (s *split) stamp(env, t int) {
	if int(s.stamped[env]) >= t {
		return
	}
	made, m := s.tr.Uint64(trajectory.PluginVersion), s.ownerOf(env).maker
	place := s.place(m)
	for row := int(s.stamped[env]); row < t; row++ {
		made[row*s.n+env], s.makers[row*s.n+env] = m.version.id, place
	}
	s.stamped[env] = int32(t)
	s.mixed, s.stamps[s.loan.Block()] = true, stampedBySeveral
}

// stampBlock completes the column of a block. It reports whether one version has made all of it.
func (s *split) stampBlock() (one bool) {
	if !s.mixed && s.sides == nil {
		s.stampAll()
		return true
	}
	for env := range s.n {
		s.stamp(env, s.c.config.Horizon)
	}
	return false
}

// stampAll is for a block of one version. A block keeps what is written in it, unless it is poisoned when it is freed.
func (s *split) stampAll() {
	made, id, stamp := s.tr.Uint64(trajectory.PluginVersion), s.version.id, &s.stamps[s.loan.Block()]
	if *stamp == id && made[0] == id && made[len(made)-1] == id {
		return
	}
	for i := range made {
		made[i] = id
	}
	*stamp = id
}

// forgetStamps prepares for a new block.
func (s *split) forgetStamps() {
	if s.mixed {
		clear(s.stamped)
		s.cast, s.mixed = s.cast[:0], false
	}
}
