package rollout

import (
	"cmp"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// row is what happens in one row of a table, by agent: who acts, each agent's observation, which is also its value, and the row's
// rewards and ends.
type row struct {
	acts                  []byte
	worth, reward, final  []float32
	terminated, truncated []byte
}

// table is an env.Plugin whose environments play the rows of a table over and over, whatever is done.
type table struct {
	rows   []row
	shared bool // flags are the environment's: the first agent's
	spec   hostabi.EnvSpec
	hash   string
	faulty int // the call of Step that fails, counted by each batch from 1 on; 0: none does
}

func newTable(shared bool, rows ...row) *table {
	tensor := func(role hostabi.Role, d hostabi.DType) hostabi.Tensor {
		return hostabi.Tensor{Role: role, DType: d, Flags: hostabi.TensorPerAgent}
	}
	flag := tensor(hostabi.RoleTerminated, hostabi.U8)
	if shared {
		flag.Flags = 0
	}
	cut := flag
	cut.Role = hostabi.RoleTruncated
	action := tensor(hostabi.RoleAction, hostabi.I32)
	action.N = 2
	names := ""
	if len(rows[0].acts) == 2 {
		names = "ann\nbob"
	}
	return &table{rows: rows, shared: shared, spec: hostabi.EnvSpec{
		Name: "table@1", ABI: hostabi.EnvABI, Autoreset: hostabi.SameStep, Groups: []hostabi.Group{{Name: "players", Agents: len(rows[0].acts), AgentNames: names}},
		Tensors: []hostabi.Tensor{action, tensor(hostabi.RoleObservation, hostabi.F32), tensor(hostabi.RoleReward, hostabi.F32), flag, cut,
			tensor(hostabi.RoleFinalObservation, hostabi.F32), tensor(hostabi.RoleActive, hostabi.U8)},
	}}
}

func (p *table) Spec() hostabi.EnvSpec { return p.spec }
func (p *table) Hash() string          { return cmp.Or(p.hash, "table") }
func (p *table) Close() error          { return nil }

func (p *table) NewEnv(o env.Options) (env.Env, error) {
	return &tableEnv{table: p, options: o, at: make([]int, o.Envs)}, o.Check(&p.spec, 1)
}

// tableEnv plays the table in each environment of a batch.
type tableEnv struct {
	*table
	options env.Options
	block   env.Block
	at      []int // row of the table, by environment
	steps   int
}

func (e *tableEnv) Spec() *hostabi.EnvSpec { return &e.spec }
func (e *tableEnv) Renew() error           { clear(e.at); return nil }
func (e *tableEnv) Close() error           { return nil }
func (e *tableEnv) Bind(b env.Block) error { e.block = b; return nil }

func (e *tableEnv) Snapshot() (state []byte, err error) {
	for _, at := range e.at {
		state = append(state, byte(at))
	}
	return state, nil
}

func (e *tableEnv) Restore(b []byte) error {
	for env := range e.at {
		e.at[env] = int(b[env])
	}
	return nil
}

func (e *tableEnv) Reset(t int, mask []uint8, _ []uint64) error {
	for env := range e.at {
		if mask == nil || mask[env] != 0 {
			e.at[env] = 0
			e.observe(t, env)
		}
	}
	return nil
}

func (e *tableEnv) Step(t int) error {
	if e.steps++; e.steps == e.faulty {
		return &env.Fault{Kind: env.FaultStatus, Name: e.options.Name, Call: hostabi.ExportStep, Env: -1, Err: env.ErrUnsupported}
	}
	tr, each := e.block.Trajectory, len(e.rows[0].acts)
	for i := range tr.Schema.Rows() {
		now, agent := &e.rows[e.at[i/each]], i%each
		tr.Row(trajectory.Reward, t).Float32()[i] = of(now.reward, agent)
		tr.Row(trajectory.FinalObs, 0).Float32()[i] = of(now.final, agent)
		if e.shared && agent > 0 {
			tr.Row(trajectory.Terminated, t).Data[i] = 77 // is the host's to write
			continue
		}
		tr.Row(trajectory.Terminated, t).Data[i] = of(now.terminated, agent)
		tr.Row(trajectory.Truncated, t).Data[i] = of(now.truncated, agent)
	}
	for env := range e.at {
		e.at[env] = (e.at[env] + 1) % len(e.rows)
		e.observe(t+1, env)
	}
	return nil
}

func (e *tableEnv) observe(t, env int) {
	now, tr := &e.rows[e.at[env]], e.block.Trajectory
	first := env * len(now.acts)
	copy(tr.Acts(t)[first:], now.acts)
	for agent := range now.acts {
		tr.Row(trajectory.Obs, t).Float32()[first+agent] = of(now.worth, agent)
	}
}

// of returns the number of an agent, 0 where there is no list.
func of[E any](list []E, agent int) (number E) {
	if list != nil {
		number = list[agent]
	}
	return number
}

// tableRig is a rollout of two environments of a table in one split, whose values are the observations. each gets its
// blocks.
func tableRig(t *testing.T, p env.Plugin, horizon int, each func(tr trajectory.Trajectory), more ...func(*config)) *rig {
	t.Helper()
	r := newRig(t, rigOptions{plugin: p, config: func(c *config) {
		c.Envs, c.Splits, c.Horizon = 2, 1, horizon
		for _, set := range more {
			set(c)
		}
	}})
	r.judge = func(tr trajectory.Trajectory, q trajectory.ActRequest) {
		for i := range tr.Schema.Rows() {
			tr.Row(trajectory.Value, q.T).Float32()[i] = tr.Row(trajectory.Obs, q.T).Float32()[i]
			if q.Bootstrap && tr.Row(trajectory.Truncated, q.T-1).Data[i] != 0 {
				tr.Row(trajectory.Bootstrap, q.T-1).Float32()[i] = tr.Row(trajectory.FinalObs, 0).Float32()[i]
			}
		}
	}
	if each != nil {
		r.eachBlock(t, func(_ *hostabi.Message, tr trajectory.Trajectory) { each(tr) })
	}
	return r
}
