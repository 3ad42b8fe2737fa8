package plugintest

import "github.com/rlhost/rlhost/core/component"

var _ component.Pauser = (*Probe)(nil)

// Pause waits until all requests of the probe are answered.
func (c *Probe) Pause(rested func()) {
	c.rested = rested
	c.settle()
}

func (c *Probe) settle() {
	if c.rested == nil || len(c.asked) > 0 {
		return
	}
	rested := c.rested
	c.rested = nil
	rested()
}

// Resume ends a Pause.
func (c *Probe) Resume() { c.rested = nil }

// Waiting hands over the unanswered requests.
func (c *Probe) Waiting() (list []component.Waiting) {
	for _, m := range c.held {
		list = append(list, component.Waiting{Slot: "on_ask", Message: m})
	}
	c.held = nil
	return list
}
