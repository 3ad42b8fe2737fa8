package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"

	"github.com/rlhost/rlhost/hostabi"
)

// A pipeline whose parts can be changed: players, which run environments, send numbered blocks to counters, which are
// at boundaries. A stage holds a test's view of them and its controls.

type stageHooks struct {
	mu      sync.Mutex
	loads   []string       // sources loaded
	closed  []string       // and closed
	plays   map[string]int // by source: blocks that were sent from it
	started []string
	stopped []string

	counted  atomic.Uint64 // blocks that counters have got
	missed   atomic.Uint64 // that came in another order than they were sent, or not at all
	restores atomic.Uint64
	fail     atomic.Bool // counters that do fail from now on
	spared   string      // except this instance

	load    func(ctx context.Context, use string) error        // called by Load
	prepare func(c component.EnvChange) error                  // by PrepareEnvs
	start   func(h *component.Host) error                      // by Start of an instance with a predecessor
	restore func(h *component.Host) error                      // by Restore
	pause   func(h *component.Host, rested func()) (took bool) // by Pause of a counter
	commit  func(p *player, x *playerChange) (took bool)       // by Commit of a change of environments
}

func (s *stageHooks) note(list *[]string, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*list = append(*list, name)
}

func (s *stageHooks) played(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plays[source]++
}

// sent returns how many blocks were sent from a source.
func (s *stageHooks) sent(source string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plays[source]
}

// game is an environment plugin that is a name.
type game struct {
	graphtest.Described
	s    *stageHooks
	text string
}

func (p *game) Hash() string {
	sum := sha256.Sum256([]byte(p.text))
	return hex.EncodeToString(sum[:])
}

func (p *game) Close() error { p.s.note(&p.s.closed, p.text); return nil }

// playerBlocks is more than the blocks that the counters of a test can wait with.
const playerBlocks = 8

// player sends blocks, one after the other, each with the number of how many it has sent so far.
type player struct {
	component.Component
	s *stageHooks
	h *component.Host
	c struct {
		Env    string `toml:"env"`
		Rate   int    `toml:"rate"`
		Envs   int    `toml:"envs"`
		Limit  uint64 `toml:"limit"`  // blocks it sends; 0 = for ever
		Remote bool   `toml:"remote"` // it does not ask for its environments
	}
	blocks  *arena.Arena
	plugin  env.Plugin
	n       uint64
	free    bool // it waits for a block
	pausing bool
	change  *playerChange
	old     env.Plugin // to go back to
}

func (p *player) Manifest() component.Manifest {
	return component.Manifest{Signals: graphtest.Ports("blocks", "block")}
}

func (p *player) Configure(decode func(any) error) error { p.c.Envs = 4; return decode(&p.c) }

func (p *player) Flow() component.Flow { return component.Flow{Envs: p.c.Envs} }

func (p *player) Start(h *component.Host) (err error) {
	p.h = h
	p.s.note(&p.s.started, h.Name)
	if h.Inherited != nil && p.s.start != nil {
		if err := p.s.start(h); err != nil {
			return err
		}
	}
	if p.c.Env != "" && !p.c.Remote {
		if p.plugin, err = h.Env(p.c.Env); err != nil {
			return err
		}
	}
	if p.blocks, err = h.Arena(arena.Config{Name: h.Name + ".blocks", Blocks: playerBlocks, BlockBytes: 64}); err != nil {
		return err
	}
	for block := range uint32(playerBlocks) {
		h.OnFree(p.blocks, block, func(uint32) { h.Receiver.Control(p.onFree, hostabi.Message{}) })
	}
	h.Receiver.Post(p.play, hostabi.Message{})
	return nil
}

func (p *player) onFree(*hostabi.Message) {
	if p.free {
		p.free = false
		p.h.Receiver.Post(p.play, hostabi.Message{})
	}
}

func (p *player) play(*hostabi.Message) {
	if p.pausing || p.c.Limit > 0 && p.n == p.c.Limit {
		p.free = true
		return
	}
	loan, err := p.blocks.Loan()
	if errors.Is(err, arena.ErrExhausted) {
		p.free = true
		return
	}
	if err != nil {
		p.h.Fail(err)
		return
	}
	handle, err := loan.Commit()
	if err != nil {
		p.h.Fail(err)
		return
	}
	p.n++
	m := hostabi.Message{Handle: handle, Sender: p.h.ID, Inline: [2]uint64{p.n}}
	if err := p.h.Signal("blocks").Emit(m); err != nil {
		p.h.Fail(err)
	}
	if err := p.blocks.Release(handle); err != nil {
		p.h.Fail(err)
	}
	if s, ok := p.plugin.(*game); ok {
		p.s.played(s.text)
	}
	p.h.Stats.Counter("rollout/env_steps").Inc()
	if x := p.change; x != nil && !x.blocked {
		p.goOver(x)
	}
	p.h.Receiver.Post(p.play, hostabi.Message{})
}

func (p *player) goOver(x *playerChange) {
	p.change, p.old, p.plugin = nil, p.plugin, x.c.Plugin
	x.over = true
	x.c.Went(component.EnvsWent{Envs: p.c.Envs, PauseNS: []int64{1}})
}

func (p *player) EnvName() string { return p.c.Env }

func (p *player) PrepareEnvs(_ context.Context, c component.EnvChange) (component.PreparedEnvs, error) {
	if p.s.prepare != nil {
		if err := p.s.prepare(c); err != nil {
			return nil, err
		}
	}
	return &playerChange{p: p, c: c}, nil
}

// playerChange is a change of a player's environments. It takes place after the next block.
type playerChange struct {
	p       *player
	c       component.EnvChange
	blocked bool // until the test says otherwise
	over    bool
}

func (x *playerChange) Commit() error {
	x.p.change = x
	if x.p.s.commit != nil && x.p.s.commit(x.p, x) {
		return nil
	}
	if x.p.free || x.p.h.Receiver.Paused() { // between two blocks
		x.p.goOver(x)
	}
	return nil
}

func (x *playerChange) Cancel() {
	if x.over {
		x.p.plugin = x.p.old
	}
	x.p.change = nil
}

func (x *playerChange) Settle()      { x.p.old = nil }
func (x *playerChange) Close() error { return nil }

// fall is a fault of the new environments. It reports whether the old ones are back.
func (x *playerChange) fall(fault error) (back bool) {
	if !x.c.OnFault(fault) {
		return false
	}
	x.Cancel()
	x.c.RolledBack(fault)
	return true
}

func (p *player) Pause(rested func()) { p.pausing = true; rested() }
func (p *player) Resume() {
	p.pausing = false
	if p.free {
		p.free = false
		p.h.Receiver.Post(p.play, hostabi.Message{})
	}
}
func (p *player) Waiting() []component.Waiting { return nil }

type playerState struct{ N uint64 }

func (p *player) Snapshot() (component.State, error) {
	return component.State{Meta: playerState{p.n}}, nil
}

func (p *player) Restore(state component.State) error {
	if p.s.restore != nil {
		if err := p.s.restore(p.h); err != nil {
			return err
		}
	}
	var from playerState
	err := state.Decode(&from)
	p.n = from.N
	p.s.restores.Add(1)
	return err
}

func (p *player) Stop() error {
	if p.h != nil {
		p.s.note(&p.s.stopped, p.h.Name)
	}
	return nil
}

// counter takes blocks, two at a time, and is at a boundary then. It checks that none is missing.
type counter struct {
	component.Component
	s *stageHooks
	h *component.Host
	c struct {
		Scale   int  `toml:"scale"`
		Fails   bool `toml:"fails"`   // it does when the stage says so
		Rattles bool `toml:"rattles"` // it fails when it is stopped
		Strict  bool `toml:"strict"`  // it gets every block of every player
		More    bool `toml:"more"`    // it has further ports, and one with another payload
		Loose   bool `toml:"loose"`   // players come and go, and their blocks are passed on: in no order
	}
	last    map[uint16]uint64
	n       uint64
	waiting []component.Waiting
}

func (c *counter) Manifest() component.Manifest {
	m := component.Manifest{Signals: graphtest.Ports("counts", "count"), Slots: graphtest.Ports("on_blocks", "block")}
	if c.c.More {
		m.Signals = graphtest.Ports("counts", "sum", "more", "count")
		m.Slots = append(graphtest.Ports("on_more", "count"), m.Slots...)
	}
	return m
}

func (c *counter) Configure(decode func(any) error) error { return decode(&c.c) }

func (c *counter) Start(h *component.Host) error {
	c.h, c.last = h, map[uint16]uint64{}
	c.s.note(&c.s.started, h.Name)
	if h.Inherited != nil && c.s.start != nil {
		if err := c.s.start(h); err != nil {
			return err
		}
	}
	if _, err := h.Arena(arena.Config{Name: h.Name + ".own", Blocks: 1, BlockBytes: 64}); err != nil {
		return err
	}
	h.Receiver.Every(time.Hour, func() {})
	h.Slot("on_blocks", c.onBlock)
	if c.c.More {
		h.Slot("on_more", func(*hostabi.Message) {})
	}
	return nil
}

func (c *counter) onBlock(m *hostabi.Message) {
	if last := c.last[m.Sender]; !c.c.Loose && m.Inline[0] <= last || c.c.Strict && m.Inline[0] != last+1 {
		c.s.missed.Add(1)
	}
	c.last[m.Sender] = m.Inline[0]
	if err := c.h.Arenas.Retain(m.Handle); err != nil {
		c.h.Fail(err)
		return
	}
	c.waiting = append(c.waiting, component.Waiting{Slot: "on_blocks", Message: *m, Claimed: true})
	if len(c.waiting) < 2 {
		return
	}
	for _, w := range c.waiting {
		if err := c.h.Arenas.Release(w.Message.Handle); err != nil {
			c.h.Fail(err)
		}
		c.n++
		c.s.counted.Add(1)
		if c.c.Fails && c.s.fail.Load() && c.h.Name != c.s.spared {
			c.h.Fail(errors.New("lost count"))
		}
	}
	c.waiting = c.waiting[:0]
	if err := c.h.Signal("counts").Emit(hostabi.Message{PolicyVersion: c.n}); err != nil {
		c.h.Fail(err)
	}
	c.h.Boundary()
}

func (c *counter) Pause(rested func()) {
	if c.s.pause != nil && c.s.pause(c.h, rested) {
		return
	}
	rested()
}
func (c *counter) Resume() {}

// Waiting hands over at most one block: the next one will complete the pair.
func (c *counter) Waiting() []component.Waiting {
	list := c.waiting
	for _, w := range list { // the successor gets it again
		c.last[w.Message.Sender] = w.Message.Inline[0] - 1
	}
	c.waiting = nil
	return list
}

type counterState struct {
	N    uint64
	Last map[uint16]uint64
}

func (c *counter) Snapshot() (component.State, error) {
	s := counterState{c.n, map[uint16]uint64{}}
	for id, n := range c.last {
		s.Last[id] = n
	}
	for _, w := range c.waiting {
		s.Last[w.Message.Sender] = w.Message.Inline[0] - 1
	}
	return component.State{Meta: s}, nil
}

func (c *counter) Restore(state component.State) error {
	if c.s.restore != nil {
		if err := c.s.restore(c.h); err != nil {
			return err
		}
	}
	var from counterState
	if err := state.Decode(&from); err != nil {
		return err
	}
	c.n, c.last = from.N, from.Last
	c.s.restores.Add(1)
	return nil
}

func (c *counter) Stop() error {
	var errs []error
	if c.h != nil && c.c.Rattles {
		c.h.Fail(errors.New("stopped"))
	}
	if c.h != nil {
		c.s.note(&c.s.stopped, c.h.Name)
		for _, w := range c.waiting {
			errs = append(errs, c.h.Arenas.Release(w.Message.Handle))
		}
	}
	return errors.Join(errs...)
}
