package policy

import "math/bits"

// Philox is Philox4x32 with 10 rounds: a function of a counter and a key without any state (Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3", 2011).
func Philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	for range 10 {
		hi0, lo0 := bits.Mul32(0xd2511f53, counter[0])
		hi1, lo1 := bits.Mul32(0xcd9e8d57, counter[2])
		counter = [4]uint32{hi1 ^ counter[1] ^ key[0], lo1, hi0 ^ counter[3] ^ key[1], lo0}
		key[0] += 0x9e3779b9
		key[1] += 0xbb67ae85
	}
	return counter
}

func philoxKey(seed uint64) [2]uint32 { return [2]uint32{uint32(seed), uint32(seed >> 32)} }

// Uniform returns the number in (0, 1) that decides an action: a multiple of 2^-23 plus 2^-24, a function of run
// seed, global environment, env step and the number of the draw within that env step alone. It is the first word
// of Philox with the counter {step low, step high, env, draw} and the seed as its key.
func Uniform(seed uint64, env uint32, step uint64, draw uint32) float32 {
	word := Philox([4]uint32{uint32(step), uint32(step >> 32), env, draw}, philoxKey(seed))[0]
	return (float32(word>>9) + 0.5) * 0x1p-23
}
