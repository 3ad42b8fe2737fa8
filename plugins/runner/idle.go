package runner

import (
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/trajectory"
)

// idle notices a policy that does not move where every step costs 1: its episodes end by the time limit alone, with minus the limit
// as return, and its actions are hardly less random than at first.
type idle struct {
	entropy float64 // of the first dataset; 0 before
	limit   uint32  // length of all episodes since, all of which the limit has ended
	since   uint64  // env steps that had been learned from by then
	told    bool
}

const (
	idleEnvSteps = 100_000 // that are learned from meanwhile
	idleReturn   = 0.05    // of the limit: how far the mean return may be from it
	idleEntropy  = 0.7     // remaining share of the first entropy
)

// ended takes in an episode, when so many env steps have been learned from.
func (s *idle) ended(e trajectory.Episode, trained uint64) {
	if !e.Terminated && e.Length == s.limit {
		return
	}
	s.limit, s.since = e.Length, trained
	if e.Terminated {
		s.limit = 0
	}
}

// warnOfIdleness reports once that the leading policy does not move.
func (rn *Runner) warnOfIdleness() {
	s, entropy := &rn.idle, rn.latest["losses/entropy"]
	if s.entropy == 0 {
		s.entropy = entropy
	}
	limit := float64(s.limit)
	if s.told || s.limit == 0 || rn.trained < s.since+idleEnvSteps || !rn.window.Full() || !(math.Abs(rn.window.Mean()+limit) <= idleReturn*limit) ||
		!(s.entropy > 0 && entropy >= idleEntropy*s.entropy) {
		return
	}
	s.told = true
	rn.h.Log.Warn(fmt.Sprintf("over %d env steps every episode ended at its limit of %d, with the return of standing still", rn.trained-s.since, s.limit),
		"mean_return", rn.window.Mean(), "entropy", entropy, "first_entropy", s.entropy, "env_steps", rn.trained, "help",
		"a higher entropy of the learner, such as 0.1, keeps it trying, and a lower gamma, such as 0.9, counts what is near for more (docs/how-to/my-run-does-not-learn.md)")
}
