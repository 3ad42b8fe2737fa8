package cartpole

import (
	"math"

	"github.com/rlhost/rlhost/sdk"
)

// Gymnasium's constants: gravity 9.8, cart 1.0, pole 0.1, half length 0.5, force 10, 0.02 s a step. Masses and
// lengths occur folded into these, each rounded once.
const (
	gravity        = 9.8
	leftBits       = 0xc111745d // -10 / 1.1, force over total mass; action 1 turns the sign
	poleRatio      = 0.05 / 1.1 // pole mass times half length, over total mass
	lengthFull     = 0.5 * 4 / 3
	tau            = 0.02
	xLimitBits     = 0x4019999a // 2.4
	thetaLimitBits = 0x3e567750 // 12 degrees
	absBits        = 0x7fffffff
)

// Bounds of the first state of an episode, and Gymnasium's time limit.
const (
	startLow        = -0.05
	startHigh       = 0.05
	DefaultMaxSteps = 500
	ObsDim          = 4
)

// State is one cart with its pole. Steps counts steps of the current episode.
type State struct {
	X, XDot, Theta, ThetaDot float32
	Steps                    uint32
}

// step advances the state. The explicit conversions forbid fused multiply-add on machines that have it, so
// that every machine rounds alike. Limits are compared as integers: a state that is not a number ends too.
func (s *State) step(action int32, maxSteps uint32) (terminated, truncated bool) {
	theta, thetaDot := s.Theta, s.ThetaDot
	force := math.Float32frombits(uint32(action)<<31 ^ leftBits)
	square := theta * theta
	sine := theta * (1 + float32(square*(-1.0/6+float32(square*(1.0/120+float32(square*(-1.0/5040)))))))
	cosine := 1 + float32(square*(-0.5+float32(square*(1.0/24+float32(square*(-1.0/720))))))
	push := force + float32(float32(poleRatio*float32(thetaDot*thetaDot))*sine)
	thetaAcc := (float32(gravity*sine) - float32(cosine*push)) / (lengthFull - float32(poleRatio*float32(cosine*cosine)))
	xAcc := push - float32(poleRatio*float32(thetaAcc*cosine))
	s.X += float32(tau * s.XDot)
	s.Theta = theta + float32(tau*thetaDot)
	s.XDot += float32(tau * xAcc)
	s.ThetaDot = thetaDot + float32(tau*thetaAcc)
	s.Steps++
	terminated = math.Float32bits(s.X)&absBits > xLimitBits || math.Float32bits(s.Theta)&absBits > thetaLimitBits
	return terminated, s.Steps >= maxSteps
}

// reset draws a new state, in the order of the observation.
func (s *State) reset(rng *sdk.Rand) {
	s.X = rng.Uniform(startLow, startHigh)
	s.XDot = rng.Uniform(startLow, startHigh)
	s.Theta = rng.Uniform(startLow, startHigh)
	s.ThetaDot = rng.Uniform(startLow, startHigh)
	s.Steps = 0
}

// write puts the observation into obs [ObsDim].
func (s *State) write(obs []float32) {
	_ = obs[3]
	obs[0], obs[1], obs[2], obs[3] = s.X, s.XDot, s.Theta, s.ThetaDot
}

// Batch is N carts that restart in the step in which they end. It is what a native program would write for
// itself, and the measure that guests are held against. Not safe for concurrent use.
type Batch struct {
	maxSteps uint32
	states   []State
	rngs     []sdk.Rand
}

// NewBatch returns n environments that truncate after maxSteps. Reset must come first.
func NewBatch(n int, maxSteps uint32) *Batch {
	return &Batch{maxSteps, make([]State, n), make([]sdk.Rand, n)}
}

// Reset starts every environment's stream from its seed, and an episode. seeds [N], obs [N, ObsDim].
func (b *Batch) Reset(seeds []uint64, obs []float32) {
	for i := range b.states {
		b.rngs[i] = sdk.NewRand(seeds[i])
		b.states[i].reset(&b.rngs[i])
		b.states[i].write(obs[ObsDim*i:])
	}
}

// Step advances every environment. Where an episode ends, obs is the first of the next and final the last of
// the old one; other rows of final are left alone. Terminated wins over truncated. actions, rewards,
// terminated and truncated are [N], obs and final [N, ObsDim]. It allocates nothing.
func (b *Batch) Step(actions []int32, obs, rewards []float32, terminated, truncated []uint8, final []float32) {
	n := len(b.states)
	actions, rewards, terminated, truncated = actions[:n], rewards[:n], terminated[:n], truncated[:n]
	obs, final = obs[:ObsDim*n], final[:ObsDim*n]
	for i := range b.states {
		s := &b.states[i]
		over, late := s.step(actions[i], b.maxSteps)
		rewards[i] = 1
		terminated[i], truncated[i] = 0, 0
		if over || late {
			if over {
				terminated[i] = 1
			} else {
				truncated[i] = 1
			}
			s.write(final[ObsDim*i : ObsDim*i+ObsDim])
			s.reset(&b.rngs[i])
		}
		s.write(obs[ObsDim*i : ObsDim*i+ObsDim])
	}
}
