package policy

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Weights are published by a learner and loaded by actors: a view, valid as long as the memory it was made from.
type Weights struct {
	Version           uint64
	Params            []float32 // canonical vector
	ObsMean, ObsScale []float32 // running statistics, Network.Stats long
}

// WeightsFormat is how the weights of one network lie in a block: policy version u64, parameters u32, observed elements
// with statistics u32, the network's hash, zero up to 64 bytes; then parameters, means and scales.
type WeightsFormat struct {
	params, obs int
	hash        [sha256.Size]byte
}

const (
	weightsHead = 64
	weightsHash = 16 // where the hash lies
)

// Weights returns the format of a valid network's weights.
func (n *Network) Weights() WeightsFormat {
	return WeightsFormat{params: n.ParamCount(), obs: n.Stats(), hash: n.Hash()}
}

// Bytes returns the size of a block.
func (f *WeightsFormat) Bytes() int { return weightsHead + 4*f.params + 8*f.obs }

// Format lays out weights in a block and returns the view to fill in.
func (f *WeightsFormat) Format(block []byte, version uint64) (Weights, error) {
	if len(block) < f.Bytes() {
		return Weights{}, fmt.Errorf("weights of %d bytes do not fit a block of %d", f.Bytes(), len(block))
	}
	binary.LittleEndian.PutUint64(block[0:], version)
	binary.LittleEndian.PutUint32(block[8:], uint32(f.params))
	binary.LittleEndian.PutUint32(block[12:], uint32(f.obs))
	clear(block[weightsHash:weightsHead])
	copy(block[weightsHash:], f.hash[:])
	return f.in(block), nil
}

// Read returns the view of weights that Format laid out, checking that they are of this network. Publishers that know no
// networks leave the hash zero.
func (f *WeightsFormat) Read(block []byte) (Weights, error) {
	if len(block) < f.Bytes() {
		return Weights{}, fmt.Errorf("weights of %d bytes do not fit a block of %d", f.Bytes(), len(block))
	}
	params, obs := binary.LittleEndian.Uint32(block[8:]), binary.LittleEndian.Uint32(block[12:])
	if params != uint32(f.params) || obs != uint32(f.obs) {
		return Weights{}, fmt.Errorf("weights have %d parameters and %d statistics, the network %d and %d",
			params, obs, f.params, f.obs)
	}
	if hash := [sha256.Size]byte(block[weightsHash:]); hash != f.hash && hash != [sha256.Size]byte{} {
		return Weights{}, fmt.Errorf("weights are of the network %x, this one is %x", hash[:6], f.hash[:6])
	}
	return f.in(block), nil
}

func (f *WeightsFormat) in(block []byte) Weights {
	p, o := f.params, f.obs
	x := float32s(block[weightsHead:f.Bytes()])
	return Weights{
		Version: binary.LittleEndian.Uint64(block),
		Params:  x[:p:p], ObsMean: x[p : p+o : p+o], ObsScale: x[p+o : p+2*o : p+2*o],
	}
}

// Check reports whether weights have the sizes of the format.
func (f *WeightsFormat) Check(w *Weights) error {
	if len(w.Params) != f.params {
		return fmt.Errorf("weights of %d parameters, the network has %d", len(w.Params), f.params)
	}
	if f.obs > 0 && (len(w.ObsMean) != f.obs || len(w.ObsScale) != f.obs) {
		return fmt.Errorf("weights with %d means and %d scales, the network normalises %d elements",
			len(w.ObsMean), len(w.ObsScale), f.obs)
	}
	return nil
}
