package tape

import (
	"encoding/binary"
	"math"
)

const episodeBytes = 35

func (e *Episode) encode(b []byte) {
	binary.LittleEndian.PutUint32(b, e.Env)
	binary.LittleEndian.PutUint16(b[4:], e.Agent)
	if e.Terminated {
		b[6] = 1
	}
	binary.LittleEndian.PutUint32(b[7:], e.Length)
	binary.LittleEndian.PutUint32(b[11:], e.Number)
	binary.LittleEndian.PutUint32(b[15:], math.Float32bits(e.Return))
	binary.LittleEndian.PutUint64(b[19:], e.PolicyVersion)
	binary.LittleEndian.PutUint64(b[27:], e.Step)
}

func (e *Episode) decode(b []byte) {
	*e = Episode{
		Env: binary.LittleEndian.Uint32(b), Agent: binary.LittleEndian.Uint16(b[4:]), Terminated: b[6] != 0,
		Length: binary.LittleEndian.Uint32(b[7:]), Number: binary.LittleEndian.Uint32(b[11:]),
		Return: math.Float32frombits(binary.LittleEndian.Uint32(b[15:])), PolicyVersion: binary.LittleEndian.Uint64(b[19:]),
		Step: binary.LittleEndian.Uint64(b[27:]),
	}
}
