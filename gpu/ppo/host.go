package ppo

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rlhost/rlhost/core/reduce"
	"github.com/rlhost/rlhost/gpu/policy"
)

// Host is shared by engines that compute on the host, and so know how a step ended before the next: the targets,
// the statistics and whether the update still continues.
type Host struct {
	Config  Config
	Targets Targets
	*Round
	Rows []uint32 // of the epoch
	Seat Seat     // of an engine that is one of several; else nil

	stats  Stats
	err    error
	over   bool
	missed bool    // see Seated.Missed
	rate   float32 // with AdaptiveKL, between updates too

	advantage []float32 // of a step's rows
	starts    []int     // of chunks in rows that are shared
	deal      deal      // of those
	share     []uint32  // the seat's
	numbers   []float64 // of a step's loss
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

// Fail ends the update with an error, if there is one: for the other learners of a team, too.
func (h *Host) Fail(err error) {
	if err == nil {
		return
	}
	h.err, h.over = err, true
	if h.Seat != nil {
		h.Seat.Leave(err)
	}
}

// Share returns the rows that the engine computes of some: all, or its seat's share. Of a network that keeps a state they come as
// policy.Dataset.Chunked has them, and a share has whole chunks. It is for reading, until the next call.
func (h *Host) Share(n *policy.Network, rows []uint32) []uint32 {
	if h.Seat == nil {
		return rows
	}
	seat, seats := h.Seat.Place()
	if n.Chunk == 0 {
		lo, hi := reduce.Share(len(rows), seat, seats)
		return rows[lo:hi]
	}
	h.starts, h.share = h.Dataset.ChunkStarts(n, rows, h.starts[:0]), h.share[:0]
	for k, of := range h.deal.out(h.starts, seats) {
		if of == seat {
			h.share = append(h.share, rows[h.starts[k]:h.starts[k+1]]...)
		}
	}
	return h.share
}

// Sit is Seated's.
func (h *Host) Sit(s Seat) { h.Seat, h.missed = s, false }

// Missed is Seated's.
func (h *Host) Missed() bool { return h.missed }

// lossNumbers is how many numbers of LossSums are added up.
const lossNumbers = 7

// Sum returns the sum of the gradients of all shares, and of the sums of their losses, given the engine's own. Where a learner of the team
// has left there is none: the update ends, or, where that was on another host, Missed is true. The gradient is for reading, until the next one.
func (h *Host) Sum(own []float32, loss LossSums) ([]float32, LossSums) {
	if h.Seat == nil {
		return own, loss
	}
	h.numbers = append(h.numbers[:0], loss.PolicyLoss, loss.ValueLoss, loss.Entropy, loss.ApproxKL, loss.OldApproxKL, loss.Clipped, loss.RatioError)
	sum, all, err := h.Seat.Sum(own, h.numbers)
	if err == nil && slices.ContainsFunc(all, func(s []float64) bool { return len(s) != len(h.numbers) }) {
		err = errors.New("a learner's sums of losses are incomplete")
	}
	if err != nil {
		if h.missed = errors.Is(err, ErrFar) || errors.Is(err, reduce.ErrLength); !h.missed {
			h.Fail(err)
		}
		return own, loss
	}
	loss = LossSums{}
	for _, s := range all {
		loss.Add(LossSums{PolicyLoss: s[0], ValueLoss: s[1], Entropy: s[2], ApproxKL: s[3], OldApproxKL: s[4], Clipped: s[5], RatioError: s[6]})
	}
	return sum, loss
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
