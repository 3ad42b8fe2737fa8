package probe

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Turns is a game of two players who alternate, with one state: each move ends it with a probability and pays the mover
// 1. A decision that is still open where a block ends must count whatever its outcome, or the value is not the game's.
func Turns(end float64, horizon int) Probe {
	const dataset = 2048
	long := int(EnvSteps * (2 - math.Log2(2*end))) // the rarer rewards are
	stays := (1 - end) * (1 - end)
	return Probe{
		Name:  fmt.Sprintf("turns of %g in blocks of %d", end, horizon),
		About: fmt.Sprintf("a game of two in turns, which each move ends with a probability of %g and a reward of 1", end),
		Known: []Known{{"V", end / (1 - stays*gamma), 0, value}},
		plugin: &turns{end: end, spec: hostabi.EnvSpec{
			Name: "turns@1", ABI: hostabi.EnvABI, Autoreset: hostabi.SameStep, Groups: []hostabi.Group{{Name: "players", Agents: players}},
			Tensors: []hostabi.Tensor{
				{Role: hostabi.RoleAction, DType: hostabi.I32, N: 2, Flags: hostabi.TensorPerAgent},
				{Role: hostabi.RoleObservation, DType: hostabi.F32, Flags: hostabi.TensorPerAgent},
				{Role: hostabi.RoleReward, DType: hostabi.F32, Flags: hostabi.TensorPerAgent},
				{Role: hostabi.RoleTerminated, DType: hostabi.U8}, {Role: hostabi.RoleTruncated, DType: hostabi.U8},
				{Role: hostabi.RoleFinalObservation, DType: hostabi.F32, Flags: hostabi.TensorPerAgent},
				{Role: hostabi.RoleActive, DType: hostabi.U8, Flags: hostabi.TensorPerAgent},
			},
		}},
		sets: []string{fmt.Sprintf("component.rollout.horizon=%d", horizon), fmt.Sprintf("component.rollout.envs=%d", dataset/horizon),
			fmt.Sprintf("component.batcher.dataset_rows=%d", dataset), fmt.Sprintf("run.stop.env_steps=%d", long)},
	}
}

// players is how many a game of turns has.
const players = 2

// turns is an env.Plugin of such games.
type turns struct {
	end  float64
	spec hostabi.EnvSpec
}

func (p *turns) Spec() hostabi.EnvSpec { return p.spec }
func (p *turns) Hash() string          { return "turns" }
func (p *turns) Close() error          { return nil }

func (p *turns) NewEnv(o env.Options) (env.Env, error) {
	return &turnsEnv{turns: p, draws: make([]uint64, o.Envs), mover: make([]uint8, o.Envs)}, o.Check(&p.spec, 1)
}

// turnsEnv plays a batch of games. Their state is who moves next, and how far their streams of random numbers are.
type turnsEnv struct {
	*turns
	block env.Block
	draws []uint64
	mover []uint8
}

func (e *turnsEnv) Spec() *hostabi.EnvSpec { return &e.spec }
func (e *turnsEnv) Close() error           { return nil }
func (e *turnsEnv) Bind(b env.Block) error { e.block = b; return nil }

func (e *turnsEnv) Renew() error {
	clear(e.draws)
	clear(e.mover)
	return nil
}

func (e *turnsEnv) Snapshot() (state []byte, err error) {
	for i, draw := range e.draws {
		state = append(binary.LittleEndian.AppendUint64(state, draw), e.mover[i])
	}
	return state, nil
}

func (e *turnsEnv) Restore(state []byte) error {
	for i := range e.draws {
		e.draws[i], e.mover[i] = binary.LittleEndian.Uint64(state[9*i:]), state[9*i+8]
	}
	return nil
}

func (e *turnsEnv) Reset(t int, mask []uint8, seeds []uint64) error {
	for i := range e.draws {
		if mask != nil && mask[i] == 0 {
			continue
		}
		if seeds != nil {
			e.draws[i] = seeds[i]
		}
		e.observe(t, i)
	}
	return nil
}

func (e *turnsEnv) Step(t int) error {
	reward, terminated := e.block.Row(trajectory.Reward, t).Float32(), e.block.Row(trajectory.Terminated, t).Data
	clear(reward)
	clear(terminated)
	clear(e.block.Row(trajectory.Truncated, t).Data)
	clear(e.block.Row(trajectory.FinalObs, 0).Float32())
	for i := range e.draws {
		e.draws[i] = env.Seed(e.draws[i], 1)
		if float64(e.draws[i]>>11)*0x1p-53 < e.end {
			reward[players*i+int(e.mover[i])] = 1
			terminated[players*i] = 1
		}
		e.mover[i] = 1 - e.mover[i]
		e.observe(t+1, i)
	}
	return nil
}

// observe shows nothing, and who moves.
func (e *turnsEnv) observe(t, i int) {
	first, acts, obs := players*i, e.block.Acts(t), e.block.Row(trajectory.Obs, t).Float32()
	for player := range players {
		acts[first+player], obs[first+player] = 0, 0
	}
	acts[first+int(e.mover[i])] = 1
}
