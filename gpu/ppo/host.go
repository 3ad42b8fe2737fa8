package ppo

import (
	"fmt"
	"math"

	"github.com/rlhost/rlhost/gpu/policy"
)

// Host is shared by engines that compute on the host, and so know how a step ended before the next: the targets,
// the statistics and whether the update still continues.
type Host struct {
	Config  Config
	Targets Targets
	*Round
	Rows []uint32 // of the epoch

	stats Stats
	err   error
	over  bool
	rate  float32 // with AdaptiveKL, between updates too

	advantage []float32 // of a step's rows
}

// Begin is Engine's.
func (h *Host) Begin(r *Round) {
	h.Round, h.stats, h.err, h.over = r, Stats{ValidRows: float64(len(r.Samples.Valid))}, nil, false
	h.stats.LearningRate = r.Rates.LearningRate
	if h.Config.AdaptiveKL > 0 {
		if h.rate == 0 {
			h.rate = h.bounded(r.Rates.LearningRate)
		}
		h.stats.LearningRate = h.rate
	}
}

// LearningRate is State's.
func (h *Host) LearningRate() float32 { return h.rate }

// SetLearningRate continues with that of a State.
func (h *Host) SetLearningRate(rate float32) { h.rate = rate }

// NextRates returns the rates of the step that is due, given the sums of the loss of its n rows: the learning rate follows
// the divergence from the acting policy where the configuration says so (Rudin et al. 2022).
func (h *Host) NextRates(sums LossSums, n int) Rates {
	r := h.Rates
	if d := h.Config.AdaptiveKL; d > 0 {
		switch kl := sums.ApproxKL / float64(n); {
		case kl > 2*d:
			h.rate = h.bounded(h.rate / rateStep)
		case kl > 0 && kl < d/2:
			h.rate = h.bounded(h.rate * rateStep)
		}
		r.LearningRate = h.rate
	}
	h.stats.LearningRate = r.LearningRate
	return r
}

// rateStep is the factor of a learning rate that follows the divergence.
const rateStep = 1.5

func (h *Host) bounded(rate float32) float32 {
	return max(float32(h.Config.LearningRateMin), min(float32(h.Config.LearningRateMax), rate))
}

// Over reports whether to skip all further work of the update.
func (h *Host) Over() bool { return h.over }

// Fail ends the update with an error, if there is one.
func (h *Host) Fail(err error) {
	if err != nil {
		h.err, h.over = err, true
	}
}

// Aim computes the targets, by V-trace if there are new log-probabilities, one for each row of the dataset.
func (h *Host) Aim(newLogProb []float32) {
	first := h.stats.Epochs == 0
	h.Fail(h.Targets.compute(h.Dataset, &h.Config, newLogProb))
	if h.over {
		return
	}
	if first && h.Config.NormalizeReturns {
		h.stats.Returns = h.Targets.returnsOf(&h.Samples)
	}
	h.Targets.normalise(&h.Samples, h.Unit)
	if first {
		h.stats.ExplainedVariance = h.Targets.ExplainedVariance(&h.Samples)
	}
}

// MomentsOf returns what the advantages of a step's rows are normalised with, if the configuration says so.
func (h *Host) MomentsOf(rows []uint32) Moments {
	if !h.Config.NormalizeAdvantage {
		return Moments{}
	}
	h.advantage = h.advantage[:0]
	for _, row := range rows {
		h.advantage = append(h.advantage, h.Targets.Advantage[row])
	}
	return MomentsOf(h.advantage)
}

// Epoch is Engine's.
func (h *Host) Epoch(rows []uint32) {
	h.Rows = rows
	if !h.over {
		h.stats.Epochs++
	}
}

// Finite ends the update if the gradient of an optimiser step, counted from 1, is not finite.
func (h *Host) Finite(norms GradNorms, step uint64) bool {
	if math.IsNaN(norms.All) || math.IsInf(norms.All, 0) {
		h.Fail(fmt.Errorf("gradient of optimiser step %d: %w", step, policy.ErrNotFinite))
	}
	return !h.over
}

// Stepped counts an optimiser step on n rows that was made. It ends the update where TargetKL is exceeded.
func (h *Host) Stepped(sums LossSums, n int, norms GradNorms) {
	h.stats.add(sums, n, norms)
	h.over = h.Config.TargetKL > 0 && sums.ApproxKL/float64(n) > h.Config.TargetKL
}

// Gathered counts bytes of observations that were copied.
func (h *Host) Gathered(bytes int) { h.stats.Gathered += uint64(bytes) }

// Finish is Engine's. It forgets the round.
func (h *Host) Finish() (Stats, error) {
	h.Round = nil
	if h.err == nil && h.stats.OptimizerSteps > 0 {
		for _, sum := range h.stats.means() {
			*sum /= h.stats.OptimizerSteps
		}
	}
	return h.stats, h.err
}

// add accumulates the sums of a minibatch of rows rows; when the update ends, means are divided by OptimizerSteps.
func (s *Stats) add(sums LossSums, rows int, norms GradNorms) {
	n := float64(rows)
	if s.OptimizerSteps == 0 {
		s.FirstClipFraction = sums.Clipped / n
		s.FirstRatioError = sums.RatioError
	}
	for i, term := range []float64{sums.PolicyLoss / n, sums.ValueLoss / n, sums.Entropy / n, sums.ApproxKL / n,
		sums.OldApproxKL / n, sums.Clipped / n, norms.All, norms.Actor, norms.Critic} {
		*s.means()[i] += term
	}
	s.OptimizerSteps++
}

// means lists the fields that are means over the optimiser steps.
func (s *Stats) means() [9]*float64 {
	return [...]*float64{&s.PolicyLoss, &s.ValueLoss, &s.Entropy, &s.ApproxKL, &s.OldApproxKL, &s.ClipFraction,
		&s.GradNorm, &s.ActorGradNorm, &s.CriticGradNorm}
}
