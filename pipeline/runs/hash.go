package runs

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"math"

	"github.com/rlhost/rlhost/core/component"
)

// ParamsHash returns the SHA-256 of a parameter vector as little-endian float32, in hexadecimal: equal hashes
// mean equal parameters, bit for bit. Vectors given one after the other hash as their concatenation.
func ParamsHash(vectors ...[]float32) string {
	h := sha256.New()
	for _, v := range vectors {
		hashFloats(h, v)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func hashFloats(h hash.Hash, v []float32) {
	var chunk [4096]byte
	for len(v) > 0 {
		n := min(len(v), len(chunk)/4)
		for i, x := range v[:n] {
			binary.LittleEndian.PutUint32(chunk[4*i:], math.Float32bits(x))
		}
		h.Write(chunk[:4*n])
		v = v[n:]
	}
}

// encodeMeta returns a state's small values as compact JSON: Meta or, in a state that was loaded, RawMeta.
func encodeMeta(s component.State) (json.RawMessage, error) {
	raw := s.RawMeta
	if s.Meta != nil || raw == nil {
		var err error
		if raw, err = json.Marshal(s.Meta); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	err := json.Compact(&b, raw)
	return b.Bytes(), err
}
