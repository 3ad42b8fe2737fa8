package plugintest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
)

// trace has one string for each real step of each environment: observation, action, reward and next observation. Steps
// that belong to no episode are not in it.
type trace [][]string

// sameAs returns the first difference of two traces, as far as both go.
func (a trace) sameAs(b trace) error {
	for env := range a {
		n := min(len(a[env]), len(b[env]))
		if n == 0 && len(a[env])+len(b[env]) > 0 {
			return fmt.Errorf("environment %d: %d real steps against %d", env, len(a[env]), len(b[env]))
		}
		for step := range n {
			if a[env][step] != b[env][step] {
				return fmt.Errorf("environment %d differs from real step %d on:\n%s\n%s", env, step,
					show(a[env][step]), show(b[env][step]))
			}
		}
	}
	return nil
}

// show writes a step as numbers.
func show(step string) string {
	var values []float32
	for ; len(step) >= 4; step = step[4:] {
		values = append(values, math.Float32frombits(binary.LittleEndian.Uint32([]byte(step[:4]))))
	}
	return fmt.Sprintf("%v %v", values, []byte(step))
}

// rows is how many steps a block has.
const rows = 16

// player steps a batch through the blocks of an arena, one after the other.
type player struct {
	env     env.Env
	spec    hostabi.EnvSpec
	mode    hostabi.Autoreset
	seed    uint64
	arena   *arena.Arena
	loans   []arena.Loan
	blocks  []env.Block
	block   int // that is bound
	t       int // row that is observed and not acted on
	phantom []bool
	made    []int // real steps
	mask    []uint8
	quiet   bool // keeps no trace
	trace   trace
}

// playing is the configuration of a player.
type playing struct {
	envs   int               // default: the options'
	mode   hostabi.Autoreset // default: the host's choice
	soa    bool
	blocks int // default 2
}

func (k *kit) player(o playing) (p *player, err error) {
	if o.envs == 0 {
		o.envs = k.o.Envs
	}
	if o.mode == 0 {
		o.mode = k.spec.PickAutoreset()
	}
	if o.blocks == 0 {
		o.blocks = 2
	}
	schema, err := trajectory.NewSchema(k.spec, trajectory.Shape{Steps: rows, Envs: o.envs, SoA: o.soa})
	if err != nil {
		return nil, err
	}
	n := schema.Rows()
	p = &player{spec: k.spec, mode: o.mode, seed: k.o.Seed, phantom: make([]bool, n), made: make([]int, n),
		mask: make([]uint8, o.envs), trace: make(trace, n)}
	p.arena, err = arena.New(arena.Config{Name: "plugintest", Blocks: o.blocks, BlockBytes: schema.Bytes, Schema: schema})
	if err != nil {
		return nil, err
	}
	for range o.blocks {
		loan, err := p.arena.Loan()
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		p.loans = append(p.loans, loan)
		tr := trajectory.Trajectory{Schema: schema, Mem: loan.Bytes()}
		trajectory.Params{Trajectory: tr}.Clear()
		p.blocks = append(p.blocks, env.Block{
			Trajectory: tr, Index: loan.Block(), FD: p.arena.FD(), Offset: p.arena.BlockOffset(loan.Block()),
		})
	}
	p.env, err = k.plugin.NewEnv(env.Options{Name: "plugintest", Envs: o.envs, Autoreset: o.mode, Seed: k.o.Seed})
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// close releases environments and blocks.
func (p *player) close() error {
	var errs []error
	if p.env != nil {
		errs = append(errs, p.env.Close())
	}
	for _, loan := range p.loans {
		errs = append(errs, loan.Abort())
	}
	return errors.Join(append(errs, p.arena.Close())...)
}

// start binds the first block and resets every environment, with seeds that follow from one.
func (p *player) start(seed uint64) error {
	p.block, p.t = 0, 0
	if err := p.env.Bind(p.blocks[0]); err != nil {
		return err
	}
	clear(p.phantom)
	clear(p.made)
	p.trace = make(trace, len(p.made))
	seeds := make([]uint64, len(p.mask))
	for index := range seeds {
		seeds[index] = env.Seed(seed, index)
	}
	return p.reset(nil, seeds)
}

func (p *player) reset(mask []uint8, seeds []uint64) error {
	if err := p.env.Reset(p.t, mask, seeds); err != nil {
		return err
	}
	if env, err := p.bound().CheckObs(p.t); err != nil {
		return fmt.Errorf("environment %d after a reset: %w", env, err)
	}
	return nil
}

func (p *player) bound() trajectory.Trajectory { return p.blocks[p.block].Trajectory }

// play makes steps.
func (p *player) play(steps int) error {
	for step := range steps {
		if err := p.step(); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
	}
	return nil
}

// step makes one step, in the next block where this one is full.
func (p *player) step() error {
	if p.t == p.bound().Schema.Shape.Steps {
		if err := p.carry((p.block+1)%len(p.blocks), 0); err != nil {
			return err
		}
	}
	p.act()
	if err := p.env.Step(p.t); err != nil {
		return err
	}
	if _, env, err := p.bound().CheckStep(p.t, p.mode); err != nil {
		return fmt.Errorf("environment %d: %w", env, err)
	}
	reset, err := p.look()
	p.t++
	if err != nil || !reset {
		return err
	}
	return p.reset(p.mask, nil)
}

// carry continues in a row of another block.
func (p *player) carry(block, t int) error {
	from := p.bound()
	p.block = block
	if err := p.env.Bind(p.blocks[block]); err != nil {
		return err
	}
	p.bound().CopyObserved(t, from, p.t)
	p.t = t
	return nil
}

// act chooses legal actions by seed, environment and count of real steps alone.
func (p *player) act() {
	p.bound().DrawActions(p.t, func(index int) uint64 { return env.Seed(p.seed+uint64(p.made[index])*7919, index) })
}

// look records the step's results and reports which environments need a reset, in mask.
func (p *player) look() (reset bool, err error) {
	tr := p.bound()
	reward := tr.Row(trajectory.Reward, p.t).Float32()
	terminated, truncated := tr.Row(trajectory.Terminated, p.t).Data, tr.Row(trajectory.Truncated, p.t).Data
	for env := range p.made {
		flags := terminated[env] | truncated[env]<<1
		p.mask[env/p.spec.Agents()] = 0
		if p.phantom[env] {
			p.phantom[env] = false
			if reward[env] != 0 || flags != 0 {
				return false, fmt.Errorf("environment %d: the step after an end has reward %g and flags %d, want none",
					env, reward[env], flags)
			}
			continue
		}
		if !p.quiet {
			p.note(env, reward[env], flags)
		}
		p.made[env]++
		p.phantom[env] = flags != 0 && p.mode == hostabi.NextStep
		if flags != 0 && p.mode == hostabi.Disabled {
			p.mask[env], reset = 1, true // with one agent
		}
	}
	return reset, nil
}

// note appends a real step to the trace.
func (p *player) note(env int, reward float32, flags byte) {
	le := binary.LittleEndian
	b := p.appendOwn(nil, trajectory.Obs, p.t, env)
	b = le.AppendUint32(b, math.Float32bits(reward))
	if flags != 0 && p.mode == hostabi.SameStep {
		b = p.appendOwn(b, trajectory.FinalObs, 0, env)
	} else {
		b = p.appendOwn(b, trajectory.Obs, p.t+1, env)
	}
	b = append(b, flags)
	b = p.appendOwn(b, trajectory.Action, p.t, env)
	b = p.appendOwn(b, trajectory.Mask, p.t, env)
	b = p.appendOwn(b, trajectory.Active, p.t, env)
	p.trace[env] = append(p.trace[env], string(b))
}

// appendOwn appends an environment's, or agent's, elements in a row of all columns of a kind.
func (p *player) appendOwn(b []byte, kind trajectory.Column, t, env int) []byte {
	tr := p.bound()
	for i, m := range tr.Rows(nil, kind, t) {
		if tr.Schema.Holds(kind.At(i), env) {
			b = appendRow(b, m, env)
		}
	}
	return b
}

// appendRow appends the elements of one environment.
func appendRow(b []byte, m trajectory.Matrix, env int) []byte {
	for i := range m.Elems {
		b = append(b, m.Data[env*m.StrideRow+i*m.StrideElem:][:m.DType.Bytes()]...)
	}
	return b
}
