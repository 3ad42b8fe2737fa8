package evaluation

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Elements are the elements of one tensor, the last index of its shape the fastest. The slice of its dtype has them; bool is in u8.
type Elements struct {
	F32 []float32
	I32 []int32
	U8  []uint8
}

// Observation is an agent's observation before it acts.
type Observation struct {
	// Tensors has each tensor that the environment observes, in the order of its description. One without elements is all zeros.
	Tensors []Elements
	// Masks are the legal values of each action that has a mask, 1 where it is legal; nil where all are.
	Masks [][]uint8
	// Reward is that of the step before, for policies that read it.
	Reward float32
}

// Seat is a policy that plays one agent of an environment that its caller steps. It keeps the policy's memory of the episode. It
// belongs to one goroutine.
type Seat struct {
	play *play
	at   *seated
	next bool // the next observation begins an episode
}

// NewSeat seats a player, prepared for one row, in an environment of that description. Sampled actions are drawn by the seed; greedy ones
// are the most probable. Close closes the player's actor.
func NewSeat(p Player, spec hostabi.EnvSpec, seed uint64, greedy bool) (*Seat, error) {
	at := &seated{spec: oneAgent(spec, p.Group)}
	p.Group = 0
	playing, err := newPlay(context.Background(), Options{Plugin: at, Player: p, Episodes: 1, Envs: 1, Seed: seed, Greedy: greedy}, env.EvaluationStream)
	if err != nil {
		return nil, errors.Join(err, p.Actor.Close())
	}
	s := &Seat{play: playing, at: at}
	s.Begin()
	playing.episode[0] = -1
	return s, nil
}

// oneAgent is the description of an environment as one agent of a group sees it: its observations and actions.
func oneAgent(spec hostabi.EnvSpec, group int) hostabi.EnvSpec {
	spec = spec.OfGroup(group)
	spec.Groups, spec.Autoreset, spec.MaxEnvs = nil, hostabi.Disabled, 0
	seen := []hostabi.Role{hostabi.RoleAction, hostabi.RoleObservation, hostabi.RoleReward, hostabi.RoleTerminated, hostabi.RoleTruncated, hostabi.RoleActionMask}
	spec.Tensors = slices.DeleteFunc(slices.Clone(spec.Tensors), func(t hostabi.Tensor) bool { return !slices.Contains(seen, t.Role) })
	return spec
}

// Begin says that the next observation is the first of an episode.
func (s *Seat) Begin() { s.next = true }

// Act returns each action that the policy takes: I32 of discrete ones, F32 of a Box. They are the caller's.
func (s *Seat) Act(o Observation) ([]Elements, error) {
	s.at.now = o
	if err := s.observe(); err != nil {
		return nil, err
	}
	if err := s.play.act(); err != nil {
		return nil, err
	}
	var actions []Elements
	for _, m := range s.play.driver.Actions() {
		actions = append(actions, elements(m))
	}
	return actions, nil
}

// observe takes the given observation as that of the next step, or of the first of an episode.
func (s *Seat) observe() error {
	p := s.play
	if s.next {
		if err := p.driver.Reset(nil, p.seeds); err != nil {
			return err
		}
		s.next, p.steps[0] = false, 0
		p.episode[0]++
		return nil
	}
	if _, err := p.driver.Step(); err != nil {
		return err
	}
	p.steps[0]++
	return nil
}

// Close releases the seat.
func (s *Seat) Close() error {
	return errors.Join(s.play.players[0].Actor.Close(), s.play.driver.Close())
}

// elements copies the first row of a matrix of actions.
func elements(m trajectory.Matrix) (e Elements) {
	for i := range m.Elems {
		if v := m.Value(0, i); m.DType == hostabi.F32 {
			e.F32 = append(e.F32, float32(v))
		} else {
			e.I32 = append(e.I32, int32(v))
		}
	}
	return e
}

// seated is an environment, and its plugin, whose observations are given.
type seated struct {
	spec hostabi.EnvSpec
	tr   trajectory.Trajectory
	now  Observation
}

func (x *seated) Spec() hostabi.EnvSpec               { return x.spec }
func (x *seated) Hash() string                        { return "" }
func (x *seated) NewEnv(env.Options) (env.Env, error) { return seatedEnv{x}, nil }
func (x *seated) Close() error                        { return nil }

type seatedEnv struct{ *seated }

func (x seatedEnv) Spec() *hostabi.EnvSpec { return &x.spec }

func (x seatedEnv) Bind(b env.Block) error {
	x.tr = b.Trajectory
	return nil
}

func (x seatedEnv) Reset(t int, _ []uint8, _ []uint64) error { return x.write(t) }

func (x seatedEnv) Step(t int) error {
	x.tr.Row(trajectory.Reward, t).Float32()[0] = x.now.Reward
	x.tr.RowBytes(trajectory.Terminated, t)[0], x.tr.RowBytes(trajectory.Truncated, t)[0] = 0, 0
	return x.write(t + 1)
}

func (x seatedEnv) Renew() error              { return nil }
func (x seatedEnv) Snapshot() ([]byte, error) { return nil, env.ErrUnsupported }
func (x seatedEnv) Restore([]byte) error      { return env.ErrUnsupported }

// write writes the given observation.
func (x seatedEnv) write(t int) error {
	views := x.tr.Rows(nil, trajectory.Obs, t)
	if len(x.now.Tensors) != len(views) {
		return fmt.Errorf("%d tensors are given, %s observes %d", len(x.now.Tensors), x.spec.Name, len(views))
	}
	for i, m := range views {
		if err := fill(m, x.now.Tensors[i]); err != nil {
			return fmt.Errorf("observation %d: %w", i, err)
		}
	}
	masked := 0
	for i, m := range x.tr.Masks(nil, t) {
		if m.Rows == 0 {
			continue
		}
		legal := slices.Repeat([]uint8{1}, m.Elems)
		if masked < len(x.now.Masks) {
			legal = x.now.Masks[masked]
		}
		if len(legal) != m.Elems {
			return fmt.Errorf("the mask of action %d has %d values, want %d", i, len(legal), m.Elems)
		}
		if err := fill(m, Elements{U8: legal}); err != nil {
			return err
		}
		masked++
	}
	return nil
}

// fill writes elements into the first row of a matrix.
func fill(m trajectory.Matrix, e Elements) error {
	var dtype hostabi.DType
	var data []byte
	var err error
	switch {
	case e.F32 != nil:
		dtype = hostabi.F32
		data, err = binary.Append(nil, binary.LittleEndian, e.F32)
	case e.I32 != nil:
		dtype = hostabi.I32
		data, err = binary.Append(nil, binary.LittleEndian, e.I32)
	case e.U8 != nil:
		dtype, data = hostabi.U8, e.U8
	default:
		clear(m.Data)
		return nil
	}
	if err != nil {
		return err
	}
	size := dtype.Bytes()
	if n := len(data) / size; n != m.Elems || dtype != m.DType && !(dtype == hostabi.U8 && m.DType == hostabi.Bool) {
		return fmt.Errorf("%d elements of %v are given, it has %d of %v", n, dtype, m.Elems, m.DType)
	}
	m.SetRow(0, trajectory.Matrix{DType: m.DType, Data: data, Rows: 1, Elems: m.Elems, StrideElem: size}, 0)
	return nil
}
