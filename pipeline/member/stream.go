package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/cluster"
	"github.com/rlhost/rlhost/core/relay"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// flushEvery is how long messages wait for a block that they could go with.
const flushEvery = 20 * time.Millisecond

// stream sends what one instance of a joined host emits to the run's own host. A block stays claimed until its copy there is free again, so that
// as many are in circulation as on one host.
type stream struct {
	part  *part
	id    uint16 // of the instance
	opens sync.Once

	mu       sync.Mutex
	out      *cluster.Outgoing // nil until the owner takes blocks
	pending  []hostabi.Message // without a block so far
	flushing bool              // a timer is set
	queue    []relay.Block     // for out
	items    map[uint64]item
	last     uint64           // number of an item
	held     []hostabi.Handle // that the owner has committed, the oldest first
	freed    uint64           // of them, by the owner, since the beginning
	released uint64
	opened   bool // it has had a block
	closed   bool
}

// item is what goes as one block of package relay.
type item struct {
	messages []hostabi.Message
	block    hostabi.Handle // claimed, or 0
	took     time.Duration  // the block, where datasets are traced
}

// take sends a message. Its block is valid during the call.
func (s *stream) take(m *hostabi.Message) error {
	steps := uint64(0)
	if m.Handle != 0 {
		tr, lease, err := trajectory.Lease(s.part.arenas, m.Handle)
		if err != nil {
			return err
		}
		steps = uint64(tr.Meta().ValidRows)
		if err := errors.Join(s.part.arenas.Retain(m.Handle), lease.Release()); err != nil {
			return err
		}
		s.opens.Do(func() { s.part.open(s, m.Handle) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		if m.Handle != 0 {
			return s.part.arenas.Release(m.Handle)
		}
		return nil
	}
	s.pending = append(s.pending, *m)
	s.opened = s.opened || m.Handle != 0
	switch {
	case m.Handle != 0 || len(s.pending) == frameMost:
		s.flush(m.Handle, steps)
	case !s.flushing:
		s.flushing = true
		time.AfterFunc(flushEvery, s.flushLate)
	}
	return nil
}

func (s *stream) flushLate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushing = false
	if len(s.pending) > 0 && !s.closed {
		s.flush(0, 0)
	}
}

// flush makes an item of the pending messages, with mu held.
func (s *stream) flush(block hostabi.Handle, steps uint64) {
	s.last++
	s.items[s.last] = item{s.pending, block, s.part.trace.Took(block)}
	s.pending = nil
	s.queue = append(s.queue, relay.Block{Handle: hostabi.Handle(s.last), Steps: steps})
	s.drain()
}

// drain sends what there is room for, with mu held.
func (s *stream) drain() {
	for s.out != nil && len(s.queue) > 0 && s.out.Put(s.queue[0]) {
		s.queue = s.queue[1:]
	}
}

// body appends the bytes of an item.
func (s *stream) body(to []byte, b relay.Block) []byte {
	s.mu.Lock()
	x := s.items[uint64(b.Handle)]
	s.mu.Unlock()
	to = appendFrame(to, x.messages, x.block != 0, x.took)
	if x.block == 0 {
		return to
	}
	lease, err := s.part.arenas.Lease(x.block)
	if err != nil {
		s.part.fail(fmt.Errorf("block %v is gone before it was sent: %w", x.block, err))
		return to
	}
	to = append(to, lease.Bytes()...)
	if err := lease.Release(); err != nil {
		s.part.fail(err)
	}
	return to
}

// ended takes what the owner has committed, or what has ended with it.
func (s *stream) ended(blocks []relay.Block, committed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range blocks {
		x := s.items[uint64(b.Handle)]
		delete(s.items, uint64(b.Handle))
		switch {
		case x.block == 0:
		case committed:
			s.held = append(s.held, x.block)
		default:
			s.release(x.block)
		}
	}
	s.releaseFreed()
	s.drain()
}

// free notes how many blocks the owner has freed.
func (s *stream) free(freed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freed = max(s.freed, freed)
	s.releaseFreed()
}

func (s *stream) releaseFreed() {
	for ; s.released < s.freed && len(s.held) > 0 && !s.closed; s.released++ {
		s.release(s.held[0])
		s.held = s.held[1:]
	}
}

func (s *stream) release(h hostabi.Handle) {
	if err := s.part.arenas.Release(h); err != nil {
		s.part.fail(err)
	}
}

// close ends the stream and its claims.
func (s *stream) close() {
	s.mu.Lock()
	out := s.out
	s.closed, s.out = true, nil
	s.mu.Unlock()
	if out != nil {
		out.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.items {
		if x.block != 0 {
			s.release(x.block)
		}
	}
	for _, h := range s.held {
		s.release(h)
	}
	s.items, s.held = nil, nil
}

// open asks the owner to take the blocks of an instance, in the background.
func (p *part) open(s *stream, block hostabi.Handle) {
	a, err := p.arenas.Of(block)
	if err != nil {
		p.fail(err)
		return
	}
	q := streamRequest{ID: s.id, Instance: p.nameOf(s.id), Share: p.share.Number, Blocks: a.Blocks(), BlockBytes: a.BlockBytes(), Schema: arena.Document(a.Schema())}
	p.tasks.Go(func() {
		for p.ctx.Err() == nil {
			if err := p.opened(s, &q); err == nil {
				return
			}
			select {
			case <-p.ctx.Done():
			case <-time.After(renewEvery / 4):
			}
		}
	})
}

// opened asks once. An error is that of the way to the owner.
func (p *part) opened(s *stream, q *streamRequest) error {
	ctx, stop := context.WithTimeout(p.ctx, leaseTime)
	defer stop()
	text, err := p.link.Load().Ask(ctx, cluster.SubjectUp(p.key, verbStream), encode(*q))
	if err != nil {
		return err
	}
	var reply streamReply
	if err := json.Unmarshal(text, &reply); err != nil {
		return err
	}
	if reply.Refused != "" {
		p.fail(fmt.Errorf("the run takes no blocks of this host: %s", reply.Refused))
		return nil
	}
	out, err := p.link.Load().Sends(cluster.OutgoingOptions{
		To: cluster.SubjectUp(p.key, subjectOf(verbBlocks, q)), Answers: cluster.SubjectDown(p.key, subjectOf(verbAnswers, q)),
		Incarnation: p.incarnation, Receiver: reply.Incarnation, Queue: q.Blocks + spare, Timeout: 200 * time.Millisecond,
		Body: s.body, Ended: s.ended,
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = out
	s.drain()
	return nil
}
