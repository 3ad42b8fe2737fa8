package guest

import (
	"encoding/binary"

	"github.com/rlhost/rlhost/core/env"

	"github.com/rlhost/rlhost/hostabi"
)

// entropyStream separates the random bytes of an environment from the numbers that it draws itself from its seed.
const entropyStream env.Stream = 0x3C6EF372FE94F82B

// SeedStreams begins the random streams: of each environment, and last the stream of calls about none.
func (i *Instance) SeedStreams(seeds ...uint64) {
	i.host.entropy = make([]uint64, len(seeds))
	for k, seed := range seeds {
		i.SeedStream(k, seed)
	}
}

// SeedStream restarts one random stream.
func (i *Instance) SeedStream(k int, seed uint64) { i.host.entropy[k] = entropyStream.Seed(seed) }

// fill writes the next bytes of the random stream of the environment that is being reset or stepped (splitmix64; Steele,
// Lea, Flood 2014).
func (i *Instance) fill(b []byte) {
	stream := &i.host.entropy[i.streamOf()]
	for len(b) > 0 {
		piece := b[:min(len(b), hostPiece)]
		b = b[len(piece):]
		charged := len(piece)
		for len(piece) >= 8 {
			binary.LittleEndian.PutUint64(piece, draw(stream))
			piece = piece[8:]
		}
		if len(piece) > 0 {
			var last [8]byte
			binary.LittleEndian.PutUint64(last[:], draw(stream))
			copy(piece, last[:])
		}
		i.work(charged)
	}
}

// streamOf returns the index of the random stream that a call draws from.
func (i *Instance) streamOf() int {
	if env := i.envOf(); env >= 0 {
		return env
	}
	return len(i.host.entropy) - 1
}

// envOf returns the index in its batch of the environment that a call is working on, -1 if none or not known.
func (i *Instance) envOf() int {
	envs := len(i.host.entropy) - 1
	if !perEnv(i.calling) {
		return -1
	}
	if envs == 1 {
		return 0
	}
	if env := i.currentEnv(); env < envs {
		return max(env, -1)
	}
	return -1
}

// perEnv reports whether an export works on one environment after the other.
func perEnv(export string) bool {
	return export == hostabi.ExportStep || export == hostabi.ExportStepRange || export == hostabi.ExportReset
}

// currentEnv asks the guest, in the middle of a call, for the index of its current environment; -1 if it does not say.
func (i *Instance) currentEnv() int {
	if !i.module.File.Exports(hostabi.ExportCurrentEnv) {
		return -1
	}
	if i.current == nil {
		i.current = i.wasm.ExportedFunction(hostabi.ExportCurrentEnv)
	}
	call := i.calling
	i.calling = hostabi.ExportCurrentEnv // which is about no environment, so that a guest that calls the host in turn is not asked again
	err := i.current.CallWithStack(i.ctx, i.answer[:])
	i.calling = call
	if err != nil {
		return -1
	}
	return int(int32(uint32(i.answer[0])))
}

// EnvAfter asks the guest, after a call of that export, for the index of the environment that it worked on last; -1 if it does not say.
func (i *Instance) EnvAfter(export string) int {
	if !perEnv(export) || !i.module.File.Exports(hostabi.ExportCurrentEnv) {
		return -1
	}
	n, err := i.Call(hostabi.ExportCurrentEnv, lastWords)
	if err != nil {
		return -1
	}
	return int(n)
}

func draw(stream *uint64) uint64 {
	*stream += 0x9E3779B97F4A7C15
	z := *stream
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
