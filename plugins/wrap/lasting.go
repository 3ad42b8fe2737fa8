package wrap

import (
	"encoding/binary"

	"github.com/rlhost/rlhost/core/env"
)

// lasting is a layer whose state outlives episodes.
type lasting interface {
	layer
	// resume is load for an environment that begins an episode. It takes nothing that cannot be a state of the layer.
	resume(index int, src []byte)
}

var (
	_ env.Lasting = (*wrapped)(nil)
	_ env.Lasting = (*apart)(nil)
	_ lasting     = (*normalizeLayer)(nil)
)

// lastingHead is the length of the head of a layer's state: the sum of the wrapper's name and values, and the state's length.
const lastingHead = 8

// SaveLasting is that of the inner batch; see env.Lasting.
func (p *passing) SaveLasting(index int, dst []byte) []byte {
	if inner, ok := p.inner.(env.Lasting); ok {
		return inner.SaveLasting(index, dst)
	}
	return dst
}

// LoadLasting is that of the inner batch; see env.Lasting.
func (p *passing) LoadLasting(index int, kept []byte) (rest []byte) {
	if inner, ok := p.inner.(env.Lasting); ok {
		return inner.LoadLasting(index, kept)
	}
	return kept
}

// SaveLasting appends the lasting states of the inner batch and of the layer; see env.Lasting.
func (w *wrapped) SaveLasting(index int, dst []byte) []byte {
	dst = w.passing.SaveLasting(index, dst)
	l, ok := w.layer.(lasting)
	if !ok {
		return dst
	}
	n := l.bytes()
	dst = binary.LittleEndian.AppendUint32(dst, w.plugin.sum)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	at := len(dst)
	dst = append(dst, make([]byte, n)...)
	l.save(index, dst[at:])
	return dst
}

// LoadLasting gives the layer the first state that one of the same wrapper has saved; see env.Lasting.
func (w *wrapped) LoadLasting(index int, kept []byte) (rest []byte) {
	kept = w.passing.LoadLasting(index, kept)
	l, ok := w.layer.(lasting)
	if !ok {
		return kept
	}
	for rest = kept; len(rest) >= lastingHead; {
		sum, n := binary.LittleEndian.Uint32(rest), int(binary.LittleEndian.Uint32(rest[4:]))
		rest = rest[lastingHead:]
		if n > len(rest) {
			break
		}
		if sum == w.plugin.sum && n == l.bytes() {
			l.resume(index, rest[:n])
			return rest[n:]
		}
		rest = rest[n:]
	}
	return kept
}
