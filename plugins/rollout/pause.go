package rollout

// endPause ends the wait for a Pause if no split of the component has anything left to do.
func (s *split) endPause() {
	if s.c.rest.rested == nil {
		return
	}
	for _, other := range s.all {
		if other.writing || other.behind() {
			return
		}
	}
	rested := s.c.rest.rested
	s.c.rest.rested = nil
	rested()
}

// behind reports whether another split has begun a block of a dataset that this one has no block in yet. In synchronous
// mode what is learned from that dataset waits for this split, whose credit has come with that of the other: resting
// in between would keep the blocks of the others for good.
func (s *split) behind() bool {
	if !s.c.h.Run.Synchronous {
		return false
	}
	for _, other := range s.all {
		if other.begun() > s.begun() {
			return true
		}
	}
	return false
}

// begun returns how many blocks the split has begun.
func (s *split) begun() uint64 {
	if s.writing {
		return s.sequence + 1
	}
	return s.sequence
}
