package ppo

import (
	"errors"

	"github.com/rlhost/rlhost/gpu/policy"
)

// ErrCut is returned by an Update that Cut has ended.
var ErrCut = errors.New("the update was cut short")

// Learner improves one policy. It holds parameters and optimiser state.
type Learner interface {
	// Update makes the optimiser steps of one dataset: targets, then Epochs passes over its valid rows in
	// shuffled minibatches (Shuffle), each a clipped-surrogate step (Loss) with Adam. After an error the optimiser
	// steps made before it stay made; ErrNotFinite leaves parameters finite.
	Update(d *policy.Dataset, r Rates) (Stats, error)
	// Cut ends a running Update after its current minibatch, and every later one before its first, with ErrCut: earlier optimiser
	// steps stay made, and State returns their result. Any goroutine.
	Cut()
	// Params copies the canonical vector, as actors take it, to dst, which has Network.ParamCount elements.
	Params(dst []float32) error
	// State returns a copy of parameters and optimiser state, for checkpoints.
	State() (State, error)
	// SetState replaces parameters and optimiser state.
	SetState(s State) error
	Close() error
}

// Rates are the hyper-parameters that schedules change from dataset to dataset.
type Rates struct {
	LearningRate float32
	Clip         float32
	Entropy      float32
}

// State is the state of a learner: canonical vectors of equal length.
type State struct {
	Params, AdamM, AdamV []float32 // Params has the value in the unit of Returns
	AdamSteps            uint64
	Returns              Returns // with NormalizeReturns
	LearningRate         float32 // with AdaptiveKL: of the next step; 0 before the first
}
