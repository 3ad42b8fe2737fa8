package pipeline

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
)

// owed are the requests about blocks on loan that an instance on probation has taken and not answered. Their senders wait, so the
// previous version gets the requests if it takes over again.
type owed struct {
	over atomic.Bool // the probation is

	mu   sync.Mutex
	list []component.Waiting // oldest first
}

// take notes a request that a slot has got.
func (o *owed) take(slot string, m *hostabi.Message) {
	if o.over.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, component.Waiting{Slot: slot, Message: *m})
}

// answer notes an answer.
func (o *owed) answer(m *hostabi.Message) {
	if o.over.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := slices.IndexFunc(o.list, func(w component.Waiting) bool { return sameRequest(&w.Message, m) }); i >= 0 {
		o.list = slices.Delete(o.list, i, i+1)
	}
}

// settle ends the probation.
func (o *owed) settle() {
	o.over.Store(true)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = nil
}

// all returns the requests that are not answered.
func (o *owed) all() []component.Waiting {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.list)
}

// sameRequest reports whether two messages are about the same row of a block on loan, for the same sender.
func sameRequest(a, b *hostabi.Message) bool {
	return a.Handle == b.Handle && a.T == b.T && a.Sender == b.Sender
}

// asks makes an instance on probation note its requests and answers. Call it before the instance starts.
func (x *instance) asks(m *component.Manifest) {
	if by, _ := x.live.watched(); len(by) == 0 {
		return
	}
	x.live.owes = &owed{}
	for _, port := range m.Signals {
		if component.PayloadOf(port.Payload).Answers {
			x.host.Signal(port.Name).OnEmit(func(m hostabi.Message) error {
				x.live.owes.answer(&m)
				return nil
			})
		}
	}
}

// unanswered returns the unfinished messages of a failed instance: requests, and its process's messages, without trajectories that it
// has sent on.
func (s *replacement) unanswered() []component.Waiting {
	var list []component.Waiting
	if o := s.old.live.owes; o != nil {
		list = o.all()
	}
	if _, remote := s.old.component.(component.Remote); !remote {
		return list
	}
	asked := len(list)
	for _, w := range s.old.component.(component.Pauser).Waiting() {
		again := slices.ContainsFunc(list[:asked], func(o component.Waiting) bool { return sameRequest(&o.Message, &w.Message) })
		if again || s.t.p.steps.sent(s.old.instance, w.Message.Handle) {
			s.t.p.running.unclaim(&w)
			continue
		}
		list = append(list, w)
	}
	return list
}
