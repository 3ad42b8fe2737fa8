package component

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/arena"
	core "github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// slot is a slot of a guest, with its memory for the message that it handles.
type slot struct {
	index    uint32
	name     string
	payload  core.Payload
	looks    bool // at blocks
	asked    bool // its messages are requests that the guest answers
	columns  []hostabi.ManifestColumn
	grants   []string // columns that the wires let it write, ascending
	granted  []*lent  // the same
	message  uint32   // where the ComponentMessage lies
	bindings uint32   // where the ColumnBindings lie
	bound    bound    // their present content

	block   uint32      // token of the message's block, 0 if it names none
	lease   arena.Lease // of that block, where its columns are copied
	emitted bool        // the block has been emitted, with the guest's writes
	came    hostabi.Message
}

// bound is the place of the columns of a block.
type bound struct {
	at   uint32
	view *view
}

// lent is a column that a guest may write. A column that shares its pages with others has memory of the guest's.
type lent struct {
	name  string
	at, n uint32 // 0 until a block with the column has come
	live  bool   // it has the column of the block that is being handled
	kept  []byte // of a column on separate pages: its contents before the guest was called
	keeps bool   // that is of the block that is being handled
}

// newSlot gets the memory for the messages of a slot and binds it.
func (g *component) newSlot(i int) (*slot, error) {
	port := &g.manifest.Slots[i]
	s := &slot{index: uint32(i), name: port.Name, payload: core.PayloadOf(port.Payload), looks: port.Flags&hostabi.PortBlocks != 0}
	for _, c := range g.manifest.Columns {
		if c.Slot != i {
			continue
		}
		if c.Flags&hostabi.ColumnWrite != 0 {
			if err := g.host.Granted(s.name, c.Name); err != nil {
				return nil, err
			}
		}
		s.columns, s.looks = append(s.columns, c), true
	}
	answers := func(p hostabi.ManifestPort) bool { return p.Payload == s.payload.AnsweredBy }
	s.asked = s.payload.AnsweredBy != "" && slices.ContainsFunc(g.manifest.Signals, answers)
	for _, name := range g.host.Grants[s.name] {
		declared := func(c hostabi.ManifestColumn) bool { return c.Name == name && c.Flags&hostabi.ColumnWrite != 0 }
		if port.Flags&hostabi.PortBlocks != 0 || slices.ContainsFunc(s.columns, declared) {
			s.grants, s.granted = append(s.grants, name), append(s.granted, &lent{name: name})
		}
	}
	var err error
	if s.message, err = g.run.Allocate(uint32(g.manifest.MessageBytes), 64); err != nil {
		return nil, err
	}
	if n := len(s.columns) * g.manifest.BindingBytes; n > 0 {
		if s.bindings, err = g.run.Allocate(uint32(n), 64); err != nil {
			return nil, err
		}
	}
	g.host.Slot(s.name, func(m *hostabi.Message) { g.handle(s, m) })
	return s, nil
}

// handle gives the guest a message. After a fault a request that has not been answered is given to it again, because the asker waits.
func (g *component) handle(s *slot, m *hostabi.Message) {
	for again := true; again && !g.dead; {
		again = g.try(s, m) && s.payload.OnLoan && !s.emitted
	}
}

// try is handle once. It reports whether the guest continues after a fault.
func (g *component) try(s *slot, m *hostabi.Message) bool {
	g.keep()
	g.handling, g.emitted = s, 0
	err := g.present(s, m)
	if err == nil {
		err = g.run.Slot(s.index, s.message)
	}
	if err == nil && s.asked && !s.emitted {
		err = unanswered(g.source.Use)
	}
	if err == nil && s.block != 0 && !s.emitted {
		g.writeBack(s)
	}
	g.handling = nil
	if err != nil {
		s.putBack(g.run, g.blocks.find(s.block))
	}
	g.leave(s)
	if err == nil {
		return false
	}
	g.lost.Inc()
	return g.failed(err)
}

// leave forgets the block of a handled message.
func (g *component) leave(s *slot) {
	if s.block != 0 {
		if err := s.retract(g.run, g.blocks.find(s.block)); err != nil {
			g.host.Fail(err)
		}
		g.blocks.drop(s.block)
		s.block = 0
	}
	if s.lease.Handle() != 0 {
		if err := s.lease.Release(); err != nil {
			g.host.Fail(err)
		}
		s.lease = arena.Lease{}
	}
}

// retract makes the writable pages of the slot's block a private view: nobody else sees the guest's writes from now on. Of a block on
// loan that asks for actions row by row they stay until the last row.
func (s *slot) retract(run *instance, k *known) error {
	if k == nil || k.window == nil || k.window.view == nil || len(k.window.shares) == 0 {
		return nil
	}
	if s.payload.Name == core.PayloadRequest && !trajectory.ActRequestOf(&s.came).ValueOnly {
		return nil
	}
	w := k.window
	err := w.remap(run, false)
	w.shares = nil
	return err
}

// present puts a message and its bindings where the guest reads them.
func (g *component) present(s *slot, m *hostabi.Message) error {
	s.emitted, s.came = false, *m
	inline := m.Inline
	if m.Handle != 0 {
		if err := g.presentBlock(s, m.Handle); err != nil {
			return err
		}
	}
	if s.payload.Name == core.PayloadRequest {
		r, err := g.address(m)
		if err != nil {
			return err
		}
		inline = r.Inline
	}
	b, le := g.run.View(s.message, uint32(g.manifest.MessageBytes)), binary.LittleEndian
	le.PutUint32(b[0:], s.block)
	le.PutUint32(b[4:], s.bindings)
	le.PutUint32(b[8:], m.T)
	le.PutUint32(b[12:], m.Split)
	le.PutUint64(b[16:], m.PolicyVersion)
	le.PutUint64(b[24:], inline[0])
	le.PutUint64(b[32:], inline[1])
	le.PutUint16(b[40:], m.Kind)
	clear(b[42:])
	le.PutUint32(b[44:], uint32(m.Sender)+1)
	return nil
}

// address says in an act request for which policy it is.
func (g *component) address(m *hostabi.Message) (hostabi.Message, error) {
	tr, err := trajectory.Borrowed(g.host.Arenas, m.Handle)
	if err != nil {
		return *m, err
	}
	r, err := trajectory.ActRequestOf(m).AddressedTo(g.policy, tr.Schema)
	return r.Message(), err
}

// presentBlock maps a block, if the slot looks at such, and binds the columns.
func (g *component) presentBlock(s *slot, h hostabi.Handle) (err error) {
	var w *window
	if s.looks {
		if w, err = g.window(h, s.grants); err != nil {
			return err
		}
		if len(s.granted) > 0 {
			if err := g.lend(s, w, h); err != nil {
				return err
			}
		}
		if g.freed {
			g.freed = false
			g.save() // in a state from before the host would still have that memory
		}
	}
	token, ok := g.blocks.take(h, s.payload.Name, w)
	if !ok {
		return fmt.Errorf("it has leased %d blocks, and another cannot be named", maxWindows)
	}
	s.block = token
	if len(s.columns) == 0 || s.lease.Handle() == 0 && s.bound == (bound{w.at, w.view}) {
		return nil
	}
	return g.bind(s, w)
}

// bind writes the bindings of the slot's columns.
func (g *component) bind(s *slot, w *window) error {
	s.bound = bound{}
	for i := range s.columns {
		c := &s.columns[i]
		b := g.run.View(s.bindings+uint32(i*g.manifest.BindingBytes), uint32(g.manifest.BindingBytes))
		clear(b)
		p, ok := w.view.columns[c.Name]
		switch {
		case !ok && c.Flags&hostabi.ColumnOptional != 0:
			continue
		case !ok:
			return fmt.Errorf("slot %s reads the column %s, which blocks of %s have not", s.name, c.Name, w.view.arena.Name())
		case c.DType != 0 && c.DType != p.dtype:
			return fmt.Errorf("slot %s wants the column %s to be %v, in blocks of %s it is %v", s.name, c.Name, c.DType, w.view.arena.Name(), p.dtype)
		}
		at, writable := w.at+p.offset, false
		if c.Flags&hostabi.ColumnWrite != 0 {
			at, writable = g.writable(s, c.Name, w)
		}
		p.write(b, at, writable)
	}
	s.bound = bound{w.at, w.view}
	return nil
}

// writable returns where the guest writes a column of the block that it handles; ok is false where no wire lets it.
func (g *component) writable(s *slot, name string, w *window) (at uint32, ok bool) {
	i, p := slices.Index(s.grants, name), w.view.columns[name]
	switch {
	case i < 0:
		return 0, false
	case p.apart:
		return w.at + p.offset, true
	}
	g.readIn(s, s.granted[i], p)
	return s.granted[i].at, true
}

// lend claims a block and gets memory for the columns that the guest may write and that share their pages with others.
func (g *component) lend(s *slot, w *window, h hostabi.Handle) (err error) {
	for _, l := range s.granted {
		l.live, l.keeps = false, false
		p, ok := w.view.columns[l.name]
		if !ok {
			continue
		}
		if p.apart {
			if l.keeps = s.payload.Name != core.PayloadRequest; l.keeps { // into which others write meanwhile
				l.kept = append(l.kept[:0], g.run.View(w.at+p.offset, p.bytes)...)
			}
			continue
		}
		if s.lease.Handle() == 0 {
			if s.lease, err = w.view.arena.Lease(h); errors.Is(err, arena.ErrState) {
				return fmt.Errorf("%s has no pages of its own in blocks of %s, and who asks still writes the block: begin the run with that grant", l.name, w.view.arena.Name())
			} else if err != nil {
				return err
			}
		}
		if l.n >= p.bytes {
			continue
		}
		if l.n > 0 {
			g.freed = true
			if err := g.run.Free(l.at, l.n); err != nil {
				return err
			}
		}
		if l.at, err = g.run.Allocate(p.bytes, 64); err != nil {
			return err
		}
		l.n = p.bytes
	}
	return nil
}

// putBack restores the granted columns of a message's block after a failed call, unless the guest has emitted it.
func (s *slot) putBack(run *instance, k *known) {
	if k == nil || s.emitted {
		return
	}
	for _, l := range s.granted {
		if l.keeps {
			p := k.window.view.columns[l.name]
			copy(run.View(k.window.at+p.offset, p.bytes), l.kept)
		}
	}
}

// forgetMemory forgets the memory that the guest has not given in its restored state, and the bound columns.
func (s *slot) forgetMemory(run *instance) {
	s.bound = bound{}
	for _, l := range s.granted {
		if l.n > 0 && !run.Gave(l.at) {
			l.at, l.n = 0, 0
		}
	}
}

// readIn copies a column to where the guest writes it.
func (g *component) readIn(s *slot, l *lent, p *place) {
	if l.live {
		return
	}
	copy(g.run.View(l.at, p.bytes), s.lease.Bytes()[p.offset:])
	g.copied.Add(uint64(p.bytes))
	l.live = true
}

// writeBack copies the guest's writes into the block of its message.
func (g *component) writeBack(s *slot) {
	w := g.blocks.find(s.block).window
	for _, l := range s.granted {
		if !l.live {
			continue
		}
		p := w.view.columns[l.name]
		copy(s.lease.Bytes()[p.offset:], g.run.View(l.at, p.bytes))
		g.copied.Add(uint64(p.bytes))
	}
}
