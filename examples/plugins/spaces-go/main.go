// Spaces: the environment of sanity-c/spaces.c in Go, bit for bit. Its three observations are found by name.
package main

import (
	"encoding/binary"
	"errors"

	"github.com/rlhost/rlhost/sdk"
	"github.com/rlhost/rlhost/sdk/wasm"
)

const (
	side, clues = 5, 3
	most        = 10
)

type spaces struct{ Answer [3]int32 }

func answer(yes bool) int32 {
	if yes {
		return 1
	}
	return 0
}

func (s *spaces) Reset(rng *sdk.Rand, obs *sdk.Observed) {
	white, sum, bits := 0, 0, rng.Next()
	picture := sdk.ObservedAt[uint8](obs, "picture")
	for i := range picture {
		lit := bits >> i & 1
		picture[i] = uint8(255 * lit)
		white += int(lit)
	}
	numbers := sdk.ObservedAt[int8](obs, "notes/numbers")
	for i := range numbers {
		numbers[i] = int8(int(rng.Below(2*most+1)) - most)
		sum += int(numbers[i])
	}
	clue := sdk.ObservedAt[int32](obs, "notes/clue")
	clue[0] = int32(rng.Below(clues))
	s.Answer = [...]int32{answer(white > side*side/2), answer(sum > 0), clue[0]}
}

// Step shows the next questions already: nobody needs what is seen at the end of an episode.
func (s *spaces) Step(rng *sdk.Rand, action []int32, obs *sdk.Observed) sdk.Result {
	right := 0
	for i, given := range action {
		if given == s.Answer[i] {
			right++
		}
	}
	s.Reset(rng, obs)
	return sdk.Result{Reward: float32(right) / 3, Terminated: true}
}

func (s *spaces) AppendBinary(b []byte) ([]byte, error) {
	return binary.Append(b, binary.LittleEndian, s)
}

func (s *spaces) UnmarshalBinary(b []byte) error {
	if len(b) != binary.Size(s) {
		return errors.New("not saved spaces")
	}
	_, err := binary.Decode(b, binary.LittleEndian, s)
	return err
}

func init() {
	wasm.ServeDict(sdk.Spec{
		Name: "spaces@1", Action: sdk.MultiDiscrete(2, 2, clues), EpisodeLimit: 1,
		Observations: []sdk.Space{
			sdk.Image(side, side, 1).As("picture", sdk.Uint8), sdk.Box(-most, most, 5).As("notes/numbers", sdk.Int8),
			sdk.Discrete(clues).As("notes/clue", sdk.Int32),
		},
	}, func(*sdk.Config) (*spaces, error) { return &spaces{}, nil })
}

func main() {}
