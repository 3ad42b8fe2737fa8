package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// shared is the state that a component's processes share, one after the other. Its mutex is the proxy's.
type shared struct {
	runtime  *spawn.Runtime
	program  spawn.Program
	kind     string
	manifest component.Manifest
	config   map[string]any
	flow     component.Flow
	h        *component.Host
	signals  []*bus.Signal
	carry    []component.Payload // by signal
	slots    []slot
	meters   meters
	spans    *spans

	configured bool            // a process has been configured
	published  atomic.Uint64   // newest policy version whose weights have been emitted
	running    context.Context // ends with Stop, because of errStopping
	stopAll    context.CancelCauseFunc

	mu     sync.Mutex
	open   map[question]hostabi.Message // requests about blocks on loan that the process has not answered
	own    []uint8                      // arenas that the process asked for
	failed bool                         // the component has said that it cannot continue
}

// slot is the proxy's record of one of its slots.
type slot struct {
	bound   *bus.Slot
	carries component.Payload
	latest  atomic.Bool      // it has a connection of mode latest, as far as known
	arenas  [256]atomic.Bool // arenas that messages for it came from

	mu     sync.Mutex
	newest hostabi.Message // of a latest slot, with a claim on its block; Sequence 0: none
}

// question names the row of a block on loan that somebody asks about.
type question struct {
	block  hostabi.Handle
	row    uint32
	sender uint16
}

func questionOf(m *hostabi.Message) question { return question{m.Handle, m.T, m.Sender} }

// meters are the counters of one component.
type meters struct{ deaths, restarts, lost, rejected *stat.Counter }

func newMeters(s *stat.Registry, name string) meters {
	return meters{
		deaths:   s.Counter("process/deaths/" + name),
		restarts: s.Counter("process/restarts/" + name),
		lost:     s.Counter("process/lost_messages/" + name),
		rejected: s.Counter("process/rejected_messages/" + name),
	}
}

// describedBy notes the program's description of its configured component, and returns its ports.
func (x *shared) describedBy(c *native.Configured) (component.Manifest, error) {
	if c.Flow != nil {
		x.flow = component.Flow(*c.Flow)
	}
	if c.Signals == nil && c.Slots == nil {
		return x.manifest, nil
	}
	requests := c.Requests
	if requests == nil {
		requests = x.manifest.Requests
	}
	asks := c.Asks
	if asks == nil {
		asks = x.manifest.Asks
	}
	return manifestOf(&x.program, x.kind, c.Signals, c.Slots, requests, asks)
}

// configuration is the configuration that an instance gets at its start.
func (x *shared) configuration(holder int) native.Configuration {
	h := x.h
	begun := h.Begun
	if x.configured && h.Again != nil {
		begun = h.Again()
	}
	abrupt := h.Abrupt || x.configured // a process before this one may have asked
	x.configured = true
	c := native.Configuration{
		Kind: x.kind, Name: h.Name, ID: h.ID, Index: h.Index, Count: h.Count, Holder: holder,
		Config: x.config, Lines: table.Lines(x.config), LogLevel: logLevel(h.Log), Run: runOf(h.Run),
		Readers: map[string]int{}, Policies: map[string]native.Policy{}, Envs: map[string]native.EnvSpec{},
		Sources: map[string]json.RawMessage{}, FirstEnv: h.FirstEnv, Grants: h.Grants, Written: h.Written, Published: max(x.published.Load(), h.Published), Begun: begun, Abrupt: abrupt,
	}
	if h.SoA != nil {
		if soa, known := h.SoA(); known {
			c.SoA = &soa
		}
	}
	if h.Readers != nil {
		for _, p := range x.manifest.Signals {
			c.Readers[p.Name] = h.Readers(p.Name)
		}
	}
	if h.Tables != nil {
		t := h.Tables()
		c.Peers = maps.Clone(t.Peers)
		for name, p := range t.Policies {
			doc := native.Policy{Table: p.Table, Env: p.Env, Memory: native.Memory(p.Memory), Of: p.Of, From: p.From, Version: p.Version,
				Group: p.Group}
			doc.Network, doc.Params = x.network(name)
			c.Policies[name] = doc
		}
		for name, spec := range t.Envs {
			c.Envs[name] = *native.EncodeSpec(&spec)
		}
		for name, s := range t.Sources {
			s.Name = h.Name
			doc, err := json.Marshal(&s)
			if err != nil {
				panic(fmt.Sprintf("process: the source of an environment has no JSON: %v", err))
			}
			c.Sources[name] = doc
		}
	}
	return c
}

// network returns the description of a policy's network, and its tensors; nothing of a policy that has none.
func (x *shared) network(name string) (json.RawMessage, []native.PolicyWeight) {
	if x.h.Policy == nil {
		return nil, nil
	}
	made, err := x.h.Policy(name)
	if err != nil {
		return nil, nil
	}
	d, err := policy.DefinitionOf(name, made)
	if err != nil {
		return nil, nil
	}
	doc, err := json.Marshal(&d.Network)
	if err != nil {
		panic(fmt.Sprintf("process: the network of a policy has no JSON: %v", err))
	}
	var params []native.PolicyWeight
	for _, p := range d.Network.Params() {
		params = append(params, native.PolicyWeight{Name: p.Name, Shape: p.Shape})
	}
	return doc, params
}

// onLoan reports whether somebody has the block on loan.
func (x *shared) onLoan(h hostabi.Handle) bool {
	a, err := x.h.Arenas.Of(h)
	if err != nil {
		return false
	}
	_, err = a.Loaned(h)
	return err == nil
}

// owns reports whether the process has asked for the arena.
func (x *shared) owns(id uint8) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, own := range x.own {
		if own == id {
			return true
		}
	}
	return false
}

func (x *shared) addOwn(id uint8) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.own = append(x.own, id)
}

// purge forgets requests about blocks that are no longer on loan: their senders do not wait any more.
func (x *shared) purge() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.purgeLocked()
}

func (x *shared) purgeLocked() {
	for q := range x.open {
		if !x.onLoan(q.block) {
			delete(x.open, q)
		}
	}
}

// remember keeps the newest message of a slot and a claim on its block, for the next process.
func (x *shared) remember(s *slot, m *hostabi.Message) {
	if m.Handle != 0 && x.h.Arenas.Retain(m.Handle) != nil {
		return
	}
	s.mu.Lock()
	old := s.newest
	s.newest = *m
	s.newest.Sequence = max(m.Sequence, 1)
	s.mu.Unlock()
	x.release(old.Handle)
}

// forget releases the blocks that remember keeps.
func (x *shared) forget() {
	for i := range x.slots {
		s := &x.slots[i]
		s.mu.Lock()
		old := s.newest.Handle
		s.newest = hostabi.Message{}
		s.mu.Unlock()
		x.release(old)
	}
}

// newest returns the newest message of a latest slot, with a claim for the link.
func (x *shared) newest(i int) (link.Pending, bool) {
	s := &x.slots[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest.Sequence == 0 {
		return link.Pending{}, false
	}
	p := link.Pending{Port: i, Message: s.newest}
	if s.newest.Handle != 0 {
		if x.h.Arenas.Retain(s.newest.Handle) != nil {
			return link.Pending{}, false
		}
		p.Claimed = true
	}
	return p, true
}

// release gives a claim of the proxy back.
func (x *shared) release(h hostabi.Handle) {
	if h == 0 {
		return
	}
	if err := x.h.Arenas.Release(h); err != nil {
		x.h.Log.Error("claim of the proxy", "block", h, "err", err)
	}
}

// limit is how many messages of a slot the process may have unfinished: as many as wait in connections, and the message that it works on.
func (x *shared) limit(i int) int {
	s := &x.slots[i]
	n, latest := 1, false
	for _, c := range s.bound.Connections() {
		o := c.Options()
		n += o.Depth
		latest = latest || o.Mode == bus.Latest
	}
	s.latest.Store(latest)
	return min(n, hostabi.LinkWindow)
}

// fail ends the run with an error of the component in the process, which is not started again then.
func (x *shared) fail(err error) {
	x.mu.Lock()
	x.failed = true
	x.mu.Unlock()
	x.h.Fail(err)
}

func (x *shared) hasFailed() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.failed
}
