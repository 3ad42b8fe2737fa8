package policy

import "math/bits"

// Keys of the two streams that are drawn from one run seed, so that they never share a number.
const (
	sampleStream  = 0
	shuffleStream = 0x9e3779b97f4a7c15
)

// philox is Philox4x32 with 10 rounds: a function of a counter and a key without any state (Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3", 2011).
func philox(counter [4]uint32, key [2]uint32) [4]uint32 {
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
	word := philox([4]uint32{uint32(step), uint32(step >> 32), env, draw}, philoxKey(seed^sampleStream))[0]
	return (float32(word>>9) + 0.5) * 0x1p-23
}

// Shuffle permutes rows in place by Fisher and Yates' method, as a function of run seed, dataset and epoch alone.
func Shuffle(seed uint64, dataset uint64, epoch uint32, rows []uint32) {
	key := philoxKey(seed ^ shuffleStream)
	var words [4]uint32
	for i := len(rows) - 1; i > 0; i-- {
		draw := uint32(len(rows) - 1 - i)
		if draw%4 == 0 {
			words = philox([4]uint32{draw / 4, epoch, uint32(dataset), uint32(dataset >> 32)}, key)
		}
		j, _ := bits.Mul32(words[draw%4], uint32(i+1))
		rows[i], rows[j] = rows[j], rows[i]
	}
}
