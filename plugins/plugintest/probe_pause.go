package plugintest

import "github.com/rlhost/rlhost/core/component"

var _ component.Pauser = (*Probe)(nil)

// Pause waits until all requests of the probe are answered.
func (p *Probe) Pause(rested func()) {
	p.rested = rested
	p.settle()
}

func (p *Probe) settle() {
	if p.rested == nil || len(p.asked) > 0 {
		return
	}
	rested := p.rested
	p.rested = nil
	rested()
}

// Resume ends a Pause.
func (p *Probe) Resume() { p.rested = nil }

// Waiting returns the unanswered requests.
func (p *Probe) Waiting() (list []component.Waiting) {
	for _, m := range p.held {
		list = append(list, component.Waiting{Slot: "on_ask", Message: m})
	}
	p.held = nil
	return list
}
