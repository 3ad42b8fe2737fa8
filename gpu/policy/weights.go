package policy

import (
	"encoding/binary"
	"fmt"
)

// Weights is what a learner publishes and actors load: a view, valid as long as the memory it was made from.
type Weights struct {
	Version           uint64
	Params            []float32 // canonical vector
	ObsMean, ObsScale []float32 // length Obs with NormalizeObs, else empty
}

// weightsHead is the length of the head of a weights block: version u64, parameters u32, observed elements u32.
const weightsHead = 64

// WeightsBytes returns the size of a block that holds the weights of a network.
func WeightsBytes(n *Network) int {
	return weightsHead + 4*n.ParamCount() + 8*n.normalised()
}

// normalised returns the number of observed elements that have statistics in the weights.
func (n *Network) normalised() int {
	if n.NormalizeObs {
		return n.Obs
	}
	return 0
}

// FormatWeights lays out the weights of a network in a block and returns the view to fill in.
func FormatWeights(n *Network, block []byte, version uint64) (Weights, error) {
	if len(block) < WeightsBytes(n) {
		return Weights{}, fmt.Errorf("weights of %d bytes do not fit a block of %d", WeightsBytes(n), len(block))
	}
	binary.LittleEndian.PutUint64(block[0:], version)
	binary.LittleEndian.PutUint32(block[8:], uint32(n.ParamCount()))
	binary.LittleEndian.PutUint32(block[12:], uint32(n.normalised()))
	return weightsIn(n, block), nil
}

// ReadWeights returns the view of weights that FormatWeights laid out, checking that they are of this network.
func ReadWeights(n *Network, block []byte) (Weights, error) {
	if len(block) < WeightsBytes(n) {
		return Weights{}, fmt.Errorf("weights of %d bytes do not fit a block of %d", WeightsBytes(n), len(block))
	}
	params, obs := binary.LittleEndian.Uint32(block[8:]), binary.LittleEndian.Uint32(block[12:])
	if params != uint32(n.ParamCount()) || obs != uint32(n.normalised()) {
		return Weights{}, fmt.Errorf("weights have %d parameters and %d statistics, the network %d and %d",
			params, obs, n.ParamCount(), n.normalised())
	}
	return weightsIn(n, block), nil
}

func weightsIn(n *Network, block []byte) Weights {
	p, o := n.ParamCount(), n.normalised()
	f := float32s(block[weightsHead:WeightsBytes(n)])
	return Weights{
		Version: binary.LittleEndian.Uint64(block),
		Params:  f[:p:p], ObsMean: f[p : p+o : p+o], ObsScale: f[p+o : p+2*o : p+2*o],
	}
}
