// Command tuple is tuple@1 in Go: it writes the same bits.
package main

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/rlhost/rlhost/sdk"
	"github.com/rlhost/rlhost/sdk/wasm"
)

const lampCount, gearCount, lowest = 3, 3, -1

type tuple struct {
	lamps               [lampCount]int32
	gear, stuck, barred int32
	wheel               float32
}

func newTuple(*sdk.Config) (*tuple, error) { return &tuple{}, nil }

func (p *tuple) Reset(rng *sdk.Rand, obs *sdk.Observed) {
	seen := obs.Float32[0]
	bits := rng.Next()
	for i := range p.lamps {
		p.lamps[i] = int32(bits >> i & 1)
		seen[i] = float32(p.lamps[i])
	}
	gear := int32(rng.Below(gearCount))
	p.gear = gear + lowest
	p.stuck = int32(rng.Below(lampCount))
	p.barred = (gear+1+int32(rng.Below(gearCount-1)))%gearCount + lowest
	p.wheel = rng.Uniform(-1, 1)
	seen[lampCount], seen[lampCount+1] = float32(p.gear), p.wheel
}

func (p *tuple) ActionMask(legal []uint8) {
	for k := range legal {
		switch lamp, gear := int32(k/2), int32(k-2*lampCount+lowest); {
		case lamp < lampCount && lamp == p.stuck:
			legal[k] = uint8(1 ^ p.lamps[lamp] ^ int32(k%2))
		case lamp >= lampCount && gear == p.barred:
			legal[k] = 0
		default:
			legal[k] = 1
		}
	}
}

func (p *tuple) Step(rng *sdk.Rand, action *sdk.Taken, obs *sdk.Observed) sdk.Result {
	right := 0
	if sdk.TakenAt[int32](action, "drive/gear")[0] == p.gear {
		right++
	}
	for i, on := range sdk.TakenAt[int32](action, "lamps") {
		if on == p.lamps[i] {
			right++
		}
	}
	away := sdk.TakenAt[float32](action, "drive/wheel")[0] - p.wheel
	near := max(1-max(away, -away), 0)
	p.Reset(rng, obs)
	return sdk.Result{Reward: (float32(right) + near) / (lampCount + 2), Terminated: true}
}

func (p *tuple) AppendBinary(b []byte) ([]byte, error) {
	for _, x := range append(p.lamps[:], p.gear, p.stuck, p.barred) {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(p.wheel)), nil
}

func (p *tuple) UnmarshalBinary(b []byte) error {
	if len(b) != 4*(lampCount+4) {
		return errors.New("no state of a tuple")
	}
	word := func(i int) int32 { return int32(binary.LittleEndian.Uint32(b[4*i:])) }
	for i := range p.lamps {
		p.lamps[i] = word(i)
	}
	p.gear, p.stuck, p.barred = word(lampCount), word(lampCount+1), word(lampCount+2)
	p.wheel = math.Float32frombits(uint32(word(lampCount + 3)))
	return nil
}

func init() {
	wasm.ServeComposite(sdk.Spec{
		Name: "tuple@1", EpisodeLimit: 1, Observations: []sdk.Space{sdk.Box(-1, 1, lampCount+2)},
		Actions: []sdk.Space{
			sdk.MultiBinary(lampCount).Named("lamps"), sdk.Discrete(gearCount).From(lowest).Named("drive/gear"), sdk.Box(-1, 1, 1).Named("drive/wheel"),
		},
	}, newTuple)
}

func main() {}
