package rollout

import (
	"errors"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/trajectory"
)

// account is what has been counted of one environment's running episode.
type account struct {
	Return float64
	Length uint32
}

// account goes through the block in (t, env) order, emits the episodes that end in it and returns the number of
// valid rows. Rewards are raw. An episode that a loss has cut is not emitted: the host ended it, and a window of
// returns that counts it would be lower the more processes die. The same goes for one that a change has ended.
func (s *split) account() (rows int) {
	one, n, accounts := s.stampBlock(), s.n, s.accounts
	terminated, truncated := s.tr.Bytes(trajectory.Terminated), s.tr.Bytes(trajectory.Truncated)
	for row := range s.c.config.Horizon {
		at := row * n
		reward, valid := s.tr.Row(trajectory.Reward, row).Float32()[:len(accounts)], s.tr.Row(trajectory.Valid, row).Data[:len(accounts)]
		for env := range accounts {
			a, i := &accounts[env], at+env
			if valid[env] == 0 {
				if s.cuts[i]&lostRow != 0 {
					s.endUntold(a)
				}
				continue
			}
			rows++
			a.Return += float64(reward[env])
			a.Length++
			if terminated[i]|truncated[i] != 0 {
				s.ended(i, env, terminated[i] != 0, one)
			}
		}
	}
	s.countRows(rows, one)
	return rows
}

// ended is for an episode that has ended in a row of the block.
func (s *split) ended(i, env int, terminated, one bool) {
	cut := s.cuts[i]
	if cut&cutRow != 0 && cut&endRow == 0 {
		return // the lost row behind it ends the episode
	}
	if cut&endRow == 0 {
		by := s.maker
		if !one {
			by = s.cast[s.makers[i]]
		}
		s.emitEpisode(env, terminated, by)
		if !by.onTrial {
			s.reports.count(i)
		}
	}
	s.accounts[env] = account{}
}

// countRows counts the valid rows of the block for the versions that have made them.
func (s *split) countRows(rows int, one bool) {
	if one {
		s.version.envSteps.Add(uint64(rows))
		return
	}
	for i, valid := range s.tr.Bytes(trajectory.Valid) {
		s.cast[s.makers[i]].version.envSteps.Add(uint64(valid))
	}
}

// accountDropped counts the rows before row t of a block that nobody will get, for episodes that go on without them.
// Those that ended in them are told to nobody.
func (s *split) accountDropped(t int) {
	reward, valid := s.tr.Float32(trajectory.Reward), s.tr.Bytes(trajectory.Valid)
	terminated, truncated := s.tr.Bytes(trajectory.Terminated), s.tr.Bytes(trajectory.Truncated)
	for i := range t * s.n {
		a := &s.accounts[i%s.n]
		switch {
		case valid[i] == 0 && s.cuts[i]&lostRow != 0:
			s.endUntold(a)
		case valid[i] == 0:
		case terminated[i]|truncated[i] != 0:
			*a = account{}
		default:
			a.Return += float64(reward[i])
			a.Length++
		}
	}
}

func (s *split) emitEpisode(env int, terminated bool, by maker) {
	a := s.accounts[env]
	by.version.episodes.Inc()
	by.version.returns.Add(a.Return)
	m := trajectory.Episode{
		Return: float32(a.Return), Length: a.Length, Env: uint32(s.first + env), Terminated: terminated, Task: by.task,
	}.Message()
	m.PolicyVersion = s.maxVersion
	err := s.c.episodes.Emit(m)
	if errors.Is(err, bus.ErrOverrun) { // more episodes in one block than can wait: who counts them gets the others
		s.c.untold.Inc()
		return
	}
	if err != nil {
		s.c.h.Fail(err)
	}
}

// limit truncates the episodes that have reached the limit in row t. Environments that ended by themselves start
// to count anew; those that the host ends are reset here, with their last observation kept.
func (s *split) limit(ended trajectory.Ended) trajectory.Ended {
	terminated, truncated := s.tr.Row(trajectory.Terminated, s.t).Data, s.tr.Row(trajectory.Truncated, s.t).Data
	valid := s.tr.Row(trajectory.Valid, s.t).Data
	for i := range s.ages {
		s.ages[i] += uint32(valid[i])
		if terminated[i]|truncated[i] != 0 {
			s.ages[i] = 0
		}
		if s.ages[i] >= uint32(s.c.config.EpisodeLimit) {
			truncated[i] = 1
			s.limited[i] = 1
			s.ages[i] = 0
			ended |= trajectory.AnyTruncated
		}
	}
	return ended
}
