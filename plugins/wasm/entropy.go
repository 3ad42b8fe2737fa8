package wasm

import (
	"encoding/binary"
	"fmt"

	"github.com/rlhost/rlhost/core/env"

	"github.com/rlhost/rlhost/hostabi"
)

// entropyStream separates the random bytes of an environment from the numbers that it draws itself from its seed.
const entropyStream env.Stream = 0x3C6EF372FE94F82B

// checkEntropy rejects several environments in an instance that imports entropy and does not export which of them it is
// working on: an environment's bytes would depend on the others in its instance.
func (p *Plugin) checkEntropy(o *env.Options) error {
	if o.Envs == 1 || p.exports[hostabi.ExportCurrentEnv] {
		return nil
	}
	for _, f := range p.compiled.ImportedFunctions() {
		if module, name, _ := f.Import(); module == hostabi.ImportModule && name == hostabi.ImportEntropy {
			return fmt.Errorf("%w: %s: %s imports %s.%s and does not export %s: an instance of it has one environment",
				env.ErrUnsupported, o.Name, p.path, module, name, hostabi.ExportCurrentEnv)
		}
	}
	return nil
}

// beginEntropy begins the random streams of a batch.
func (h *hostState) beginEntropy(o *env.Options) {
	h.entropy = make([]uint64, o.Envs+1)
	for index := range o.Envs {
		h.entropy[index] = entropyStream.Seed(env.Seed(o.Seed, o.FirstEnv+index))
	}
	h.entropy[o.Envs] = entropyStream.Seed(o.Seed)
}

// seedEntropy begins the random streams of environments anew, with their own ones.
func (h *hostState) seedEntropy(mask []uint8, seeds []uint64) {
	for env, seed := range seeds {
		if mask == nil || mask[env] != 0 {
			h.entropy[env] = entropyStream.Seed(seed)
		}
	}
}

// fill writes the next bytes of the random stream of the environment that is being reset or stepped (splitmix64; Steele,
// Lea, Flood 2014).
func (i *instance) fill(b []byte) {
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
func (i *instance) streamOf() int {
	if env := i.envOf(); env >= 0 {
		return env
	}
	return len(i.host.entropy) - 1
}

// envOf returns the index in its batch of the environment that a call is working on, -1 if none or not known.
func (i *instance) envOf() int {
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

// currentEnv asks the guest, in the middle of a call, for the index of its current environment; -1 if it does not say.
func (i *instance) currentEnv() int {
	if !i.plugin.exports[hostabi.ExportCurrentEnv] {
		return -1
	}
	if i.current == nil {
		i.current = i.module.ExportedFunction(hostabi.ExportCurrentEnv)
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

func draw(stream *uint64) uint64 {
	*stream += 0x9E3779B97F4A7C15
	z := *stream
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
