package cartpole

import (
	"encoding/binary"
	"errors"
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

// write puts the observation into obs [ObsDim].
func (s *State) write(obs []float32) {
	_ = obs[3]
	obs[0], obs[1], obs[2], obs[3] = s.X, s.XDot, s.Theta, s.ThetaDot
}

// Carts is N environments. Each waits for its reset when its episode ends. The guest serves them.
type Carts struct {
	maxSteps uint32
	states   []State
}

var _ sdk.Batch[int32, float32] = (*Carts)(nil)

// NewCarts returns n environments that truncate after maxSteps.
func NewCarts(n int, maxSteps uint32) *Carts { return &Carts{maxSteps, make([]State, n)} }

// Reset starts an episode of environment i, whose state it draws in the order of the observation. obs [ObsDim].
func (c *Carts) Reset(i int, rng *sdk.Rand, obs []float32) {
	s := &c.states[i]
	s.X = rng.Uniform(startLow, startHigh)
	s.XDot = rng.Uniform(startLow, startHigh)
	s.Theta = rng.Uniform(startLow, startHigh)
	s.ThetaDot = rng.Uniform(startLow, startHigh)
	s.Steps = 0
	s.write(obs)
}

// Step advances the environments from first on, as sdk.Batch says.
//
// The explicit conversions forbid fused multiply-add on machines that have it, so that every machine rounds alike.
// Limits are compared by the sign of a difference of bit patterns: no branch, and a state that is not a number also
// ends its episode. Everything is in the loop because a call costs half a step in a guest.
func (c *Carts) Step(first int, _ []sdk.Rand, rows sdk.Rows[int32, float32]) {
	n := len(rows.Rewards)
	states := c.states[first : first+n]
	actions, obs := rows.Actions[:n], rows.Obs[:ObsDim*n]
	rewards, terminated, truncated := rows.Rewards[:n], rows.Terminated[:n], rows.Truncated[:n]
	for i := range states {
		s := &states[i]
		x, xDot, theta, thetaDot, steps := s.X, s.XDot, s.Theta, s.ThetaDot, s.Steps+1
		force := math.Float32frombits(uint32(actions[i])<<31 ^ leftBits)
		square := theta * theta
		sine := theta * (1 + float32(square*(-1.0/6+float32(square*(1.0/120+float32(square*(-1.0/5040)))))))
		cosine := 1 + float32(square*(-0.5+float32(square*(1.0/24+float32(square*(-1.0/720))))))
		push := force + float32(float32(poleRatio*float32(thetaDot*thetaDot))*sine)
		thetaAcc := (float32(gravity*sine) - float32(cosine*push)) / (lengthFull - float32(poleRatio*float32(cosine*cosine)))
		xAcc := push - float32(poleRatio*float32(thetaAcc*cosine))
		x += float32(tau * xDot)
		theta += float32(tau * thetaDot)
		xDot += float32(tau * xAcc)
		thetaDot += float32(tau * thetaAcc)
		s.X, s.XDot, s.Theta, s.ThetaDot, s.Steps = x, xDot, theta, thetaDot, steps
		row := (*[ObsDim]float32)(obs[ObsDim*i:])
		row[0], row[1], row[2], row[3] = x, xDot, theta, thetaDot
		far, tilt := math.Float32bits(x)&absBits, math.Float32bits(theta)&absBits
		rewards[i] = 1
		terminated[i] = uint8(((xLimitBits - far) | (thetaLimitBits - tilt)) >> 31)
		truncated[i] = uint8((c.maxSteps - 1 - steps) >> 31)
	}
}

// AppendEnv appends environment i as x, x_dot, theta, theta_dot (f32) and steps (u32), little endian. The SDK
// adds flags (u32) and random stream (u64), which makes 32 bytes.
func (c *Carts) AppendEnv(dst []byte, i int) ([]byte, error) {
	s := &c.states[i]
	for _, v := range [...]float32{s.X, s.XDot, s.Theta, s.ThetaDot} {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
	}
	return binary.LittleEndian.AppendUint32(dst, s.Steps), nil
}

// LoadEnv is the inverse of AppendEnv.
func (c *Carts) LoadEnv(i int, data []byte) error {
	if len(data) != 20 {
		return errors.New("a saved cart has 20 bytes")
	}
	word := func(k int) uint32 { return binary.LittleEndian.Uint32(data[4*k:]) }
	number := func(k int) float32 { return math.Float32frombits(word(k)) }
	if word(4) > c.maxSteps {
		return errors.New("a saved cart is older than max_steps")
	}
	c.states[i] = State{number(0), number(1), number(2), number(3), word(4)}
	return nil
}

// Batch is N environments that restart in the step that ends them, with their random streams. A native program would
// write it so, and guests are compared with it. Not safe for concurrent use.
type Batch struct {
	carts *Carts
	rngs  []sdk.Rand
}

// NewBatch returns n environments that truncate after maxSteps. Reset must come first.
func NewBatch(n int, maxSteps uint32) *Batch {
	return &Batch{NewCarts(n, maxSteps), make([]sdk.Rand, n)}
}

// Reset starts every environment's stream from its seed, and an episode. seeds [N], obs [N, ObsDim].
func (b *Batch) Reset(seeds []uint64, obs []float32) {
	for i := range b.rngs {
		b.rngs[i] = sdk.NewRand(seeds[i])
		b.carts.Reset(i, &b.rngs[i], obs[ObsDim*i:])
	}
}

// Step advances every environment. Where an episode ends, obs is the first of the next and final the last of
// the old one; other rows of final are left alone. Terminated wins over truncated. actions, rewards,
// terminated and truncated are [N], obs and final [N, ObsDim]. It allocates nothing.
func (b *Batch) Step(actions []int32, obs, rewards []float32, terminated, truncated []uint8, final []float32) {
	n := len(b.rngs)
	actions, rewards, terminated, truncated = actions[:n], rewards[:n], terminated[:n], truncated[:n]
	b.carts.Step(0, b.rngs, sdk.Rows[int32, float32]{
		Actions: actions, Obs: obs, Rewards: rewards, Terminated: terminated, Truncated: truncated,
	})
	for i := range terminated {
		if terminated[i]|truncated[i] == 0 {
			continue
		}
		truncated[i] &^= terminated[i]
		row := obs[ObsDim*i : ObsDim*i+ObsDim]
		copy(final[ObsDim*i:ObsDim*i+ObsDim], row)
		b.carts.Reset(i, &b.rngs[i], row)
	}
}
