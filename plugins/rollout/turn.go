package rollout

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// credit announces, from the goroutine that freed it, that a block of the split is free.
func (s *split) credit(block uint32) {
	s.rows.c.h.Receiver.Control(loop.Func(s.onCredit), hostabi.Message{T: block})
}

// onCredit takes a block that has become free and starts on it if the split has been waiting for one. A pause of the component may wait
// for this block.
func (s *split) onCredit(m *hostabi.Message) {
	s.free = append(s.free, m.T)
	if s.rows.c.h.Run.Synchronous {
		s.recount()
	}
	if !s.rows.writing {
		s.begin()
		s.endPause()
	}
}

// begin starts a block: binds it, writes row 0 and asks for its actions, or for reset parameters first.
func (s *split) begin() {
	if s.rows.c.rest.wanted && !s.behind() || s.rows.c.wanted.Err() != nil {
		return
	}
	loan, err := s.lend()
	if errors.Is(err, arena.ErrBusy) {
		return
	}
	if err != nil {
		s.rows.c.h.Fail(err)
		return
	}
	s.loan, s.t = loan, 0
	s.rows.c.begun++
	s.turn, s.since = s.rows.c.begun, s.rows.c.h.Trace.Now()
	s.rows.open(loan.Bytes(), loan.Block())
	s.minVersion = ^uint64(0)
	if s.rows.paramsOf().Load(s.params); s.rows.c.resets != nil {
		s.request(awaitsParams, s.rows.c.resets)
		return
	}
	s.enter()
}

// onParams resumes a split whose reset parameters have been written.
func (s *split) onParams() {
	if env, err := s.rows.paramsOf().Check(); err != nil {
		s.rows.c.h.Fail(fmt.Errorf("what answers %s: environment %d: %w", signalResets, s.first+env, err))
		return
	}
	s.rows.paramsOf().Save(s.params)
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

// ask sends row t to inference.
func (s *split) ask() {
	s.rows.acting.mark(s.rows.tr, s.t)
	s.last = s.t == s.rows.c.config.Horizon || s.rows.whole.allOver()
	r := trajectory.ActRequest{
		Block: s.loan.Handle(), T: s.t, Split: uint32(s.index),
		Step: s.steps + uint64(s.t), FirstEnv: uint32(s.first * s.rows.c.schema.Agents),
		ValueOnly: s.last, Bootstrap: s.rows.bootstrap,
	}
	s.asked = 1<<len(s.rows.acting.newest) - 1
	s.owed.set(awaitsActions, s.asked)
	m := r.Message()
	m.Sender = s.rows.c.h.ID // the reply comes back to it
	if err := s.rows.c.obsReady.Emit(m); err != nil {
		s.rows.c.h.Fail(err)
	}
}

func (s *split) expects(r trajectory.ActRequest) bool {
	return s.asked>>r.Policy&1 != 0 && r.Block == s.loan.Handle() && r.T == s.t
}

// onActions takes the answer of a policy. When all have answered, it steps the environments with the actions of row t, or finishes
// the block after its last row.
func (s *split) onActions(policy int, version uint64) {
	s.asked &^= 1 << policy
	if !s.last {
		s.minVersion, s.rows.acting.newest[policy] = min(s.minVersion, version), max(s.rows.acting.newest[policy], version)
		s.rows.acting.answered(s.rows.tr, s.t, policy)
	}
	if s.asked != 0 {
		s.owed.set(awaitsActions, s.asked)
		return
	}
	s.owed.set(awaitsNothing, 0)
	if s.last {
		if s.rows.c.rewards != nil {
			s.request(awaitsRewards, s.rows.c.rewards)
			return
		}
		s.finish()
		return
	}
	if s.next != nil && s.next.at == component.AtNow {
		s.next.drop()
		return
	}
	if s.rows.agents != nil {
		s.rows.tr.KeepState(s.t)
	}
	var err error
	if s.stepping, err = s.stepper().step(s.t, s.ready); !s.stepping {
		s.stepped(err)
	}
}

// onReady resumes a pending step.
func (s *split) onReady(*hostabi.Message) {
	if !s.stepping {
		return
	}
	if over, err := s.stepper().arrive(); over {
		s.stepping = false
		s.stepped(err)
	}
}

// stepped continues after Step has returned.
func (s *split) stepped(err error) {
	if err := s.stepper().settle(s.t, err); err != nil {
		s.fault(err)
		return
	}
	s.rows.c.first.stepped()
	s.t++
	if s.next == nil || s.next.crossRow() {
		s.ask()
	}
}

// onShaped commits the block of a split whose rewards have been shaped.
func (s *split) onShaped() {
	valid := s.rows.tr.Bytes(trajectory.Valid)
	for i, r := range s.rows.tr.Float32(trajectory.ShapedReward) {
		if valid[i] != 0 && (math.IsNaN(float64(r)) || math.IsInf(float64(r), 0)) {
			env := s.first + i%s.rows.n/s.rows.c.schema.Agents
			s.rows.c.h.Fail(fmt.Errorf("what answers %s: shaped_reward of env step %d of environment %d is %g", signalRewards, s.steps+uint64(i/s.rows.n), env, r))
			return
		}
	}
	s.finish()
}

// finish commits the block and begins the next one if one is free, with other environments if they have waited for this boundary.
func (s *split) finish() {
	if m := s.next; m != nil && m.at != component.AtEpisode {
		m.crossBlock()
		return
	}
	if s.commit() {
		s.begin()
		s.endPause()
	}
}

// commit completes the block, and emits it with the episodes that ended in it. It reports whether the run continues.
func (s *split) commit() bool {
	if s.rows.agents != nil {
		s.rows.agents.moveLate(s.rows.tr)
	}
	s.rows.endWhole(s.t, s.first)
	by := s.stampBlock()
	rows := s.rows.count(by, s.first, s.steps)
	if s.rows.agents != nil {
		s.rows.agents.cutTraces(s.rows.tr)
	}
	s.rows.acting.divide(s.rows.tr)
	newest := s.batch
	if s.versions != nil {
		newest = s.versions.all[len(s.versions.all)-1]
	}
	*s.rows.tr.Meta() = trajectory.Meta{
		Sequence: s.sequence, FirstEnv: uint32(s.first), Rollout: uint16(s.rows.c.h.Index), Split: uint16(s.index),
		FirstStep: s.steps, ValidRows: uint32(rows), PluginVersion: newest.version.id,
		MinVersion: s.minVersion, MaxVersion: slices.Max(s.rows.acting.newest),
	}
	if s.carried = false; s.rows.whole == nil {
		s.keepRow(s.t)
	}
	s.steps += uint64(s.rows.c.config.Horizon) // padding included: the actions of an environment do not depend on when others end
	s.sequence++
	s.rows.writing = false
	s.record()
	s.rows.c.envSteps.Add(uint64(rows))
	err := s.handOver()
	if err != nil {
		s.rows.c.h.Fail(err)
	}
	return err == nil
}

// endPause ends the wait for a Pause if no split of the component has anything left to do.
func (s *split) endPause() {
	if s.rows.c.rest.rested == nil {
		return
	}
	for _, other := range s.all {
		if other.rows.writing || other.behind() {
			return
		}
	}
	rested := s.rows.c.rest.rested
	s.rows.c.rest.rested = nil
	rested()
}
