package proxy

import (
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// spans follows datasets through the component by its messages, since the process has no tracer. nil follows none.
type spans struct {
	h *component.Host

	mu       sync.Mutex
	begun    map[hostabi.Handle]time.Time // blocks that it has asked about and not handed on
	datasets []received                   // that it has got and has published nothing after, the oldest first
	ready    time.Time                    // when it published last: what came before that has waited until then
	loads    received                     // weights that it has got and not acted with
}

// received is a block that has come to the component.
type received struct {
	block   hostabi.Handle
	version uint64
	at      time.Time
}

// maxBegun is how many blocks may be begun before they are forgotten: the blocks of a process that has died stay.
const maxBegun = 4096

func newSpans(h *component.Host) *spans {
	if h.Trace == nil {
		return nil
	}
	return &spans{h: h, begun: map[hostabi.Handle]time.Time{}}
}

// got notes a message for the component.
func (s *spans) got(payload *component.Payload, m *hostabi.Message) {
	if s == nil || !payload.Learned && !payload.Publishes {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := received{m.Handle, m.PolicyVersion, s.h.Trace.Now()}
	if payload.Publishes {
		s.loads = r
		return
	}
	if len(s.datasets) == component.DatasetBlocks { // no more are under way: it has learned from this one without publishing
		s.datasets = append(s.datasets[:0], s.datasets[1:]...)
	}
	s.datasets = append(s.datasets, r)
}

// emits notes a message of the component, before its receivers get it.
func (s *spans) emits(payload *component.Payload, m *hostabi.Message) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case payload.Answers:
		s.acts(m)
	case payload.OnLoan:
		if _, ok := s.begun[m.Handle]; !ok {
			if len(s.begun) == maxBegun {
				clear(s.begun)
			}
			s.begun[m.Handle] = s.h.Trace.Now()
		}
	case payload.Steps:
		from, ok := s.begun[m.Handle]
		if !ok {
			from = s.h.Trace.Now()
		}
		delete(s.begun, m.Handle)
		s.h.Trace.Wrote(s.h.Name, int(m.Split), m.Handle, from)
	case payload.Learned:
		s.batched(m.Handle)
	case payload.Publishes:
		s.publishes(m)
	}
}

// acts notes an answer to a request: the first one by new weights says that they are loaded.
func (s *spans) acts(m *hostabi.Message) {
	if l := s.loads; !l.at.IsZero() && m.PolicyVersion >= l.version {
		s.loads = received{}
		if policy, ok := s.h.PolicyOf(s.h.ID); ok {
			s.h.Trace.Loaded(s.h.Name, policy, l.version, l.at)
		}
	}
}

// batched notes a dataset that the component has made. One that cannot be read is of no use to its learner either.
func (s *spans) batched(dataset hostabi.Handle) {
	lease, err := s.h.Arenas.Lease(dataset)
	if err != nil {
		return
	}
	if _, members, err := trajectory.ReadDataset(lease.Bytes(), nil); err == nil {
		s.h.Trace.Batched(s.h.Name, dataset, members)
	}
	_ = lease.Release() // its claim was taken here
}

// publishes notes a version: it was made of the oldest dataset.
func (s *spans) publishes(m *hostabi.Message) {
	now := s.h.Trace.Now()
	defer func() { s.ready = now }()
	if len(s.datasets) == 0 {
		return
	}
	d := s.datasets[0]
	s.datasets = append(s.datasets[:0], s.datasets[1:]...)
	if s.ready.After(d.at) {
		d.at = s.ready
	}
	if policy, ok := s.h.PolicyOf(s.h.ID); ok {
		s.h.Trace.Learned(s.h.Name, d.block, policy, m.PolicyVersion, d.at)
	}
}
