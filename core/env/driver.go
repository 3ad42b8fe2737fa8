package env

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Driver is an environment with its own block, for callers that step environments without keeping trajectories: evaluation,
// checks, benchmarks. It belongs to one goroutine. The views that its methods return are valid until the next call of Step.
type Driver struct {
	Env Env

	arena *arena.Arena
	loan  arena.Loan
	tr    trajectory.Trajectory
	whole *trajectory.Schema // of the block with its margins
	mode  hostabi.Autoreset
	t     int // row observed and not acted on yet
	rows  []trajectory.Matrix

	observations, actions, raw, masks []trajectory.Matrix // what the methods of these names have returned

	born []trajectory.Figure // infos of episodes that begin
}

// DriverRows is the default of DriverOptions.Rows.
const DriverRows = 32

// DriverOptions says which environments to drive.
type DriverOptions struct {
	Options
	// Rows is how many steps are made before the last row is copied to the front; 0 means DriverRows.
	Rows int
	// Blocks is how many blocks there are: 0 means one, and Move needs two.
	Blocks int
	// Layout of the observations.
	SoA bool
	// Margin is how many more environments each row has room for on both sides of the driver's own. Nothing may
	// write there; see Whole. Not every runtime can step into such a block: Bind then returns ErrUnsupported.
	Margin int
	// Memory describes the earlier rows that are kept for a policy. Chunk is ignored: no learner reads the block.
	Memory trajectory.Memory
}

// NewDriver makes environments of a plugin and binds a block to them. The caller must close it, which closes them.
func NewDriver(p Plugin, o DriverOptions) (*Driver, error) {
	if o.Rows == 0 {
		o.Rows = DriverRows
	}
	spec := p.Spec()
	o.Blocks = max(o.Blocks, 1)
	if o.Autoreset == 0 {
		o.Autoreset = spec.PickAutoreset()
	}
	o.Memory.Chunk = 0
	whole, err := trajectory.NewSchema(spec, trajectory.Shape{Steps: o.Rows, Envs: o.Envs + 2*o.Margin, SoA: o.SoA, Memory: o.Memory, Shaped: Shapes(p)})
	if err != nil {
		return nil, err
	}
	schema := whole
	if o.Margin > 0 {
		if schema, err = whole.Slice(o.Margin, o.Envs); err != nil {
			return nil, err
		}
	}
	if err := CheckMemory(p, o.Blocks, whole); err != nil {
		return nil, err
	}
	env, err := p.NewEnv(o.Options)
	if err != nil {
		return nil, err
	}
	s := &Driver{Env: env, whole: whole, mode: o.Autoreset}
	s.born = slices.DeleteFunc(schema.Figures(), func(f trajectory.Figure) bool { return !f.AtBegin })
	s.arena, err = arena.New(arena.Config{Name: o.Name, Blocks: o.Blocks, BlockBytes: whole.Bytes, Schema: whole})
	if err != nil {
		return nil, errors.Join(err, env.Close())
	}
	if s.loan, err = s.arena.Loan(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.tr = trajectory.Trajectory{Schema: schema, Mem: s.loan.Bytes()}
	trajectory.Params{Trajectory: s.tr}.Clear()
	if err := s.Bind(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// OutputError says that an environment wrote what it must not.
type OutputError struct {
	Env  int    // index in the driver
	Call string // after which it was found, such as rl_step
	Err  error
}

// Error describes the output in one line.
func (e *OutputError) Error() string { return fmt.Sprintf("env %d after %s: %v", e.Env, e.Call, e.Err) }

func (e *OutputError) Unwrap() error { return e.Err }

// Block returns the block, for another process that reads and writes it.
func (s *Driver) Block() Block {
	return Block{Trajectory: s.tr, Index: uint32(s.loan.Block()), FD: s.arena.FD(), Offset: s.arena.BlockOffset(s.loan.Block())}
}

// Bind binds the block again, after Renew or Restore of the environment.
func (s *Driver) Bind() error { return s.Env.Bind(s.Block()) }

// Move lets the environments continue in the driver's other block, whose first row gets what they observe now. The views that methods have
// returned are of the block before, which may be overwritten.
func (s *Driver) Move() error {
	loan, err := s.arena.Loan()
	if err != nil {
		return err
	}
	next := trajectory.Trajectory{Schema: s.tr.Schema, Mem: loan.Bytes()}
	trajectory.Params{Trajectory: next}.Clear()
	next.CopyObserved(0, s.tr, s.t)
	before := s.loan
	s.loan, s.tr, s.t = loan, next, 0
	return errors.Join(s.Bind(), before.Abort())
}

// Reset starts new episodes, everywhere or where mask is not 0, and checks the observations.
func (s *Driver) Reset(mask []uint8, seeds []uint64) error {
	if err := s.Env.Reset(s.t, mask, seeds); err != nil {
		return err
	}
	if env, err := s.tr.CheckObs(s.t); err != nil {
		return &OutputError{env, hostabi.ExportReset, err}
	}
	if env, err := s.checkBorn(mask, nil); err != nil {
		return &OutputError{env, hostabi.ExportReset, err}
	}
	s.tr.BeginWhere(s.t, mask)
	return nil
}

// checkBorn checks the infos of the episodes that begin in the newest row: of the environments with either flag, of all where there are none.
func (s *Driver) checkBorn(flags, others []uint8) (env int, err error) {
	begins := func(i int) bool {
		env := i / s.tr.Schema.Agents
		return flags == nil || flags[env] != 0 || others != nil && others[env] != 0
	}
	for i := range s.born {
		if env, err := s.tr.CheckBegun(&s.born[i], s.t, begins); err != nil {
			return env, err
		}
	}
	return -1, nil
}

// Step steps the environments with Action and checks their output. After it, Obs is their new observation, and
// Reward, Terminated and Truncated describe the step. It does not allocate.
//
// If the error says that environments are lost, the others have made their step, which counts; the lost ones have a
// reward of 0, have not ended, and wait for a Reset.
func (s *Driver) Step() (trajectory.Ended, error) {
	lost := s.Advance()
	if lost != nil && Lost(lost) == nil {
		return 0, lost
	}
	ended, env, err := s.tr.CheckStep(s.t-1, s.mode)
	if err != nil {
		return 0, &OutputError{env, hostabi.ExportStep, err}
	}
	if ended != 0 && s.mode == hostabi.SameStep && s.tr.Schema.Agents == 1 { // of several agents their environment knows who begins
		if env, err := s.checkBorn(s.Terminated(), s.Truncated()); err != nil {
			return 0, &OutputError{env, hostabi.ExportStep, err}
		}
	}
	s.age()
	return ended, lost
}

// age writes how long the episodes of the current row have been running. After the end of an episode the next one
// begins by the mode, or with Reset.
func (s *Driver) age() {
	next := s.tr.Ages(s.t)
	if next == nil {
		return
	}
	terminated, truncated, acts := s.Terminated(), s.Truncated(), s.tr.Acts(s.t-1)
	for i, age := range s.tr.Ages(s.t - 1) {
		switch {
		case terminated[i]|truncated[i] != 0:
			next[i] = 0
		case acts == nil || acts[i] != 0:
			next[i] = trajectory.Older(age)
		default:
			next[i] = age
		}
	}
}

// Advance is Step without checks of the output, for measuring the environment alone.
func (s *Driver) Advance() error {
	if s.t == s.tr.Schema.Shape.Steps {
		s.carry()
	}
	s.tr.Execute(s.t)
	err := s.Env.Step(s.t)
	if err != nil {
		lost := Lost(err)
		if lost == nil {
			return err
		}
		s.blank(lost)
	}
	s.t++
	return err
}

// blank clears the step of lost environments.
func (s *Driver) blank(lost []Span) {
	for _, span := range lost {
		for env := max(span.First, 0); env < min(span.First+span.Count, s.tr.Schema.Shape.Envs); env++ {
			for agent := range s.tr.Schema.Agents {
				s.tr.ClearOutcomeOf(env*s.tr.Schema.Agents+agent, s.t)
			}
		}
	}
}

// carry moves the observed row to row 0.
func (s *Driver) carry() {
	s.tr.CopyObserved(0, s.tr, s.t)
	s.t = 0
}

// Autoreset says how the environments begin new episodes.
func (s *Driver) Autoreset() hostabi.Autoreset { return s.mode }

// Action returns the actions of the coming step, one per environment, to be written.
func (s *Driver) Action() []int32 {
	tr, row := s.Acting()
	return tr.Row(trajectory.Action, row).Int32()
}

// Draw writes random actions for the coming step; see trajectory.Trajectory.DrawActions.
func (s *Driver) Draw(word func(env int) uint64) {
	tr, row := s.Acting()
	tr.DrawActions(row, word)
}

// Acting returns the driver's environments in the block, and the row whose actions the coming step takes.
func (s *Driver) Acting() (t trajectory.Trajectory, row int) {
	if s.t == s.tr.Schema.Shape.Steps {
		s.carry()
	}
	return s.tr, s.t
}

// Stepped returns the driver's environments in the block, and the row of the last step.
func (s *Driver) Stepped() (t trajectory.Trajectory, row int) { return s.tr, s.t - 1 }

// Schema returns how the driver's block is laid out.
func (s *Driver) Schema() *trajectory.Schema { return s.tr.Schema }

// Actions returns room for every action of the coming step.
func (s *Driver) Actions() []trajectory.Matrix {
	tr, row := s.Acting()
	s.actions = tr.Rows(s.actions[:0], trajectory.Action, row)
	return s.actions
}

// RawActions returns room for the raw samples of the next step's actions; see trajectory.Trajectory.RawActions.
func (s *Driver) RawActions() []trajectory.Matrix {
	s.raw = s.tr.RawActions(s.raw[:0], s.t%s.tr.Schema.Shape.Steps)
	return s.raw
}

// Observations returns everything that the environments observe now.
func (s *Driver) Observations() []trajectory.Matrix {
	s.observations = s.tr.Rows(s.observations[:0], trajectory.Obs, s.t)
	return s.observations
}

// Masks returns which choices of every action are legal now; see trajectory.Trajectory.Masks.
func (s *Driver) Masks() []trajectory.Matrix {
	s.masks = s.tr.Masks(s.masks[:0], s.t)
	return s.masks
}

// LogProb returns room for the log-probability of each action.
func (s *Driver) LogProb() []float32 {
	return s.float32Row(trajectory.LogProb, s.t%s.tr.Schema.Shape.Steps)
}

// Value returns room for the value of each observation.
func (s *Driver) Value() []float32 { return s.float32Row(trajectory.Value, s.t) }

// Obs returns the present observations.
func (s *Driver) Obs() trajectory.Matrix { return s.tr.Row(trajectory.Obs, s.t) }

// Mask returns which actions are legal now; Rows is 0 if the environment has no mask.
func (s *Driver) Mask() trajectory.Matrix {
	if !s.tr.Schema.Has(trajectory.Mask) {
		return trajectory.Matrix{}
	}
	return s.tr.Row(trajectory.Mask, s.t)
}

// FinalObs returns the last observations of episodes that ended in the last step, under same-step autoreset.
func (s *Driver) FinalObs() trajectory.Matrix { return s.tr.Row(trajectory.FinalObs, 0) }

// Observed returns the present observations, one matrix for each column with that flag: observations, then masks. With
// trajectory.Final they are the last observations of episodes that ended in the last step, under same-step autoreset.
func (s *Driver) Observed(flag trajectory.Flags) []trajectory.Matrix {
	row := s.t
	if flag&trajectory.Final != 0 {
		row = 0
	}
	s.rows = s.tr.AppendRows(s.rows[:0], flag, row)
	return s.rows
}

// Reward returns the rewards of the last step.
func (s *Driver) Reward() []float32 { return s.float32Row(trajectory.Reward, s.t-1) }

// Terminated returns the flags of the last step.
func (s *Driver) Terminated() []byte { return s.tr.Row(trajectory.Terminated, s.t-1).Data }

// Truncated returns the flags of the last step.
func (s *Driver) Truncated() []byte { return s.tr.Row(trajectory.Truncated, s.t-1).Data }

// Result returns the last step's row of a column of results, such as trajectory.Info or trajectory.Discount; the zero
// Matrix without such a column.
func (s *Driver) Result(c trajectory.Column) trajectory.Matrix {
	if !s.tr.Schema.Has(c) {
		return trajectory.Matrix{}
	}
	return s.tr.Row(c, s.t-1)
}

// Figures returns the numbers of the environment's infos; see trajectory.Schema.Figures.
func (s *Driver) Figures() []trajectory.Figure { return s.tr.Schema.Figures() }

// float32Row returns one row of a column with one f32 per environment.
func (s *Driver) float32Row(c trajectory.Column, row int) []float32 {
	return s.tr.Row(c, row).Float32()
}

// Whole returns the block with its margins, and the row of it that is observed now.
func (s *Driver) Whole() (t trajectory.Trajectory, row int) {
	return trajectory.Trajectory{Schema: s.whole, Mem: s.tr.Mem}, s.t
}

// Close closes the environments and frees the block.
func (s *Driver) Close() error {
	err := s.Env.Close()
	if s.loan != (arena.Loan{}) {
		err = errors.Join(err, s.loan.Abort())
	}
	return errors.Join(err, s.arena.Close())
}
