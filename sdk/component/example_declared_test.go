package component_test

import (
	"fmt"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk/component"
)

// falls counts the episodes that ended by a fall, from the block on that the key first names.
type falls struct {
	First      int `toml:"first"`
	terminated component.Column
	out        component.Signal
	blocks     int
	count      int
}

func newFalls() (*falls, component.Component) {
	c := &falls{First: 1}
	return c, &component.Declared{
		Config:  c,
		Check:   func() error { return component.Require(c.First > 0, "first", "is less than 1") },
		Signals: []component.Output{{Name: "trajectories", Payload: "trajectory", Doc: "as they came", Bind: &c.out}},
		Slots: []component.Input{{
			Name: "on_trajectories", Payload: "trajectory", Doc: "full blocks", Handle: c.onTrajectory,
			Columns: []component.Want{{Name: "terminated", DType: hostabi.U8, Into: &c.terminated}},
		}},
	}
}

func (c *falls) onTrajectory(m *component.Message) error {
	if c.blocks++; c.blocks >= c.First {
		for t := range c.terminated.Rows {
			for env := range c.terminated.Envs {
				c.count += int(c.terminated.Row(t, env).Bytes[0])
			}
		}
	}
	return component.Pass(c.out, m)
}

// A component is put together from its keys, its signals, and its slots with the columns that they read.
func ExampleDeclared() {
	c, made := newFalls()
	train(made, "component.mine.first=3")
	fmt.Println(c.blocks, c.count > 0)

	fmt.Println(made.Configure(func(into any) error { // as the host reads first = 0
		into.(*falls).First = 0
		return nil
	}))
	// Output:
	// ended: env_steps
	// 8 true
	// `first` is less than 1
}
