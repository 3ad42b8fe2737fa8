package member

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/calls"
	"github.com/rlhost/rlhost/core/cluster"
	"github.com/rlhost/rlhost/core/members"
)

// callTime bounds a call to a host that is here: an optimiser step of a large network takes seconds.
const callTime = 5 * time.Minute

// firstTime bounds the first call: a host of another version may not know of calls.
const firstTime = 10 * time.Second

// errLost is the cause of calls to hosts that are gone.
var errLost = errors.New("the host is lost, or has left")

// Callee is a host that does what calls ask for, as long as its lease lasts.
type Callee struct {
	name   string
	caller *calls.Caller
	ctx    context.Context
	end    context.CancelCauseFunc
	within time.Duration // of the next call
}

// Name returns the host's name.
func (c *Callee) Name() string { return c.name }

// Call has the host do something once, and returns its reply. It belongs to one goroutine. After an error the callee is of no more use.
func (c *Callee) Call(data []byte) ([]byte, error) {
	ctx, stop := context.WithTimeoutCause(c.ctx, c.within, fmt.Errorf("it has not answered for %v", c.within))
	defer stop()
	reply, err := c.caller.Call(ctx, data)
	if err != nil {
		c.end(err)
	}
	c.within = callTime
	return reply, err
}

// callees are the hosts of a service that are called. Any goroutine.
type callees struct {
	say func(key string, frame []byte)

	mu   sync.Mutex
	list map[string]*Callee // by key
	last uint64             // session
}

// here returns the hosts of a list that are here, sorted by name.
func (s *callees) here(hosts []members.Host) (list []*Callee) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range hosts {
		if h.State != members.Here {
			continue
		}
		c := s.list[h.Key]
		if c == nil || c.ctx.Err() != nil {
			c = s.make(h.Key, h.Grant.Name)
			s.list[h.Key] = c
		}
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *Callee) int { return strings.Compare(a.name, b.name) })
	return list
}

// make makes a callee, with mu held. Sessions of a later process of the run are above the sessions of this one.
func (s *callees) make(key, name string) *Callee {
	s.last = max(s.last+1, uint64(time.Now().UnixNano()))
	ctx, end := context.WithCancelCause(context.Background())
	return &Callee{name: name, ctx: ctx, end: end, within: firstTime, caller: calls.NewCaller(s.last, func(frame []byte) { s.say(key, frame) })}
}

// replied takes a frame of a host's reply.
func (s *callees) replied(subject string, frame []byte) []byte {
	s.mu.Lock()
	c := s.list[cluster.KeyOf(subject)]
	s.mu.Unlock()
	if c != nil {
		c.caller.Hear(frame)
	}
	return nil
}

// gone ends the calls to a host.
func (s *callees) gone(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.list[key]; c != nil {
		c.end(errLost)
	}
}
