package module

import (
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk/component"
)

// describe returns a component's manifest as the ABI has it. Its slots look at columns by their names.
func describe(name string, m component.Manifest) []byte {
	ports := func(list []component.Port, flags hostabi.PortFlags) (ports []hostabi.ManifestPort) {
		for _, p := range list {
			ports = append(ports, hostabi.ManifestPort{Name: p.Name, Payload: p.Payload, Doc: p.Doc, Flags: flags, Schema: p.Schema})
		}
		return ports
	}
	d := hostabi.Manifest{Name: name, Signals: ports(m.Signals, 0), Slots: ports(m.Slots, hostabi.PortBlocks)}
	return d.Describe()
}
