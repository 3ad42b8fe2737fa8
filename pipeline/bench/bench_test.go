package bench

import (
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// game is an env.Plugin whose environments have two agents that take turns, or always act.
type game struct {
	spec  hostabi.EnvSpec
	block env.Block
}

func newGame(turns bool) *game {
	tensor := func(role hostabi.Role, d hostabi.DType) hostabi.Tensor {
		return hostabi.Tensor{Role: role, DType: d, Flags: hostabi.TensorPerAgent}
	}
	s := hostabi.EnvSpec{Name: "game@1", ABI: hostabi.EnvABI, Autoreset: hostabi.SameStep, Groups: []hostabi.Group{{Agents: 2}}, Tensors: []hostabi.Tensor{
		tensor(hostabi.RoleAction, hostabi.I32), tensor(hostabi.RoleObservation, hostabi.F32), tensor(hostabi.RoleReward, hostabi.F32),
		tensor(hostabi.RoleTerminated, hostabi.U8), tensor(hostabi.RoleTruncated, hostabi.U8), tensor(hostabi.RoleFinalObservation, hostabi.F32),
	}}
	s.Tensors[0].N = 2
	if turns {
		s.Tensors = append(s.Tensors, tensor(hostabi.RoleActive, hostabi.U8))
	}
	return &game{spec: s}
}

func (g *game) Spec() hostabi.EnvSpec { return g.spec }
func (g *game) Hash() string          { return "game" }
func (g *game) Close() error          { return nil }

func (g *game) NewEnv(o env.Options) (env.Env, error) { return &gameEnv{g}, o.Check(&g.spec, 1) }

type gameEnv struct{ *game }

func (e *gameEnv) Spec() *hostabi.EnvSpec    { return &e.spec }
func (e *gameEnv) Renew() error              { return nil }
func (e *gameEnv) Bind(b env.Block) error    { e.block = b; return nil }
func (e *gameEnv) Snapshot() ([]byte, error) { return nil, env.ErrUnsupported }
func (e *gameEnv) Restore([]byte) error      { return env.ErrUnsupported }

func (e *gameEnv) Reset(t int, _ []uint8, _ []uint64) error {
	e.turn(t)
	return nil
}

func (e *gameEnv) Step(t int) error {
	clear(e.block.Row(trajectory.Terminated, t).Data)
	clear(e.block.Row(trajectory.Truncated, t).Data)
	e.turn(t + 1)
	return nil
}

// turn writes a row: one agent of each environment acts, in turns.
func (e *gameEnv) turn(t int) {
	clear(e.block.Row(trajectory.Obs, t).Data)
	acts := e.block.Acts(t)
	for i := range acts {
		acts[i] = byte((i + t) % 2)
	}
}

// An env step is a decision: an agent that does not act makes none.
func TestEnvStepsAreThoseOfAgentsThatAct(t *testing.T) {
	for what, c := range map[string]struct {
		turns bool
		want  int
	}{"both act": {false, 2 * 3}, "in turns": {true, 3}} {
		o := Options{Envs: 3}
		s, err := o.driver(newGame(c.turns), false)
		if err != nil {
			t.Fatal(err)
		}
		for step := range 100 { // beyond the driver's block
			s.Draw(func(int) uint64 { return 0 })
			if err := s.Advance(); err != nil {
				t.Fatal(err)
			}
			if got := envSteps(s); got != c.want {
				t.Fatalf("%s: step %d of 3 environments has %d env steps, want %d", what, step, got, c.want)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
