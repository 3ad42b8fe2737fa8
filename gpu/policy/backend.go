package policy

import (
	"github.com/rlhost/rlhost/core/trajectory"
)

// Backend computes policies in one way. Its methods may be called concurrently; what they return belongs to one
// goroutine at a time.
type Backend interface {
	// Name is the backend's name in TOML: cpu, gorgonia, cuda.
	Name() string
	// Kernels names the set of kernels in use, such as avx512. Results are bit-equal within one set.
	Kernels() string
	// NewActor prepares acting with a network on up to maxRows rows a call.
	NewActor(n Network, maxRows int) (Actor, error)
	// NewLearner prepares learning from params (canonical vector, copied) with fresh optimiser state.
	NewLearner(n Network, params []float32, c Config) (Learner, error)
}

// Actor acts with one policy version at a time.
type Actor interface {
	// Load replaces the weights. It copies what it needs.
	Load(w Weights) error
	// Act fills the outputs of every request. It does not allocate. A row's outputs depend on its observation,
	// mask, key and the weights alone.
	Act(requests []Request) error
	Close() error
}

// Request asks for the rows of one block at one time. All slices lie in the block and have one element per row,
// but for Obs and Mask.
type Request struct {
	Obs  trajectory.Matrix // f32 [rows][obs], any strides
	Mask trajectory.Matrix // u8 [rows][actions]; Rows = 0 without a mask. A row without a legal action is ErrNoLegalAction.
	// Outputs. Action and LogProb are nil when only the value is wanted.
	Action  []int32
	LogProb []float32
	Value   []float32
	// Key of the action sampling: run seed, global index of row 0's environment, env step of the rows.
	Seed     uint64
	FirstEnv uint32
	Step     uint64
	Greedy   bool // take the most probable action (the first of equals) instead of a sample
}

// Learner improves one policy. It holds parameters and optimiser state.
type Learner interface {
	// Update makes the optimiser steps of one dataset: targets, then Epochs passes over its valid rows in
	// shuffled minibatches (Shuffle), each a clipped-surrogate step (PPOLoss) with Adam.
	Update(d *Dataset, r Rates) (Stats, error)
	// Params copies the canonical vector to dst, which has Network.ParamCount elements.
	Params(dst []float32) error
	// State returns a copy of parameters and optimiser state, for checkpoints.
	State() (State, error)
	// SetState replaces parameters and optimiser state.
	SetState(s State) error
	Close() error
}

// Dataset is one learner round: whole blocks of one shape, in order of their first environment, leased by the
// caller for the duration of Update. Its rows are numbered t-major over all blocks: row = t*E + e, where E is
// the number of environments of all blocks and e counts them in block order. So results do not depend on how
// environments are split over blocks.
type Dataset struct {
	Blocks []trajectory.Trajectory
	// Normaliser that the rows enter the network with; nil without NormalizeObs.
	ObsMean, ObsScale []float32
	Seed              uint64 // run seed, key of the shuffle
	Index             uint64 // counts datasets, from 0; second key of the shuffle
}

// Rates are the hyper-parameters that schedules change from dataset to dataset.
type Rates struct {
	LearningRate float32
	Clip         float32
	Entropy      float32
}

// State is what a learner needs to go on: canonical vectors of equal length.
type State struct {
	Params, AdamM, AdamV []float32
	AdamSteps            uint64
}

// Weights is what a learner publishes and actors load: a view, valid as long as the memory it was made from.
type Weights struct {
	Version           uint64
	Params            []float32 // canonical vector
	ObsMean, ObsScale []float32 // length Obs with NormalizeObs, else empty
}
