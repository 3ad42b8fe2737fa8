package batcher

import (
	"fmt"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// cut makes t its first environments that have so many rows, where it has more, and returns its other ones, with a claim of their own.
// Every environment keeps all its time steps, so that returns and advantages are the same as in the whole block. A block is left whole
// where those rows are no whole environments, or where it has as many parts as can be told apart.
func (b *Batcher) cut(t *claimed, rows int) (rest claimed, ok bool) {
	steps, envs := t.shape.Steps, t.rows/t.shape.Steps
	if t.rows <= rows || rows%steps != 0 || t.part.Number+1 >= t.of.Schema.MaxParts() {
		return claimed{}, false
	}
	lease, err := b.h.Arenas.Lease(t.lease.Handle())
	if err != nil {
		b.h.Fail(fmt.Errorf("trajectory %v: %w", t.lease.Handle(), err))
		return claimed{}, false
	}
	b.removeWaiting(t)
	rest = *t
	t.setPart(trajectory.Part{First: t.part.First, Envs: rows / steps, Number: t.part.Number})
	rest.lease = lease
	rest.setPart(trajectory.Part{First: t.part.First + t.part.Envs, Envs: envs - t.part.Envs, Number: t.part.Number + 1})
	b.addWaiting(t)
	b.addWaiting(&rest)
	return rest, true
}

// setPart makes a claim on a block one on a part of it.
func (t *claimed) setPart(p trajectory.Part) {
	t.part, t.rows, t.valid = p, p.Envs*t.shape.Steps, t.of.ValidIn(p, trajectory.Valid)
}

// rest says in a message which part of its block waits: the last environments, from the first word on, as the part of the number in the
// second one.
func (t *claimed) rest() [2]uint64 { return [2]uint64{uint64(t.part.First), uint64(t.part.Number)} }

// restOf reads what rest has written.
func (t *claimed) restOf(m *hostabi.Message) error {
	first, number := m.Inline[0], m.Inline[1]
	envs := uint64(t.shape.Envs)
	if first == 0 || first >= envs || number == 0 || number >= uint64(t.of.Schema.MaxParts()) {
		return fmt.Errorf("%w: part %d from environment %d on, of %d", trajectory.ErrDataset, number, first, envs)
	}
	t.setPart(trajectory.Part{First: int(first), Envs: int(envs - first), Number: int(number)})
	return nil
}
