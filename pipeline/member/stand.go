package member

import (
	"fmt"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
)

// stand has the ports and the table of a component that runs on another host.
type stand struct {
	made component.Component // configured, and never started
}

// Manifest lists the ports. Requests are for the component itself.
func (s *stand) Manifest() component.Manifest {
	m := s.made.Manifest()
	m.Requests, m.Asks = nil, nil
	return m
}

// Configure reads the component's table.
func (s *stand) Configure(decode func(into any) error) error { return s.made.Configure(decode) }

// Snapshot says that the state is elsewhere.
func (s *stand) Snapshot() (component.State, error) {
	return component.State{}, fmt.Errorf("%w: it runs on another host", component.ErrNoSnapshot)
}

// Restore ignores a state: the component starts from scratch on its host.
func (s *stand) Restore(component.State) error { return nil }

// bind binds all slots: take says what is done with the messages of a port, and returns nil where they are for nobody.
func (s *stand) bind(h *component.Host, take func(p *component.Port) func(*hostabi.Message)) {
	m := s.made.Manifest()
	for i := range m.Slots {
		fn := take(&m.Slots[i])
		if fn == nil {
			fn = func(*hostabi.Message) {}
		}
		h.Slot(m.Slots[i].Name, fn)
	}
}
