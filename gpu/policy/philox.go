package policy

import (
	"math/bits"

	"github.com/rlhost/rlhost/gpu/policy/head"
)

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

// Draws fills u with the random numbers of an action in an env step and returns where the next action's begin. Number i of a
// discrete action is the first word of draw first+i; numbers 2k and 2k+1 of a Box are the first two words of draw first+k.
func Draws(d head.Dist, seed uint64, env uint32, step uint64, first uint32, u []float32) (next uint32) {
	if !d.Continuous() {
		for i := range u {
			u[i] = Uniform(seed, env, step, first+uint32(i))
		}
		return first + uint32(len(u))
	}
	for i := 0; i < len(u); i += 2 {
		words := Philox([4]uint32{uint32(step), uint32(step >> 32), env, first + uint32(i/2)}, philoxKey(seed))
		u[i], u[i+1] = uniform(words[0]), uniform(words[1])
	}
	return first + uint32(len(u)/2)
}

// uniform makes a number of a word.
func uniform(word uint32) float32 { return (float32(word>>9) + 0.5) * 0x1p-23 }

func philoxKey(seed uint64) [2]uint32 { return [2]uint32{uint32(seed), uint32(seed >> 32)} }

// Uniform returns the number in (0, 1) that decides an action: a multiple of 2^-23 plus 2^-24, a function of run
// seed, global environment, env step and the number of the draw within that env step alone. It is the first word
// of Philox with the counter {step low, step high, env, draw} and the seed as its key.
func Uniform(seed uint64, env uint32, step uint64, draw uint32) float32 {
	word := Philox([4]uint32{uint32(step), uint32(step >> 32), env, draw}, philoxKey(seed))[0]
	return uniform(word)
}
