package hostabi

import (
	"encoding/binary"
	"math"
)

// Describe returns the description as an environment writes it: a Spec and its tensors. ParseSpec is its
// inverse.
func (s *EnvSpec) Describe() []byte {
	le := binary.LittleEndian
	b := make([]byte, SpecBytes+len(s.Tensors)*TensorBytes)
	le.PutUint32(b[0:], SpecBytes)
	le.PutUint16(b[4:], s.ABI.Major)
	le.PutUint16(b[6:], s.ABI.Minor)
	le.PutUint32(b[8:], uint32(s.Caps))
	le.PutUint32(b[12:], uint32(s.Agents))
	le.PutUint32(b[16:], uint32(s.MaxEnvs))
	le.PutUint32(b[20:], uint32(s.EpisodeLimit))
	le.PutUint32(b[24:], uint32(len(s.Tensors)))
	le.PutUint32(b[28:], uint32(s.Autoreset))
	copy(b[32:64], s.Name)
	for i := range s.Tensors {
		writeTensor(b[SpecBytes+i*TensorBytes:], &s.Tensors[i])
	}
	return b
}

// writeTensor is the inverse of parseTensor.
func writeTensor(b []byte, d *TensorDesc) {
	le := binary.LittleEndian
	le.PutUint16(b[0:], uint16(d.Role))
	le.PutUint16(b[2:], d.Index)
	b[4], b[5] = byte(d.DType), d.Rank
	le.PutUint16(b[6:], d.Flags)
	for i, n := range d.Shape {
		le.PutUint32(b[8+4*i:], n)
	}
	le.PutUint32(b[32:], math.Float32bits(d.Low))
	le.PutUint32(b[36:], math.Float32bits(d.High))
	le.PutUint32(b[40:], d.N)
	copy(b[44:64], d.Name[:])
}
