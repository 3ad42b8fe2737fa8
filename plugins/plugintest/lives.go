package plugintest

import (
	"encoding/binary"
	"fmt"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Lives is an env.Plugin of worlds that never end, whose agents die and are back in the same step. Each step pays 1; an agent observes how
// many steps of its life it has made, and last minus that.
type Lives struct {
	spec   hostabi.EnvSpec
	length func(agent, life int) int
}

// NewLives returns worlds of so many agents, whose lives have so many steps each.
func NewLives(agents int, length func(agent, life int) int) *Lives {
	own := func(role hostabi.Role, d hostabi.DType) hostabi.Tensor {
		return hostabi.Tensor{Role: role, DType: d, Flags: hostabi.TensorPerAgent}
	}
	action := own(hostabi.RoleAction, hostabi.I32)
	action.N = 2
	return &Lives{length: length, spec: hostabi.EnvSpec{
		Name: "lives@1", ABI: hostabi.EnvABI, Autoreset: hostabi.SameStep, Groups: []hostabi.Group{{Name: "agents", Agents: agents}},
		Tensors: []hostabi.Tensor{action, own(hostabi.RoleObservation, hostabi.F32), own(hostabi.RoleReward, hostabi.F32), own(hostabi.RoleTerminated, hostabi.U8),
			own(hostabi.RoleTruncated, hostabi.U8), own(hostabi.RoleFinalObservation, hostabi.F32)},
	}}
}

// Spec describes the worlds.
func (p *Lives) Spec() hostabi.EnvSpec { return p.spec }

// Hash names them.
func (p *Lives) Hash() string { return fmt.Sprint("lives of ", p.spec.Agents()) }

// Close frees nothing.
func (p *Lives) Close() error { return nil }

// NewEnv makes a batch of worlds.
func (p *Lives) NewEnv(o env.Options) (env.Env, error) {
	return &livesEnv{Lives: p, at: make([]span, o.Envs*p.spec.Agents())}, o.Check(&p.spec, 1)
}

// span is where an agent is: how many lives it has had, and how many steps it has made of its present one.
type span struct{ life, step uint32 }

type livesEnv struct {
	*Lives
	block env.Block
	at    []span
}

func (e *livesEnv) Spec() *hostabi.EnvSpec { return &e.spec }
func (e *livesEnv) Renew() error           { clear(e.at); return nil }
func (e *livesEnv) Close() error           { return nil }
func (e *livesEnv) Bind(b env.Block) error { e.block = b; return nil }

func (e *livesEnv) Snapshot() ([]byte, error) { return binary.Append(nil, binary.LittleEndian, e.at) }

func (e *livesEnv) Restore(state []byte) error {
	_, err := binary.Decode(state, binary.LittleEndian, e.at)
	return err
}

func (e *livesEnv) Reset(t int, mask []uint8, _ []uint64) error {
	for i := range e.at {
		if mask == nil || mask[i/e.spec.Agents()] != 0 {
			e.at[i] = span{}
			e.block.Row(trajectory.Obs, t).Float32()[i] = 0
		}
	}
	return nil
}

func (e *livesEnv) Step(t int) error {
	tr := e.block.Trajectory
	for i := range e.at {
		at := &e.at[i]
		at.step++
		tr.Row(trajectory.Reward, t).Float32()[i] = 1
		tr.Row(trajectory.Truncated, t).Data[i] = 0
		tr.Row(trajectory.Terminated, t).Data[i] = 0
		if int(at.step) >= e.length(i%e.spec.Agents(), int(at.life)) {
			tr.Row(trajectory.Terminated, t).Data[i] = 1
			tr.Row(trajectory.FinalObs, 0).Float32()[i] = -float32(at.step)
			*at = span{life: at.life + 1}
		}
		tr.Row(trajectory.Obs, t+1).Float32()[i] = float32(at.step)
	}
	return nil
}
