package module

import (
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk/component"
)

// describe returns a component's manifest as the ABI has it. Its slots look at columns by their names, too.
func describe(name string, c component.Component) []byte {
	m := c.Manifest()
	ports := func(list []component.Port, flags hostabi.PortFlags) (ports []hostabi.ManifestPort) {
		for _, p := range list {
			ports = append(ports, hostabi.ManifestPort{Name: p.Name, Payload: p.Payload, Doc: p.Doc, Flags: flags, Schema: p.Schema})
		}
		return ports
	}
	d := hostabi.Manifest{Name: name, Signals: ports(m.Signals, 0), Slots: ports(m.Slots, hostabi.PortBlocks), Requests: m.Requests, Asks: m.Asks}
	if declared, ok := c.(*component.Declared); ok && declared.State == nil {
		d.Flags = hostabi.ComponentStateless
	}
	for slot, wants := range wantsOf(c) {
		for _, w := range wants {
			d.Columns = append(d.Columns, hostabi.ManifestColumn{Slot: slot, Name: w.Name, DType: w.DType, Flags: flagsOf(&w)})
		}
	}
	return d.Describe()
}

// wantsOf returns the columns that a component declares, by its slots.
func wantsOf(c component.Component) (list [][]component.Want) {
	if d, ok := c.(*component.Declared); ok {
		for i := range d.Slots {
			list = append(list, d.Slots[i].Columns)
		}
	}
	return list
}

func flagsOf(w *component.Want) (flags hostabi.ColumnFlags) {
	if w.Write {
		flags |= hostabi.ColumnWrite
	}
	if w.Optional {
		flags |= hostabi.ColumnOptional
	}
	return flags
}
