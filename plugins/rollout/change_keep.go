package rollout

import (
	"errors"

	"github.com/rlhost/rlhost/core/rollout"
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
	var f *rollout.Fault
	if errors.As(err, &f) && f.Poisons() || errors.Is(err, rollout.ErrPoisoned) {
		_ = b.env.Renew() // what that cannot do either is found when it is bound
	}
}

// carryWhole carries whole instances, bit for bit, between plugins that are made of the same.
func (s *split) carryWhole(to *batch) error {
	if s.sides != nil || !sameInstances(s.plugin, to.plugin) {
		return rollout.ErrUnsupported
	}
	if err := copyEnv(to.env, s.env); err != nil {
		return err
	}
	to.calls = s.calls
	return nil
}

// copyEnv makes one batch of environments what another is.
func copyEnv(to, from rollout.Env) error {
	if c, ok := to.(rollout.EnvCopier); ok {
		if err := c.CopyFrom(from); !errors.Is(err, rollout.ErrUnsupported) {
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
func sameInstances(a, b rollout.Plugin) bool {
	if a.Hash() != b.Hash() {
		return false
	}
	x, ok := a.(rollout.Configured)
	y, also := b.(rollout.Configured)
	return ok == also && (!ok || x.Configuration() == y.Configuration())
}

// carryEach carries one environment after the other. It allocates nothing where those neither do.
func (s *split) carryEach(to *batch) error {
	into, ok := to.env.(rollout.EnvStater)
	if !ok {
		return rollout.ErrUnsupported
	}
	for env := range s.n {
		from, ok := s.ownerOf(env).env.(rollout.EnvStater)
		if !ok {
			return rollout.ErrUnsupported
		}
		var err error
		if to.saved, err = from.SaveEnv(env, to.saved[:0]); err != nil {
			return err
		}
		if err := into.LoadEnv(env, to.saved); err != nil {
			return err
		}
	}
	return nil
}
