package hostabi

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// whole is a manifest with something of everything.
func whole() Manifest {
	return Manifest{
		Name: "whole@1", Doc: "all of it", Licence: "MIT", ABI: ComponentABI, MessageBytes: ComponentMessageBytes, BindingBytes: ColumnBindingBytes,
		Signals:  []ManifestPort{{Name: "out", Payload: "trajectory", Doc: "what came", Schema: 7}},
		Slots:    []ManifestPort{{Name: "in", Payload: "trajectory", Flags: PortBlocks}, {Name: "act", Payload: "act_request", Flags: PortOnLoan}},
		Columns:  []ManifestColumn{{Slot: 0, Name: "reward", Flags: ColumnWrite, DType: F32}, {Slot: 1, Name: "obs/1", Flags: ColumnOptional}},
		Requests: []Request{{Name: "set", Doc: "the rate", Args: []RequestArg{{Name: "lr", Type: RequestNumber}, {Name: "warm", Type: RequestBool, Optional: true}}}, {Name: "ask"}},
		Asks:     []Request{{Name: "total", Doc: "of another", Args: []RequestArg{{Name: "times", Type: RequestInteger}}}, {Name: "set"}},
	}
}

func TestManifest_ComesBackAsItWas(t *testing.T) {
	want := whole()
	got, err := ParseManifest(want.Describe())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

func TestParseManifest_NamesTheErrors(t *testing.T) {
	for want, change := range map[string]func(*Manifest){
		"it has no name":                            func(m *Manifest) { m.Name = "" },
		`signal 0 has the name "Out"`:               func(m *Manifest) { m.Signals[0].Name = "Out" },
		`slot in has the payload ""`:                func(m *Manifest) { m.Slots[0].Payload = "" },
		"there are two slots in":                    func(m *Manifest) { m.Slots[1].Name = "in" },
		"slot in has unknown flags 0x8":             func(m *Manifest) { m.Slots[0].Flags = 8 },
		"column 1 is of slot 2, there are 2":        func(m *Manifest) { m.Columns[1].Slot = 2 },
		"the request set is there twice":            func(m *Manifest) { m.Requests[1].Name = "set" },
		`a request is called "Ask"`:                 func(m *Manifest) { m.Requests[1].Name = "Ask" },
		`an argument lr of the type "real"`:         func(m *Manifest) { m.Requests[0].Args[0].Type = "real" },
		`has the argument "lr", want NAME TYPE`:     func(m *Manifest) { m.Requests[0].Args = []RequestArg{{Name: "lr, lr"}} },
		`has an argument "lr" twice`:                func(m *Manifest) { m.Requests[0].Args[1].Name = "lr" },
		"it asks others: the request set is there":  func(m *Manifest) { m.Asks[0].Name = "set" },
		`ask total has the argument "n", want NAME`: func(m *Manifest) { m.Asks[0].Args = []RequestArg{{Name: "n, n"}} },
		"column 0 has no name":                      func(m *Manifest) { m.Columns[0].Name = "" },
		"column reward has unknown flags 0x10":      func(m *Manifest) { m.Columns[0].Flags = 16 },
		"column reward has the unknown type 99":     func(m *Manifest) { m.Columns[0].DType = 99 },
		"slot in has the column reward twice":       func(m *Manifest) { m.Columns[1] = ManifestColumn{Name: "reward"} },
		`its name is "a\nb@1"`:                      func(m *Manifest) { m.Name = "a\nb@1" },
		`column 0 has the name "\u202ereward"`:      func(m *Manifest) { m.Columns[0].Name = "\u202ereward" },
		"UTF-8 without control characters":          func(m *Manifest) { m.Doc = "\x1b[31mred" },
	} {
		m := whole()
		change(&m)
		_, err := ParseManifest(m.Describe())
		if err == nil || !errors.Is(err, ErrManifest) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}

// edited returns the manifest of whole with other bytes somewhere.
func edited(at int, bytes ...byte) []byte {
	m := whole()
	b := m.Describe()
	copy(b[at:], bytes)
	return b
}

// What a later version may have means that the host is too old, if the guest says that it is of a later version. Major and needs are
// read before everything else.
func TestParseManifest_TellsALaterGuestFromAWrongOne(t *testing.T) {
	const major, minor, needs, flags, reserved, ofPort = 4, 6, 8, 44, 76, ComponentSpecBytes + 12
	both := func(b []byte, at int, bytes ...byte) []byte { copy(b[at:], bytes); return b }
	for _, c := range []struct {
		name   string
		b      []byte
		tooOld bool
		says   string // "" if it is accepted
	}{
		{"a need", edited(needs, 4), true, "it needs features 0x4"},
		{"a need and reserved bytes", both(edited(needs, 4), reserved, 1), true, "it needs features 0x4"},
		{"a later major and a need", both(edited(major, 2), needs, 4), true, "it is of ABI 2.2"},
		{"major 0", edited(major, 0), false, "component ABI 0.2"},
		{"a later minor", edited(minor, 3), false, ""},
		{"requests of the first minor", both(edited(minor, 0), 64, 255), false, ""},
		{"asks of the second minor", both(edited(minor, 1), 72, 255), false, ""},
		{"more asks than there can be", edited(72, 1, 1), false, "257 asks, at most 256"},
		{"more requests than there can be", edited(64, 1, 1), false, "257 requests, at most 256"},
		{"a short record of a request", edited(68, 20), false, "records of requests of 20 bytes"},
		{"a hint", edited(flags, 0xfe), false, ""},
		{"reserved bytes", edited(reserved, 1), false, "reserved"},
		{"reserved bytes of a later minor", both(edited(minor, 3), reserved, 1), true, "it is of ABI 1.3"},
		{"a flag of a port", edited(ofPort, 8), false, "unknown flags 0x8"},
		{"a flag of a port of a later minor", both(edited(minor, 3), ofPort, 8), true, "unknown flags 0x8"},
		{"no name of a later minor", both(edited(minor, 3), 48, 0), false, "it has no name"},
	} {
		_, err := ParseManifest(c.b)
		if c.says == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err == nil || errors.Is(err, ErrTooOld) != c.tooOld || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q, too old: %v", c.name, err, c.says, c.tooOld)
		}
	}
}

// An accepted manifest means the same when it is written again.
func FuzzParseManifest(f *testing.F) {
	m := whole()
	f.Add(m.Describe())
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseManifest(b)
		if err != nil {
			if !errors.Is(err, ErrManifest) {
				t.Errorf("%v is no ErrManifest", err)
			}
			return
		}
		again, err := ParseManifest(m.Describe())
		again.ABI, again.MessageBytes, again.BindingBytes = m.ABI, m.MessageBytes, m.BindingBytes
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("%+v becomes %+v, %v", m, again, err)
		}
	})
}
