package probe

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Chances of the agents of Respawn: each step kills an agent or cuts its life off. An agent that rests is out for a step first.
const (
	dies = 0.3
	cut  = 0.2
)

// Respawn is a world that never ends, of agents that die and are back in the next row, or with rests a row later. Death pays 1, and so does
// the first step of a life, which shows a 1. A life that is cut off shows a 0 last: where the first observation of the next life is taken
// for it, other values are learned.
func Respawn(horizon int, rests bool) Probe {
	const dataset = 2048
	running := dies / (1 - (1-dies)*gamma)
	name, tensors := "respawn", []hostabi.Tensor{
		{Role: hostabi.RoleAction, DType: hostabi.I32, N: 2, Flags: hostabi.TensorPerAgent},
		{Role: hostabi.RoleObservation, DType: hostabi.F32, Flags: hostabi.TensorPerAgent},
		{Role: hostabi.RoleReward, DType: hostabi.F32, Flags: hostabi.TensorPerAgent},
		{Role: hostabi.RoleTerminated, DType: hostabi.U8, Flags: hostabi.TensorPerAgent},
		{Role: hostabi.RoleTruncated, DType: hostabi.U8, Flags: hostabi.TensorPerAgent},
		{Role: hostabi.RoleFinalObservation, DType: hostabi.F32, Flags: hostabi.TensorPerAgent},
	}
	if rests {
		name, tensors = "respawn after a rest", append(tensors, hostabi.Tensor{Role: hostabi.RoleActive, DType: hostabi.U8, Flags: hostabi.TensorPerAgent})
	}
	return Probe{
		Name:  fmt.Sprintf("%s, in blocks of %d", name, horizon),
		About: "a world without an end whose three agents die and begin again, each by itself",
		Known: []Known{{"V(running)", running, 0, value}, {"V(born)", 1 + running, 1, value}},
		plugin: &worlds{rests: rests, spec: hostabi.EnvSpec{
			Name: "worlds@1", ABI: hostabi.EnvABI, Autoreset: hostabi.SameStep, Groups: []hostabi.Group{{Name: "agents", Agents: inhabitants}}, Tensors: tensors,
		}},
		sets: []string{fmt.Sprintf("component.rollout.horizon=%d", horizon), fmt.Sprintf("component.rollout.envs=%d", dataset/horizon),
			fmt.Sprintf("component.batcher.dataset_rows=%d", dataset), fmt.Sprintf("run.stop.env_steps=%d", 3*EnvSteps)},
	}
}

// inhabitants is how many agents a world has.
const inhabitants = 3

// worlds is an env.Plugin of such worlds.
type worlds struct {
	rests bool
	spec  hostabi.EnvSpec
}

func (p *worlds) Spec() hostabi.EnvSpec { return p.spec }
func (p *worlds) Hash() string          { return p.spec.Name }
func (p *worlds) Close() error          { return nil }

func (p *worlds) NewEnv(o env.Options) (env.Env, error) {
	return &worldsEnv{worlds: p, draws: make([]uint64, o.Envs), phase: make([]uint8, o.Envs*inhabitants)}, o.Check(&p.spec, 1)
}

// Phases of an agent.
const (
	born = iota
	runs
	rest
)

// worldsEnv is a batch of worlds. Their state is the phases of their agents, and how far their streams of random numbers are.
type worldsEnv struct {
	*worlds
	block env.Block
	draws []uint64
	phase []uint8
}

func (e *worldsEnv) Spec() *hostabi.EnvSpec { return &e.spec }
func (e *worldsEnv) Close() error           { return nil }
func (e *worldsEnv) Bind(b env.Block) error { e.block = b; return nil }

func (e *worldsEnv) Renew() error {
	clear(e.draws)
	clear(e.phase)
	return nil
}

func (e *worldsEnv) Snapshot() (state []byte, err error) {
	for _, draw := range e.draws {
		state = binary.LittleEndian.AppendUint64(state, draw)
	}
	return append(state, e.phase...), nil
}

func (e *worldsEnv) Restore(state []byte) error {
	for i := range e.draws {
		e.draws[i] = binary.LittleEndian.Uint64(state[8*i:])
	}
	copy(e.phase, state[8*len(e.draws):])
	return nil
}

func (e *worldsEnv) Reset(t int, mask []uint8, seeds []uint64) error {
	for i := range e.draws {
		if mask != nil && mask[i] == 0 {
			continue
		}
		if seeds != nil {
			e.draws[i] = seeds[i]
		}
		for k := i * inhabitants; k < (i+1)*inhabitants; k++ {
			e.phase[k] = born
			e.observe(t, k)
		}
	}
	return nil
}

func (e *worldsEnv) Step(t int) error {
	reward, last := e.block.Row(trajectory.Reward, t).Float32(), e.block.Row(trajectory.FinalObs, 0).Float32()
	terminated, truncated := e.block.Row(trajectory.Terminated, t).Data, e.block.Row(trajectory.Truncated, t).Data
	for k := range e.phase {
		reward[k], terminated[k], truncated[k], last[k] = 0, 0, 0, float32(math.NaN()) // nobody reads it but where a life ends
		if e.phase[k] == rest {
			e.phase[k] = born
			e.observe(t+1, k)
			continue
		}
		if e.phase[k] == born {
			reward[k] = 1
		}
		draw := &e.draws[k/inhabitants]
		*draw = env.Seed(*draw, 1)
		luck := float64(*draw>>11) * 0x1p-53
		e.phase[k] = runs
		if luck < dies+cut {
			last[k], e.phase[k] = 0, born
			if e.rests {
				e.phase[k] = rest
			}
			if luck < dies {
				reward[k]++
				terminated[k] = 1
			} else {
				truncated[k] = 1
			}
		}
		e.observe(t+1, k)
	}
	return nil
}

// observe shows an agent whether its life begins, and says whether it acts.
func (e *worldsEnv) observe(t, k int) {
	shown := float32(0)
	if e.phase[k] == born {
		shown = 1
	}
	e.block.Row(trajectory.Obs, t).Float32()[k] = shown
	if !e.rests {
		return
	}
	e.block.Acts(t)[k] = 1
	if e.phase[k] == rest {
		e.block.Acts(t)[k] = 0
	}
}
