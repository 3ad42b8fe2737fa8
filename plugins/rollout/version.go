package rollout

import (
	"encoding/binary"
	"encoding/hex"

	"github.com/rlhost/rlhost/core/rollout"
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

// madeBy returns the version that the column of the block names.
func (c *Rollout) madeBy(id uint64) *version {
	if v := c.versions[id]; v != nil {
		return v
	}
	return c.countVersion("others")
}

// stamp writes down who made the rows of one environment before row t, so that somebody else can make those from there
// on.
func (s *split) stamp(env, t int) {
	if int(s.stamped[env]) >= t {
		return
	}
	made := s.tr.Uint64(rollout.ColPluginVersion)
	id := s.ownerOf(env).version.id
	for row := int(s.stamped[env]); row < t; row++ {
		made[row*s.n+env] = id
	}
	s.stamped[env] = int32(t)
	s.mixed = true
}

// stampBlock completes the column of a block. It reports whether one version has made all of it.
func (s *split) stampBlock() (one bool) {
	if !s.mixed && s.sides == nil {
		made := s.tr.Uint64(rollout.ColPluginVersion)
		for i := range made {
			made[i] = s.version.id
		}
		return true
	}
	for env := range s.n {
		s.stamp(env, s.c.config.Horizon)
	}
	return false
}

// forgetStamps prepares for a new block.
func (s *split) forgetStamps() {
	if s.mixed {
		clear(s.stamped)
		s.mixed = false
	}
}
