package ppo

import (
	"math/bits"

	"github.com/rlhost/rlhost/gpu/policy"
)

// shuffleStream separates the numbers of Shuffle from the numbers of policy.Uniform and policy.Init.
const shuffleStream = 0x9e3779b97f4a7c15

// Shuffle permutes rows in place by Fisher and Yates' method, as a function of run seed, dataset and epoch alone.
func Shuffle(seed uint64, dataset uint64, epoch uint32, rows []uint32) {
	seed ^= shuffleStream
	key := [2]uint32{uint32(seed), uint32(seed >> 32)}
	var words [4]uint32
	for i := len(rows) - 1; i > 0; i-- {
		draw := uint32(len(rows) - 1 - i)
		if draw%4 == 0 {
			words = policy.Philox([4]uint32{draw / 4, epoch, uint32(dataset), uint32(dataset >> 32)}, key)
		}
		j, _ := bits.Mul32(words[draw%4], uint32(i+1))
		rows[i], rows[j] = rows[j], rows[i]
	}
}
