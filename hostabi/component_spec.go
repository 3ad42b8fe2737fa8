package hostabi

import (
	"encoding/binary"
	"slices"
	"strings"
)

// ComponentABI is the version of the component ABI that this host speaks.
var ComponentABI = Version{Major: 1, Minor: 2}

// Limits on a component's description.
const (
	MaxPorts   = 256 // signals, and slots
	MaxColumns = 256
)

// Manifest is a component's description of itself for one configuration.
type Manifest struct {
	Name         string // name@version
	Doc          string
	Licence      string
	ABI          Version
	Flags        ComponentFlags
	MessageBytes int // sizes of records as the guest reads them
	BindingBytes int

	Signals, Slots []ManifestPort
	Columns        []ManifestColumn
	Requests       []Request // without the docs of arguments
	Asks           []Request // questions to other components, likewise
}

// ManifestPort is a signal or a slot.
type ManifestPort struct {
	Name, Payload, Doc string
	Flags              PortFlags
	Schema             uint64
}

// ManifestColumn is a column that a slot uses.
type ManifestColumn struct {
	Slot  int
	Name  string
	Flags ColumnFlags
	DType DType // 0 = any
}

// Describe returns the manifest as a component writes it. ParseManifest is its inverse.
func (m *Manifest) Describe() []byte {
	w := writer{strings: []byte{0}}
	name, version, _ := strings.Cut(m.Name, "@")
	head := ComponentSpec{Size: ComponentSpecBytes, ABIMajor: ComponentABI.Major, ABIMinor: ComponentABI.Minor, PortBytes: PortBytes,
		ColumnBytes: ColumnDescBytes, MessageBytes: ComponentMessageBytes, BindingBytes: ColumnBindingBytes, Signals: uint32(len(m.Signals)),
		Slots: uint32(len(m.Slots)), Columns: uint32(len(m.Columns)), Flags: m.Flags, Requests: uint32(len(m.Requests)), RequestBytes: RequestDescBytes, Asks: uint32(len(m.Asks)),
		Name: w.text(name), Version: w.text(version), Doc: w.text(m.Doc), Licence: w.text(m.Licence)}
	for _, p := range slices.Concat(m.Signals, m.Slots) {
		w.put(PortDesc{Name: w.text(p.Name), Payload: w.text(p.Payload), Doc: w.text(p.Doc), Flags: p.Flags, Schema: p.Schema})
	}
	for _, c := range m.Columns {
		w.put(ColumnDesc{Slot: uint32(c.Slot), Name: w.text(c.Name), Flags: c.Flags, DType: c.DType})
	}
	for _, r := range slices.Concat(m.Requests, m.Asks) {
		w.put(RequestDesc{Name: w.text(r.Name), Doc: w.text(r.Doc), Args: w.text(r.argsText())})
	}
	head.StringsAt, head.StringsLen = uint32(ComponentSpecBytes+len(w.records)), uint32(len(w.strings))
	b, _ := binary.Append(nil, binary.LittleEndian, &head) // structs of fixed size always fit
	return slices.Concat(b, w.records, w.strings)
}
