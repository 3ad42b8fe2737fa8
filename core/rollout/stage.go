package rollout

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/hostabi"
)

// Stage is an environment with a block of its own, for whoever steps environments without keeping trajectories:
// evaluation, checks, benchmarks. It belongs to one goroutine. The views that its methods return are valid until
// the next call of Step.
type Stage struct {
	Env Env

	arena *arena.Arena
	loan  arena.Loan
	tr    Trajectory
	whole *Schema // of the block with its margins
	mode  hostabi.Autoreset
	t     int // row that is observed and not acted on yet
}

// StageRows is the default of StageOptions.Rows.
const StageRows = 32

// StageOptions says which environments to put on stage.
type StageOptions struct {
	EnvOptions
	// Rows is how many steps are made before the last row is carried to the front; 0 means StageRows.
	Rows int
	// Layout of the observations.
	SoA bool
	// Margin is how many environments more each row has room for on both sides of those on stage. Nobody may write
	// there; see Whole. Not every runtime can step into such a block: Bind then returns ErrUnsupported.
	Margin int
}

// NewStage makes environments of a plugin and binds a block to them. It must be closed, which closes them.
func NewStage(p Plugin, o StageOptions) (*Stage, error) {
	if o.Rows == 0 {
		o.Rows = StageRows
	}
	spec := p.Spec()
	if o.Autoreset == 0 {
		o.Autoreset = spec.PickAutoreset()
	}
	whole, err := NewSchema(spec, Shape{Steps: o.Rows, Envs: o.Envs + 2*o.Margin, SoA: o.SoA})
	if err != nil {
		return nil, err
	}
	schema := whole
	if o.Margin > 0 {
		if schema, err = whole.Slice(o.Margin, o.Envs); err != nil {
			return nil, err
		}
	}
	if err := CheckMemory(p, 1, whole); err != nil {
		return nil, err
	}
	env, err := p.NewEnv(o.EnvOptions)
	if err != nil {
		return nil, err
	}
	s := &Stage{Env: env, whole: whole, mode: o.Autoreset}
	s.arena, err = arena.New(arena.Config{Name: o.Name, Blocks: 1, BlockBytes: whole.Bytes, Schema: whole})
	if err != nil {
		return nil, errors.Join(err, env.Close())
	}
	if s.loan, err = s.arena.Loan(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.tr = Trajectory{Schema: schema, Mem: s.loan.Bytes()}
	if err := s.Bind(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Bind binds the block again, after Renew or Restore of the environment.
func (s *Stage) Bind() error {
	return s.Env.Bind(Block{Trajectory: s.tr, FD: s.arena.FD(), Offset: s.arena.BlockOffset(s.loan.Block())})
}

// Reset starts new episodes, everywhere or where mask is not 0, and checks what they observe.
func (s *Stage) Reset(mask []uint8, seeds []uint64) error {
	if err := s.Env.Reset(s.t, mask, seeds); err != nil {
		return err
	}
	if env, err := s.tr.CheckObs(s.t); err != nil {
		return fmt.Errorf("env %d after %s: %w", env, hostabi.ExportReset, err)
	}
	return nil
}

// Step steps the environments with Action and checks what they wrote. After it, Obs is what they observe now and
// Reward, Terminated, Truncated tell of the step. It does not allocate.
//
// If the error says that environments are lost, the others have made their step, which counts; the lost ones have a
// reward of 0, have not ended, and wait for a Reset.
func (s *Stage) Step() (Ended, error) {
	lost := s.Advance()
	if lost != nil && Lost(lost) == nil {
		return 0, lost
	}
	ended, env, err := s.tr.CheckStep(s.t-1, s.mode)
	if err != nil {
		return 0, fmt.Errorf("env %d after %s: %w", env, hostabi.ExportStep, err)
	}
	return ended, lost
}

// Advance is Step without a look at what was written, for measuring the environment alone.
func (s *Stage) Advance() error {
	if s.t == s.tr.Schema.Shape.Steps {
		s.carry()
	}
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

// blank makes nothing happen in the step of environments that are lost.
func (s *Stage) blank(lost []Span) {
	reward := s.float32Row(ColReward, s.t)
	terminated, truncated := s.tr.Row(ColTerminated, s.t).Data, s.tr.Row(ColTruncated, s.t).Data
	_, masked := s.tr.Schema.Layout(ColMask)
	for _, span := range lost {
		for env := max(span.First, 0); env < min(span.First+span.Count, len(reward)); env++ {
			reward[env], terminated[env], truncated[env] = 0, 0, 0
			s.tr.Row(ColObs, s.t+1).CopyRow(env, s.tr.Row(ColObs, s.t))
			if masked {
				s.tr.Row(ColMask, s.t+1).CopyRow(env, s.tr.Row(ColMask, s.t))
			}
		}
	}
}

// carry moves what is observed to row 0.
func (s *Stage) carry() {
	copy(s.tr.Row(ColObs, 0).Data, s.tr.Row(ColObs, s.t).Data)
	if _, ok := s.tr.Schema.Layout(ColMask); ok {
		copy(s.tr.Row(ColMask, 0).Data, s.tr.Row(ColMask, s.t).Data)
	}
	s.t = 0
}

// Action returns the actions of the coming step, one per environment, to be written.
func (s *Stage) Action() []int32 {
	if s.t == s.tr.Schema.Shape.Steps {
		s.carry()
	}
	return s.tr.Row(ColAction, s.t).Int32()
}

// LogProb returns room for the log-probability of each action.
func (s *Stage) LogProb() []float32 { return s.float32Row(ColLogProb, s.t%s.tr.Schema.Shape.Steps) }

// Value returns room for the value of each observation.
func (s *Stage) Value() []float32 { return s.float32Row(ColValue, s.t) }

// Obs returns what the environments observe now.
func (s *Stage) Obs() Matrix { return s.tr.Row(ColObs, s.t) }

// Mask returns which actions are legal now; Rows is 0 if the environment has no mask.
func (s *Stage) Mask() Matrix {
	if _, ok := s.tr.Schema.Layout(ColMask); !ok {
		return Matrix{}
	}
	return s.tr.Row(ColMask, s.t)
}

// FinalObs returns the last observations of episodes that ended in the last step, under same-step autoreset.
func (s *Stage) FinalObs() Matrix { return s.tr.Row(ColFinalObs, 0) }

// Reward returns the rewards of the last step.
func (s *Stage) Reward() []float32 { return s.float32Row(ColReward, s.t-1) }

// Terminated returns the flags of the last step.
func (s *Stage) Terminated() []byte { return s.tr.Row(ColTerminated, s.t-1).Data }

// Truncated returns the flags of the last step.
func (s *Stage) Truncated() []byte { return s.tr.Row(ColTruncated, s.t-1).Data }

// float32Row returns one row of a column with one f32 per environment.
func (s *Stage) float32Row(c Column, row int) []float32 {
	return s.tr.Row(c, row).Float32()
}

// Whole returns the block with its margins, and the row of it that is observed now.
func (s *Stage) Whole() (t Trajectory, row int) {
	return Trajectory{Schema: s.whole, Mem: s.tr.Mem}, s.t
}

// Close closes the environments and frees the block.
func (s *Stage) Close() error {
	err := s.Env.Close()
	if s.loan != (arena.Loan{}) {
		err = errors.Join(err, s.loan.Abort())
	}
	return errors.Join(err, s.arena.Close())
}
