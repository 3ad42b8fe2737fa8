package env

import (
	"encoding/binary"
	"fmt"
)

// AppendLasting appends an environment's lasting state to other environments': its length in four bytes, little endian, and so many
// bytes. It appends nothing for an Env that keeps nothing.
func AppendLasting(all []byte, e Env, index int) []byte {
	at := len(all)
	all = append(all, 0, 0, 0, 0)
	if l, ok := e.(Lasting); ok {
		all = l.SaveLasting(index, all)
	}
	binary.LittleEndian.PutUint32(all[at:], uint32(len(all)-at-4))
	return all
}

// SplitLasting splits the output of AppendLasting by environment.
func SplitLasting(all []byte) (kept [][]byte, err error) {
	for len(all) > 0 {
		if len(all) < 4 || uint64(binary.LittleEndian.Uint32(all)) > uint64(len(all)-4) {
			return nil, fmt.Errorf("what outlives episodes ends within the part of environment %d", len(kept))
		}
		n := 4 + int(binary.LittleEndian.Uint32(all))
		kept, all = append(kept, all[4:n]), all[n:]
	}
	return kept, nil
}
