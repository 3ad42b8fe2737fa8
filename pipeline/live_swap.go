package pipeline

import (
	"context"

	"github.com/rlhost/rlhost/core/control"
)

// swapStep is the replacement of one instance.
type swapStep struct {
	old member
	new *instance
}

// prepareInstances gives the next assembly its members.
func (t *Transition) prepareInstances(context.Context) error {
	if err := t.plan.fixed(); err != nil {
		return err
	}
	for _, s := range t.plan.seats {
		if s.old == nil || len(s.why) > 0 {
			return refuse(control.CodeRefused, "", "instances cannot be made yet")
		}
		t.next.members = append(t.next.members, member{s.old.instance, s.of, s.index, s.of.nameOf(s.index)})
	}
	t.next.wires = t.before.wires
	return nil
}
