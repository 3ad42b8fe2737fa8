package arena

import "encoding/binary"

// poisonPattern is a quiet NaN as float32 and, twice, as float64, so that one read of a freed block spreads
// through a computation instead of looking like data.
const poisonPattern = 0x7ffda5a5

// poison fills a block, which starts on a page boundary.
func poison(block []byte) {
	var pattern [4]byte
	binary.LittleEndian.PutUint32(pattern[:], poisonPattern)
	for n := copy(block, pattern[:]); n < len(block); n *= 2 {
		copy(block[n:], block[:n])
	}
}
