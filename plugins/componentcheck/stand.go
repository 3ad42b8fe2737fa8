package componentcheck

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/hostabi"
)

// name is the component's among its metrics.
const name = "component"

// sent is a message that the component has emitted, without its handle.
type sent struct {
	Signal  string
	Message hostabi.Message
	Block   [sha256.Size]byte // hash of its block's bytes at that moment, 0 of none
}

// String is short, for people.
func (s sent) String() string {
	m := &s.Message
	return fmt.Sprintf("%s kind %d t %d split %d version %d inline %x block %.4x", s.Signal, m.Kind, m.T, m.Split, m.PolicyVersion, m.Inline, s.Block)
}

// outcome is the result of playing messages.
type outcome struct {
	sent    []sent
	asked   int      // requests
	wrong   string   // the first that was not answered once
	kept    int      // blocks that are leased after the last message
	altered []string // columns in which it wrote without a grant
}

// stand is one instance with a host around it.
type stand struct {
	outcome
	made    component.Component
	host    *component.Host
	loop    *loop.Loop
	outside *loop.Receiver
	wires   []*bus.Connection
	arenas  map[any]*arena.Arena
	log     bytes.Buffer
	failed  error
	acting  *acting // or nil
}

// begin starts an instance, perhaps from a state.
func (k *checker) begin(from *component.State) (*stand, error) {
	s := &stand{loop: loop.New(name), arenas: map[any]*arena.Arena{}}
	s.outside = s.loop.NewReceiver("check")
	var err error
	if s.made, err = k.o.Make(); err != nil {
		return s, err
	}
	if err := s.made.Configure(k.o.Configure); err != nil {
		return s, err
	}
	m := s.made.Manifest()
	s.host = &component.Host{
		Name: name, ID: 1, Count: 1, Run: &component.Run{Name: "check", Synchronous: true}, Receiver: s.loop.NewReceiver(name),
		Arenas: arena.NewSet(), Stats: stat.NewRegistry(), Log: slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Env: func(n string) (env.Plugin, error) { return nil, fmt.Errorf("there is no environment %q in a check", n) },
		Policy: func(n string) (component.Policy, error) {
			return nil, fmt.Errorf("there is no policy %q in a check", n)
		},
		Peers: func(string) int { return 1 }, Readers: func(string) int { return 16 }, Grants: grants(&m),
		Tables: func() component.Tables { return component.Tables{} }, Boundary: func() {}, Stop: func(component.StopReason) {},
	}
	s.host.Bind(m)
	if err := s.made.Start(s.host); err != nil {
		return s, err
	}
	for _, p := range m.Signals {
		if err := s.follow(p); err != nil {
			return s, err
		}
	}
	if from != nil {
		return s, s.made.Restore(*from)
	}
	return s, nil
}

// grants lets a component write all that wires can grant.
func grants(m *component.Manifest) map[string][]string {
	all := map[string][]string{}
	for _, p := range m.Slots {
		if can := component.PayloadOf(p.Payload).Grantable; len(can) > 0 {
			all[p.Name] = can
		}
	}
	return all
}

// follow notes the component's messages on a signal.
func (s *stand) follow(p component.Port) error {
	to := bus.NewSlot(s.outside, "check."+p.Name, p.Payload, func(m *hostabi.Message) {
		x := sent{Signal: p.Name, Message: *m}
		if mem := s.bytesOf(m.Handle); mem != nil {
			x.Block = sha256.Sum256(mem)
		}
		x.Message.Handle, x.Message.Ctl, x.Message.Sequence = 0, 0, 0
		s.sent = append(s.sent, x)
	})
	return s.wire(s.host.Signal(p.Name), to)
}

func (s *stand) wire(from *bus.Signal, to *bus.Slot) error {
	c, err := bus.Connect(from, to, bus.Options{Mode: bus.All, Depth: 1 << 16, Overflow: bus.Block})
	if err == nil {
		s.wires = append(s.wires, c)
	}
	return err
}

// bytesOf returns the bytes of a block, committed or on loan; nil of none.
func (s *stand) bytesOf(h hostabi.Handle) []byte {
	a, err := s.host.Arenas.Of(h)
	if h == 0 || err != nil {
		return nil
	}
	if lease, err := a.Lease(h); err == nil {
		defer lease.Release() // the message that names it has its own claim
		return lease.Bytes()
	}
	mem, _ := a.Loaned(h)
	return mem
}

// playAll gives the instance items, one after the other, and then pauses it.
func (s *stand) playAll(items []item) error {
	in := map[string]*bus.Signal{}
	for i := range items {
		x := &items[i]
		if in[x.slot] == nil {
			var claims bus.Retainer = s.host.Arenas
			if x.payload.OnLoan {
				claims = nil
			}
			slot := s.host.BoundSlot(x.slot)
			if slot == nil {
				return fmt.Errorf("the slot %s is not bound", x.slot)
			}
			in[x.slot] = bus.NewSignal(s.outside, "check."+x.slot, slot.Payload(), claims)
			if err := s.wire(in[x.slot], slot); err != nil {
				return err
			}
		}
		if err := s.playOne(x, in[x.slot], len(items)); err != nil {
			return fmt.Errorf("message %d (%s): %w", i+1, x.payload.Name, err)
		}
	}
	for _, a := range s.arenas {
		s.kept += a.Stats().Live
	}
	return nil
}

// playOne gives the instance an item.
func (s *stand) playOne(x *item, to *bus.Signal, items int) error {
	m := x.message
	if x.block == nil {
		return cmp.Or(to.Emit(m), s.settle())
	}
	a, err := s.arenaFor(x, items)
	if err != nil {
		return err
	}
	loan, err := a.Loan()
	if err != nil {
		return fmt.Errorf("no block is left for it, the component keeps too many: %w", err)
	}
	copy(loan.Bytes(), x.block)
	if x.payload.OnLoan {
		return errors.Join(s.request(x, to, loan), loan.Abort())
	}
	if m.Handle, err = loan.Commit(); err != nil {
		return err
	}
	if err := cmp.Or(to.Emit(m), s.settle()); err != nil {
		return errors.Join(err, a.Release(m.Handle))
	}
	s.look()
	return a.Release(m.Handle)
}

// request plays a request about a block on loan, which must be answered once.
func (s *stand) request(x *item, to *bus.Signal, loan arena.Loan) error {
	m := x.message
	m.Handle, m.Sender = loan.Handle(), 2
	if s.acting != nil {
		s.acting.prepare(x, loan.Bytes())
	}
	before := len(s.sent)
	if err := cmp.Or(to.Emit(m), s.settle()); err != nil {
		return err
	}
	s.asked++
	answers := 0
	for _, y := range s.sent[before:] {
		if y.Message.Sender == 2 {
			answers++
		}
	}
	if answers != 1 && s.wrong == "" {
		s.wrong = fmt.Sprintf("request %d has %d answers", s.asked, answers)
	}
	if s.acting != nil {
		s.acting.look(x, loan.Bytes(), s.asked)
	}
	s.look()
	return nil
}

// look notes the columns in which the instance has written without a grant.
func (s *stand) look() {
	if w, ok := s.made.(component.Watched); ok {
		s.altered = append(s.altered, w.Altered()...)
	}
}

func (s *stand) arenaFor(x *item, items int) (*arena.Arena, error) {
	if a := s.arenas[x.key]; a != nil {
		return a, nil
	}
	a, err := s.host.Arenas.Add(arena.Config{Name: fmt.Sprintf("blocks%d", len(s.arenas)), Blocks: min(items+1, 128), BlockBytes: len(x.block), Schema: x.schema})
	s.arenas[x.key] = a
	return a, err
}

// settle runs the loop until all messages under way have been handled. The error is the component's, or describes a fault.
func (s *stand) settle() error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	rounds := 0
	var round func(*hostabi.Message)
	round = func(*hostabi.Message) {
		if rounds++; rounds < 8 {
			s.outside.Post(round, hostabi.Message{})
			return
		}
		stop()
		s.outside.Control(func(*hostabi.Message) {}, hostabi.Message{}) // makes the loop look at ctx
	}
	s.outside.Post(round, hostabi.Message{})
	if err := s.loop.Run(ctx); !errors.Is(err, context.Canceled) {
		s.failed = err
	}
	if n := s.host.Stats.Counter(name + "/faults").Value(); n > 0 && s.failed == nil {
		s.failed = fmt.Errorf("it had a fault: %s", strings.TrimSpace(s.log.String()))
	}
	return s.failed
}

// pausedSnapshot pauses the instance, saves it and resumes it.
func (s *stand) pausedSnapshot() (state component.State, err error) {
	p, ok := s.made.(component.Pauser)
	rested := !ok
	if ok {
		p.Pause(func() { rested = true })
		if err := s.settle(); err != nil {
			return state, err
		}
	}
	if !rested {
		return state, errors.New("it does not become idle")
	}
	if state, err = s.made.Snapshot(); err == nil {
		state, err = state.Frozen()
	}
	if ok {
		p.Resume()
	}
	return state, cmp.Or(err, s.settle())
}

// end stops the instance and reports leaks.
func (s *stand) end() error {
	for _, w := range s.wires {
		w.DisconnectNow()
	}
	err := s.loop.Close()
	if s.made != nil {
		err = errors.Join(err, s.made.Stop())
	}
	if s.host != nil {
		err = errors.Join(err, s.host.Arenas.Close())
	}
	return err
}
