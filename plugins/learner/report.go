package learner

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
	"github.com/rlhost/rlhost/hostabi"
)

// StatNames returns the names of the float64 values in a block of the stats signal.
func StatNames() []string {
	return append([]string{"global_step", "policy_version", "charts/learning_rate", "charts/clip",
		"lag/mean", "lag/max", "lag/optimizer_steps_mean", "lag/dropped_rows", "learner/optimizer_steps",
		"perf/update_seconds"}, ppo.StatNames()...)
}

// report emits the numbers of one update. If the runner is so late that no block is free, the report is skipped
// and counted: learning does not wait for its log.
func (l *Learner) report(s *ppo.Stats, r ppo.Rates, took time.Duration) error {
	loan, err := l.statsAt.Loan()
	if errors.Is(err, arena.ErrExhausted) {
		l.skipped.Inc()
		return nil
	}
	if err != nil {
		return err
	}
	l.values = append(l.values[:0], float64(l.envSteps), float64(l.version), float64(r.LearningRate), float64(r.Clip),
		l.lag.mean, float64(l.lag.max), l.lag.optimizerSteps, float64(l.droppedRows.Value()), float64(l.optimizerSteps),
		took.Seconds())
	l.values = s.Values(l.values)
	for i, v := range l.values {
		binary.LittleEndian.PutUint64(loan.Bytes()[8*i:], math.Float64bits(v))
	}
	handle, err := loan.Commit()
	if err != nil {
		return err
	}
	if err := l.stats.Emit(hostabi.Message{Handle: handle, PolicyVersion: l.version}); err != nil {
		return err
	}
	return l.statsAt.Release(handle)
}

// loud counts datasets in a row whose gradients were far beyond the clip.
type loud struct {
	datasets int
	told     bool
}

// This many datasets with gradients this many times max_grad_norm are no accident.
const (
	loudDatasets = 10
	loudNorms    = 100
)

// warnOfClip reports once that the clip leaves almost nothing of the gradients. Adam compensates a constant factor, but
// not one that the value's errors change for each minibatch, nor one that brings gradients below adam_eps.
func (l *Learner) warnOfClip(s *ppo.Stats) {
	limit := l.config.MaxGradNorm
	if limit == 0 || s.GradNorm <= loudNorms*limit {
		l.loud.datasets = 0
		return
	}
	l.loud.datasets++
	if l.loud.told || l.loud.datasets < loudDatasets {
		return
	}
	l.loud.told = true
	help := "scale the environment's rewards down, so that discounted returns are some hundred at most: larger values are hardly learned"
	if !l.config.SeparateGradNorms {
		help += "; separate_grad_norms = true or a larger max_grad_norm keeps the value's gradient from shrinking the policy's"
	}
	l.h.Log.Warn(fmt.Sprintf("gradients were more than %d times max_grad_norm in %d datasets in a row", loudNorms, loudDatasets),
		"grad_norm", s.GradNorm, "actor_grad_norm", s.ActorGradNorm, "critic_grad_norm", s.CriticGradNorm,
		"max_grad_norm", limit, "help", help)
}

// warnOfProcessors reports more learners than there are processors, which wait for one another at every optimiser step.
func (l *Learner) warnOfProcessors(here int) {
	if l.config.Learners > here {
		l.h.Log.Warn("there are more learners than processors: they take turns, and wait for one another at each optimiser step", "learners", l.config.Learners,
			"processors", here, "help", fmt.Sprintf("use learners = %d or fewer", here))
	}
}

// mostDivergence is an approx_kl that no dataset should have: the policy has changed so much that the gathered data says little
// about it. Usual values are 0.002 to 0.05.
const mostDivergence = 1

// warnOfDivergence reports once that a dataset took the policy far from the one that acted.
func (l *Learner) warnOfDivergence(s *ppo.Stats) {
	if l.apart || !(s.ApproxKL > mostDivergence) {
		return
	}
	l.apart = true
	help := "target_kl = 0.02 ends the epochs of a dataset before that"
	if l.config.TargetKL > 0 {
		help = "a smaller learning_rate or larger minibatch keeps a single optimiser step from it"
	}
	l.h.Log.Warn("learning from a dataset took the policy far from the one that acted", "approx_kl", s.ApproxKL, "target_kl", l.config.TargetKL,
		"learning_rate", s.LearningRate, "epochs", l.config.Epochs, "help", help)
}

// stale counts datasets in a row that began far from the policy that acted.
type stale struct {
	datasets int
	told     bool
}

// This much of the first minibatch beyond clip in this many datasets in a row is more than lag usually costs: the preset fast has 0.2 to
// 0.3 with its own epochs.
const (
	staleDatasets = 10
	staleFraction = 0.4
)

// warnOfStaleness reports once that datasets are learned from long after they were gathered: where the first minibatch is beyond
// clip, nothing is learned from it.
func (l *Learner) warnOfStaleness(s *ppo.Stats) {
	if !(s.FirstClipFraction > staleFraction) {
		l.stale.datasets = 0
		return
	}
	l.stale.datasets++
	if l.stale.told || l.stale.datasets < staleDatasets {
		return
	}
	l.stale.told = true
	help := "fewer epochs, a smaller learning_rate or mode = \"sync\" has datasets learned from sooner, or moves the policy less meanwhile"
	if !l.config.VTrace {
		help += "; vtrace = true corrects targets for it"
	}
	l.h.Log.Warn(fmt.Sprintf("more than %v of the first minibatch was beyond clip in %d datasets in a row: the policy that learns is far from those that acted", staleFraction, staleDatasets),
		"first_clipfrac", s.FirstClipFraction, "first_ratio_error", s.FirstRatioError, "clip", l.config.Clip, "epochs", l.config.Epochs, "help", help)
}

// lag is how old the policies that acted in a dataset were when it was learned from, over its env steps.
type lag struct {
	mean           float64 // in policy versions
	max            uint64
	optimizerSteps float64 // mean, in optimiser steps
}

func (l *lag) measure(d *policy.Dataset, version uint64, at *stepsAtVersion, steps uint64) {
	*l = lag{}
	rows := 0.0
	for i, b := range d.Blocks {
		lo, hi := d.Parts[i].Within(b.Schema)
		acted, share := b.Uint64(trajectory.PolicyVersion), float64(hi-lo)/float64(b.Schema.Rows())
		for _, v := range acted[:len(acted)-1] {
			behind := version - min(v, version)
			l.mean += share * float64(behind)
			l.max = max(l.max, behind)
			l.optimizerSteps += share * float64(steps-at.get(v))
			rows += share
		}
	}
	l.mean /= max(rows, 1)
	l.optimizerSteps /= max(rows, 1)
}

// stepsAtVersion remembers after how many optimiser steps this learner published each version.
type stepsAtVersion struct {
	marks []mark // ascending, one for each published version, the newest maxMarks and more
}

type mark struct{ version, steps uint64 }

// maxMarks bounds the memory at 2 MB.
const maxMarks = 1 << 16

func (s *stepsAtVersion) set(version, steps uint64) {
	if len(s.marks) >= 2*maxMarks {
		s.marks = s.marks[:copy(s.marks, s.marks[maxMarks:])]
	}
	s.marks = append(s.marks, mark{version, steps})
}

// get returns the optimiser steps of a version. For a version older than all known ones, which a learner that
// replaced another may meet, it returns the steps of the oldest: the lag is at least that.
func (s *stepsAtVersion) get(version uint64) uint64 {
	i, known := slices.BinarySearchFunc(s.marks, version, func(m mark, v uint64) int { return cmp.Compare(m.version, v) })
	if !known && i > 0 {
		i--
	}
	return s.marks[i].steps
}
