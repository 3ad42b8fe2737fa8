package rollout

import (
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/trajectory"
)

// Signals of the requests.
const (
	signalResets  = "resets"
	signalRewards = "rewards"
)

// awaits is what a split waits for another component to write into its block.
type awaits uint8

const (
	awaitsNothing awaits = iota
	awaitsParams         // the reset parameters, before row 0
	awaitsRewards        // what is learned from, behind the last step
)

// request asks another component to write into the block.
func (s *split) request(w awaits, on *bus.Signal) {
	m := trajectory.BlockRequest{Block: s.loan.Handle(), Split: uint32(s.index), Step: s.steps, FirstEnv: uint32(s.first)}.Message()
	m.Sender = s.c.h.ID
	s.awaits = w
	if err := on.Emit(m); err != nil {
		s.c.h.Fail(err)
	}
}

// onParams goes on with a split whose reset parameters have been written.
func (s *split) onParams() {
	if env, err := s.paramsOf().Check(); err != nil {
		s.c.h.Fail(fmt.Errorf("what answers %s: environment %d: %w", signalResets, s.first+env, err))
		return
	}
	s.paramsOf().Save(s.params)
	s.enter()
}

// enter writes row 0 of a block that has its reset parameters, and asks for its actions.
func (s *split) enter() {
	if err := s.firstRow(); err != nil {
		s.fault(err)
		return
	}
	s.ask()
}

// paramsOf are the reset parameters of the block.
func (s *split) paramsOf() trajectory.Params { return trajectory.Params{Trajectory: s.tr} }

// onShaped commits the block of a split whose rewards have been shaped.
func (s *split) onShaped() {
	valid := s.tr.Bytes(trajectory.Valid)
	for i, r := range s.tr.Float32(trajectory.ShapedReward) {
		if valid[i] != 0 && (math.IsNaN(float64(r)) || math.IsInf(float64(r), 0)) {
			env := s.first + i%s.n/s.c.schema.Agents
			s.c.h.Fail(fmt.Errorf("what answers %s: shaped_reward of env step %d of environment %d is %g", signalRewards, s.steps+uint64(i/s.n), env, r))
			return
		}
	}
	s.finish()
}
