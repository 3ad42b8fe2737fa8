// Package scribe is a component that follows its messages, for the suite that authors' components pass in every runtime:
// authortest.TestRuntime.
package scribe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk/component"
)

// Orders: the Kind of a message to on_order or on_block. All are answered on notes with the same Kind; Inline is as in the
// order unless noted.
const (
	Echo     = iota // Inline as it came
	Count           // Inline[0] = orders so far
	Who             // Inline = index and seed, T = count, Split = length of the name
	Make            // make a block whose column x is Inline[0] and following, and emit it on blocks; Inline[1] = 1 if there is none
	Abort           // loan a block and abort it
	Report          // count Inline[0], set and observe the float64 with the bits Inline[1], log "scribe has N"
	Later           // answer in a millisecond
	Release         // Inline[0] = the sum, as in Sum, of the leased block, which is released
	Spent           // Inline[0] = 1 if the block of the message before and the lease before are refused
	Leave           // keep a loan open
	Fail            // fail with "told to fail"
	Stop            // stop the run for its env steps
	Sum             // of on_block: Inline[0] = bits of the sum of its column reward, or x
	Double          // of on_block: double the reward in place; Inline[0] = 1 if that is refused
	Keep            // of on_block: lease it
	Pass            // of on_block: emit it on blocks; answered by nothing else
	Mistaken        // of on_block: Inline[0] = 1 if a column that is not there, and writing by a lease, are refused
)

const blocks, elems = 2, 4 // of its arena

// Scribe is that component.
type Scribe struct {
	config struct {
		Bias   float64 `toml:"bias"`   // added to what Make writes
		Inputs int     `toml:"inputs"` // further slots on_input_0, …, which answer as Echo does with T = their number
	}
	host          component.Host
	notes, blocks component.Signal
	arena         component.Arena
	orders        uint64
	old           component.Block // of the message before
	lease         component.Lease
}

// New returns an unconfigured scribe.
func New() component.Component { return &Scribe{} }

// Manifest lists the ports.
func (c *Scribe) Manifest() component.Manifest {
	m := component.Manifest{
		Signals: []component.Port{{Name: "notes", Payload: "number", Doc: "answers"}, {Name: "blocks", Payload: "tensor", Doc: "blocks"}},
		Slots:   []component.Port{{Name: "on_order", Payload: "number", Doc: "orders"}, {Name: "on_block", Payload: "tensor", Doc: "and a block"}},
	}
	for i := range c.config.Inputs {
		m.Slots = append(m.Slots, component.Port{Name: fmt.Sprintf("on_input_%d", i), Payload: "number", Doc: "an input"})
	}
	return m
}

// Configure reads the table.
func (c *Scribe) Configure(decode func(into any) error) error {
	if err := decode(&c.config); err != nil {
		return err
	}
	var errs []error
	if c.config.Bias < 0 {
		errs = append(errs, &component.ConfigError{Key: "bias", Reason: "is negative", Help: "write 0"})
	}
	if c.config.Inputs < 0 || c.config.Inputs > 8 {
		errs = append(errs, &component.ConfigError{Key: "inputs", Reason: fmt.Sprintf("is %d, want 0 to 8", c.config.Inputs)})
	}
	return errors.Join(errs...)
}

// Start makes the arena.
func (c *Scribe) Start(h component.Host) (err error) {
	c.host, c.notes, c.blocks = h, h.Signal("notes"), h.Signal("blocks")
	h.Slot("on_order", c.onOrder)
	h.Slot("on_block", c.onBlock)
	for i := range c.config.Inputs {
		h.Slot(fmt.Sprintf("on_input_%d", i), func(m *component.Message) {
			m.T = uint32(i)
			c.emit(c.notes, *m)
		})
	}
	c.arena, err = h.Arena("scribe", blocks, component.Tensor{Name: "x", DType: hostabi.F32, Shape: []int{elems}})
	return err
}

func (c *Scribe) emit(on component.Signal, m component.Message) {
	if _, err := on.Emit(m); err != nil {
		c.host.Fail(err)
	}
}

func (c *Scribe) onOrder(m *component.Message) {
	c.orders++
	reply := *m
	switch m.Kind {
	case Count:
		reply.Inline[0] = c.orders
	case Who:
		me := c.host.Identity()
		reply.Inline, reply.T, reply.Split = [2]uint64{uint64(me.Index), me.Seed}, uint32(me.Count), uint32(len(me.Name))
	case Make:
		reply.Inline[1] = c.make(m)
	case Abort, Leave:
		if loan, ok := c.arena.Loan(); ok && m.Kind == Abort {
			c.check(loan.Abort())
		}
	case Report:
		c.report(m)
	case Later:
		c.host.After(time.Millisecond, func() { c.emit(c.notes, reply) })
		return
	case Release:
		reply.Inline[0] = sum(c.lease)
		c.check(c.lease.Release())
	case Spent:
		_, err := c.old.Column("x")
		_, emitted := c.blocks.Emit(component.Message{Block: c.lease})
		reply.Inline[0] = flag(err != nil && emitted != nil && c.lease.Release() != nil)
	case Fail:
		c.host.Fail(errors.New("told to fail"))
	case Stop:
		c.host.Stop(component.StopEnvSteps)
	}
	c.emit(c.notes, reply)
}

func (c *Scribe) check(err error) {
	if err != nil {
		c.host.Fail(err)
	}
}

func (c *Scribe) make(m *component.Message) (none uint64) {
	loan, ok := c.arena.Loan()
	if !ok {
		return 1
	}
	x, err := loan.Column("x")
	c.check(err)
	for i := range x.Float32() {
		x.Float32()[i] = float32(c.config.Bias) + float32(m.Inline[0]) + float32(i)
	}
	made, err := loan.Commit()
	c.check(err)
	c.emit(c.blocks, component.Message{Kind: Make, Block: made})
	c.check(made.Release())
	return 0
}

func (c *Scribe) report(m *component.Message) {
	c.host.Counter("scribe/told").Add(m.Inline[0])
	c.host.Gauge("scribe/gauge").Set(math.Float64frombits(m.Inline[1]))
	c.host.Histogram("scribe/seen").Observe(math.Float64frombits(m.Inline[1]))
	c.host.Log().Warn(fmt.Sprintf("scribe has %d", m.Inline[0]))
}

func (c *Scribe) onBlock(m *component.Message) {
	c.old = m.Block
	reply := component.Message{Kind: m.Kind, Sender: m.Sender}
	switch m.Kind {
	case Sum:
		reply.Inline[0] = sum(m.Block)
	case Double:
		reward, err := m.Block.Writable("reward")
		reply.Inline[0] = flag(err != nil)
		if err == nil {
			for i := range reward.Float32() {
				reward.Float32()[i] *= 2
			}
		}
	case Keep:
		var err error
		c.lease, err = m.Block.Lease()
		c.check(err)
	case Pass:
		c.emit(c.blocks, *m)
		return
	case Mistaken:
		_, missing := m.Block.Column("rewards")
		lease, err := m.Block.Lease()
		c.check(err)
		_, late := lease.Writable("reward")
		reply.Inline[0] = flag(missing != nil && late != nil)
		c.check(lease.Release())
	}
	c.emit(c.notes, reply)
}

// sum returns the bits of the sum of the rewards of a block, or of the x of a scribe's own block.
func sum(b component.Block) uint64 {
	column, err := b.Column("reward")
	if err != nil {
		column, err = b.Column("x")
	}
	if err != nil {
		return 0
	}
	total := 0.0
	for _, x := range column.Float32() {
		total += float64(x)
	}
	return math.Float64bits(total)
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// Snapshot saves the number of orders.
func (c *Scribe) Snapshot() ([]byte, error) {
	return binary.LittleEndian.AppendUint64(nil, c.orders), nil
}

// Restore takes it.
func (c *Scribe) Restore(state []byte) error {
	if len(state) != 8 {
		return fmt.Errorf("a state of %d bytes, want 8", len(state))
	}
	c.orders = binary.LittleEndian.Uint64(state)
	return nil
}

// Stop has nothing to release: the host takes remaining leases and loans back.
func (c *Scribe) Stop() error { return nil }
