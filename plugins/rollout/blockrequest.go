package rollout

import (
	"fmt"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// wish is what a split waits for another component to write into its block.
type wish uint8

const (
	forNothing wish = iota
	forParams       // the reset parameters, before row 0
	forRewards      // what is learned from, behind the last step
)

// asks returns the signal of the requests that a key of the table asks for.
func (c *Rollout) asks(key, what, signal string) (*bus.Signal, error) {
	if c.h.Readers(signal) == 0 {
		return nil, &component.ConfigError{Key: key, Reason: fmt.Sprintf("asks for %s, and nobody answers", what),
			Help: fmt.Sprintf("wire %s to a component that does, and back", component.Qualified(c.h.Name, signal))}
	}
	return c.h.Signal(signal), nil
}

// request asks another component to write into the block.
func (s *split) request(w wish, on *bus.Signal) {
	m := trajectory.BlockRequest{Block: s.loan.Handle(), Split: uint32(s.index), Step: s.steps, FirstEnv: uint32(s.first)}.Message()
	m.Sender = s.c.h.ID
	s.wish = w
	if err := on.Emit(m); err != nil {
		s.c.h.Fail(err)
	}
}

// onAnswer goes on with the split whose wish an answer fulfils.
func (c *Rollout) onAnswer(m *hostabi.Message, w wish, next func(*split)) {
	r := trajectory.BlockRequestOf(m)
	if int(r.Split) >= len(c.splits) || c.splits[r.Split].wish != w || c.splits[r.Split].loan.Handle() != r.Block {
		c.h.Fail(fmt.Errorf("an answer about %v of split %d, which was not asked for", r.Block, r.Split))
		return
	}
	c.splits[r.Split].wish = forNothing
	next(c.splits[r.Split])
}
