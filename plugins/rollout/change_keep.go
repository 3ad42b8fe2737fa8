package rollout

import (
	"errors"

	"github.com/rlhost/rlhost/core/env"
)

// carryState gives environments the state of those that run. If it reports false they are as good as new, and what
// runs is as it was.
func (s *split) carryState(to *batch) bool {
	err := s.carryWhole(to)
	if err != nil {
		err = s.carryEach(to)
	}
	if err == nil {
		return true
	}
	s.c.h.Log.Warn("episodes are not carried over", "split", s.index, "reason", err)
	to.renewed(err)
	return false
}

// renewed makes environments as good as new that cannot go on because of an error.
func (b *batch) renewed(err error) {
	var f *env.Fault
	if errors.As(err, &f) && f.Poisons() || errors.Is(err, env.ErrPoisoned) {
		_ = b.env.Renew() // what that cannot do either is found when it is bound
	}
}

// carryWhole carries whole instances, bit for bit, between plugins that are made of the same.
func (s *split) carryWhole(to *batch) error {
	if s.sides != nil || !sameInstances(s.plugin, to.plugin) {
		return env.ErrUnsupported
	}
	if err := copyEnv(to.env, s.env); err != nil {
		return err
	}
	to.calls = s.calls
	return nil
}

// copyEnv makes one batch of environments what another is.
func copyEnv(to, from env.Env) error {
	if c, ok := to.(env.Copier); ok {
		if err := c.CopyFrom(from); !errors.Is(err, env.ErrUnsupported) {
			return err
		}
	}
	state, err := from.Snapshot()
	if err != nil {
		return err
	}
	return to.Restore(state)
}

// sameInstances reports whether an instance of one plugin can go on with the memory of one of the other.
func sameInstances(a, b env.Plugin) bool {
	if a.Hash() != b.Hash() {
		return false
	}
	x, ok := a.(env.Configured)
	y, also := b.(env.Configured)
	return ok == also && (!ok || x.Configuration() == y.Configuration())
}

// carryEach carries one environment after the other. It allocates nothing where those neither do.
func (s *split) carryEach(to *batch) error {
	into, ok := to.env.(env.Stater)
	if !ok {
		return env.ErrUnsupported
	}
	for index := range s.n {
		from, ok := s.ownerOf(index).env.(env.Stater)
		if !ok {
			return env.ErrUnsupported
		}
		var err error
		if to.saved, err = from.SaveEnv(index, to.saved[:0]); err != nil {
			return err
		}
		if err := into.LoadEnv(index, to.saved); err != nil {
			return err
		}
	}
	return nil
}
