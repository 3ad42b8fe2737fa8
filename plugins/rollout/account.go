package rollout

import (
	"errors"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/rollout"
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
	one := s.stampBlock()
	m, counted := s.maker, 0 // rows that have been counted for a version
	reward, valid := s.tr.Float32(rollout.ColReward), s.tr.Bytes(rollout.ColValid)
	terminated, truncated := s.tr.Bytes(rollout.ColTerminated), s.tr.Bytes(rollout.ColTruncated)
	for row := range s.c.config.Horizon {
		at := row * s.n
		for env := range s.accounts {
			i := at + env
			a := &s.accounts[env]
			if valid[i] == 0 {
				if s.cuts[i]&lostRow != 0 {
					s.endUntold(a)
				}
				continue
			}
			if !one && s.cast[s.makers[i]] != m {
				m.version.envSteps.Add(uint64(rows - counted))
				m, counted = s.cast[s.makers[i]], rows
			}
			rows++
			a.Return += float64(reward[i])
			a.Length++
			if terminated[i]|truncated[i] == 0 {
				continue
			}
			if s.cuts[i]&(cutRow|endRow) == 0 {
				s.emitEpisode(env, terminated[i] != 0, m)
				*a = account{}
			} else if s.cuts[i]&endRow != 0 {
				*a = account{}
			}
		}
	}
	m.version.envSteps.Add(uint64(rows - counted))
	return rows
}

// accountDropped counts the rows before row t of a block that nobody will get, for episodes that go on without them.
// Those that ended in them are told to nobody.
func (s *split) accountDropped(t int) {
	reward, valid := s.tr.Float32(rollout.ColReward), s.tr.Bytes(rollout.ColValid)
	terminated, truncated := s.tr.Bytes(rollout.ColTerminated), s.tr.Bytes(rollout.ColTruncated)
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
	m := rollout.Episode{
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
func (s *split) limit(ended rollout.Ended) rollout.Ended {
	terminated, truncated := s.tr.Row(rollout.ColTerminated, s.t).Data, s.tr.Row(rollout.ColTruncated, s.t).Data
	valid := s.tr.Row(rollout.ColValid, s.t).Data
	for i := range s.ages {
		s.ages[i] += uint32(valid[i])
		if terminated[i]|truncated[i] != 0 {
			s.ages[i] = 0
		}
		if s.ages[i] >= uint32(s.c.config.EpisodeLimit) {
			truncated[i] = 1
			s.limited[i] = 1
			s.ages[i] = 0
			ended |= rollout.AnyTruncated
		}
	}
	return ended
}
