package rollout

import (
	"encoding/binary"
	"encoding/hex"

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

// maker says what made a row, as far as it is counted.
type maker struct {
	version *version
	task    uint16 // see trajectory.Episode
	onTrial bool   // beside environments that are trained for; its reports count nowhere
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
