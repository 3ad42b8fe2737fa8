package process

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
)

// hub finds the process of a holder number, to tell it that a block has become free.
type hub struct {
	lives [hostabi.MaxHolder + 1]atomic.Pointer[life]
}

// joinHub makes the hub of a set of arenas know a process.
func (r *Runtime) joinHub(l *life) {
	r.mu.Lock()
	defer r.mu.Unlock()
	set := l.x.h.Arenas
	h := r.hubs[set]
	if h == nil {
		h = new(hub)
		r.hubs[set] = h
		set.Credits(h.credit)
	}
	h.lives[l.holder].Store(l)
}

// leaveHub is the inverse of joinHub, and does nothing without it.
func (r *Runtime) leaveHub(l *life) {
	r.mu.Lock()
	defer r.mu.Unlock()
	set := l.x.h.Arenas
	h := r.hubs[set]
	if h == nil || l.link == nil {
		return
	}
	for i := range h.lives {
		h.lives[i].CompareAndSwap(l, nil)
	}
	for i := range h.lives {
		if h.lives[i].Load() != nil {
			return
		}
	}
	set.Credits(nil)
	delete(r.hubs, set)
}

// credit tells a process that a block is free. It runs wherever the block became free.
func (h *hub) credit(holder int, block hostabi.Handle) {
	if holder < 1 || holder >= len(h.lives) {
		return
	}
	if l := h.lives[holder].Load(); l != nil {
		l.link.Post(hostabi.Message{Slot: hostabi.LinkCredit, Handle: block})
	}
}

func encodeSpec(s *hostabi.EnvSpec) *native.EnvSpec { return native.EncodeSpec(s) }

// Status is what is known of one process.
type Status struct {
	Component string
	Program   string // name and command line
	PID       int    // 0 while there is none
	Restarts  int
	// Unfinished is how many messages the process has not said to be finished with.
	Unfinished int
	State      string // starting, running, restarting, stopping, failed
}

// Running returns the processes of components, in the order of their names.
func (r *Runtime) Running() []Status {
	r.mu.Lock()
	proxies := keys(r.proxies)
	r.mu.Unlock()
	list := make([]Status, 0, len(proxies))
	for _, x := range proxies {
		list = append(list, x.status())
	}
	slices.SortFunc(list, func(a, b Status) int { return cmp.Compare(a.Component, b.Component) })
	return list
}

func (x *proxy) status() Status {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := Status{Component: x.h.Name, Program: x.program.String(), Restarts: x.restarts, State: x.state}
	if x.life != nil && x.state == stateRunning {
		s.PID = x.life.process.pid()
		s.Unfinished = x.life.link.Stats().Unacked
	}
	return s
}

func (r *Runtime) enlist(x *proxy) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.proxies[x] = struct{}{}
}

func (r *Runtime) strike(x *proxy) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.proxies, x)
}

// grace is how long a component may take to stop.
func (r *Runtime) grace() time.Duration { return cmp.Or(max(r.options.Grace, 0), DefaultGrace) }
