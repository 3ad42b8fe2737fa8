package session

import (
	"encoding/binary"
	"math"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// element returns one element of a matrix as a number that JSON can hold: an infinity becomes the largest number of its sign, NaN 0.
func element(m trajectory.Matrix, at int) float64 {
	if at < 0 || at > len(m.Data)-m.DType.Bytes() {
		return 0
	}
	b := m.Data[at:]
	x := 0.0
	switch m.DType {
	case hostabi.F32:
		x = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case hostabi.F64:
		x = float64At(b, 0)
	case hostabi.I32:
		x = float64(int32(binary.LittleEndian.Uint32(b)))
	case hostabi.I64:
		x = float64(int64(binary.LittleEndian.Uint64(b)))
	case hostabi.I16:
		x = float64(int16(binary.LittleEndian.Uint16(b)))
	case hostabi.I8:
		x = float64(int8(b[0]))
	case hostabi.U8, hostabi.Bool:
		x = float64(b[0])
	}
	switch {
	case math.IsNaN(x):
		return 0
	case math.IsInf(x, 1):
		return math.MaxFloat64
	case math.IsInf(x, -1):
		return -math.MaxFloat64
	}
	return x
}

func float64At(b []byte, at int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(b[at:]))
}
