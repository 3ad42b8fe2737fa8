package component_test

import (
	"fmt"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk/component"
)

// scribe writes the sum of a block's rewards into a block of its own arena, which it reads when the block arrives.
type scribe struct {
	component.Stateless
	host       component.Host
	out, notes component.Signal
	pages      component.Arena
	sum        float32
}

func (c *scribe) Manifest() component.Manifest {
	return component.Manifest{
		Signals: []component.Port{{Name: "trajectories", Payload: "trajectory"}, {Name: "notes", Payload: "note"}},
		Slots:   []component.Port{{Name: "on_trajectories", Payload: "trajectory"}, {Name: "on_notes", Payload: "note"}},
	}
}

func (c *scribe) Configure(decode func(into any) error) error { return decode(&struct{}{}) }

func (c *scribe) Start(h component.Host) (err error) {
	c.host, c.out, c.notes = h, h.Signal("trajectories"), h.Signal("notes")
	h.Slot("on_trajectories", func(m *component.Message) { c.check(c.onTrajectory(m)) })
	h.Slot("on_notes", func(m *component.Message) { c.check(c.onNote(m)) })
	c.pages, err = h.Arena("pages", 2, component.Tensor{Name: "sum", DType: hostabi.F32})
	return err
}

func (c *scribe) check(err error) {
	if err != nil {
		c.host.Fail(err)
	}
}

func (c *scribe) onTrajectory(m *component.Message) error {
	reward, err := m.Block.Column("reward")
	if err != nil {
		return err
	}
	loan, free := c.pages.Loan()
	if !free { // receivers still have claims on all pages
		return component.Pass(c.out, m)
	}
	sum, err := loan.Column("sum")
	if err != nil {
		return err
	}
	sum.Float32()[0] = 0
	for _, r := range reward.Float32() {
		sum.Float32()[0] += r
	}
	page, err := loan.Commit()
	if err != nil {
		return err
	}
	if err := component.Pass(c.notes, &component.Message{Block: page}); err != nil {
		return err
	}
	if err := page.Release(); err != nil {
		return err
	}
	return component.Pass(c.out, m)
}

func (c *scribe) onNote(m *component.Message) error {
	sum, err := m.Block.Column("sum")
	if err == nil {
		c.sum += sum.Float32()[0]
	}
	return err
}

// A block of one's own is on loan while it is written, and read by others once it is committed.
func ExampleLoan() {
	c := &scribe{}
	trainOn(cartpole+`
[[wire]]
signal = "mine.notes"
slot = "mine.on_notes"
mode = "all"
depth = 4
on_full = "drop_oldest"
`, c)
	fmt.Println(c.sum)
	// Output:
	// ended: env_steps
	// 4096
}
