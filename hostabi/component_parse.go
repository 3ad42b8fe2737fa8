//go:build !wasip1

package hostabi

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
)

// ErrManifest is wrapped by every error about a component's manifest.
var ErrManifest = errors.New("manifest not accepted")

// unknownError is an error about something that this version does not have, and a later one may.
type unknownError struct{ error }

// unknown makes an unknownError.
func unknown(format string, args ...any) error { return unknownError{fmt.Errorf(format, args...)} }

// judged returns an error of reading a description. One about something unknown means that the host is too old where the guest was
// built for a later minor version.
func judged(err error, guest, host Version) error {
	if guest.Minor > host.Minor && errors.As(err, new(unknownError)) {
		return &tooOld{fmt.Sprintf("it is of ABI %v: %v", guest, err)}
	}
	return err
}

// ParseManifest decodes and checks the output of rl_manifest. b is not kept. Errors wrap ErrManifest, and ErrTooOld where the
// component needs a later host.
func ParseManifest(b []byte) (Manifest, error) {
	m, err := parseManifest(b)
	if err == nil {
		err = m.check()
	}
	if err = judged(err, m.ABI, ComponentABI); err != nil {
		return m, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	return m, nil
}

func parseManifest(b []byte) (m Manifest, err error) {
	if len(b) < ComponentSpecBytes {
		return m, fmt.Errorf("%d bytes, the head alone has %d", len(b), ComponentSpecBytes)
	}
	var head ComponentSpec
	reserved := decode(&head, b[:ComponentSpecBytes], "head", 0)
	m.ABI = Version{head.ABIMajor, head.ABIMinor}
	switch { // first what a later version cannot change
	case m.ABI.Major > ComponentABI.Major:
		return m, &tooOld{fmt.Sprintf("it is of ABI %v, this host speaks %v", m.ABI, ComponentABI)}
	case m.ABI.Major != ComponentABI.Major:
		return m, fmt.Errorf("component ABI %v, this host speaks %v", m.ABI, ComponentABI)
	case head.Needs != 0:
		return m, &tooOld{fmt.Sprintf("it needs features %#x", head.Needs)}
	case reserved != nil:
		return m, reserved
	}
	r := reader{b: b}
	if err := r.openTable(head.Size, ComponentSpecBytes, head.StringsAt, head.StringsLen); err != nil {
		return m, err
	}
	m = Manifest{ABI: Version{head.ABIMajor, head.ABIMinor}, Flags: head.Flags & ComponentStateless,
		MessageBytes: int(head.MessageBytes), BindingBytes: int(head.BindingBytes),
		Name: r.text("name", head.Name), Doc: r.text("doc", head.Doc), Licence: r.text("licence", head.Licence)}
	if version := r.text("version", head.Version); version != "" {
		m.Name += "@" + version
	}
	at := uint64(head.Size)
	signals := records[PortDesc](&r, &at, "signals", head.Signals, MaxPorts, head.PortBytes, PortBytes)
	slots := records[PortDesc](&r, &at, "slots", head.Slots, MaxPorts, head.PortBytes, PortBytes)
	columns := records[ColumnDesc](&r, &at, "columns", head.Columns, MaxColumns, head.ColumnBytes, ColumnDescBytes)
	m.Signals, m.Slots = r.ports("signal", signals), r.ports("slot", slots)
	for i, d := range columns {
		m.Columns = append(m.Columns, ManifestColumn{int(d.Slot), r.text(fmt.Sprintf("name of column %d", i), d.Name), d.Flags, d.DType})
	}
	size := uint16(min(head.RequestBytes, math.MaxUint16))
	if m.ABI.Minor >= minorRequests {
		m.Requests, err = r.requests("request", records[RequestDesc](&r, &at, "requests", head.Requests, MaxRequests, size, RequestDescBytes))
	}
	if m.ABI.Minor >= minorAsks && err == nil {
		m.Asks, err = r.requests("ask", records[RequestDesc](&r, &at, "asks", head.Asks, MaxRequests, size, RequestDescBytes))
	}
	if r.err != nil {
		err = r.err
	}
	return m, err
}

// The minor versions of the ABI whose components answer requests, and ask others.
const (
	minorRequests = 1
	minorAsks     = 2
)

func (r *reader) requests(what string, list []RequestDesc) (requests []Request, err error) {
	for i, d := range list {
		q := Request{Name: r.text(fmt.Sprintf("name of %s %d", what, i), d.Name), Doc: r.text(fmt.Sprintf("doc of %s %d", what, i), d.Doc)}
		if q.Args, err = parseArgs(r.text(fmt.Sprintf("arguments of %s %d", what, i), d.Args)); err != nil {
			return nil, fmt.Errorf("the %s %s %w", what, q.Name, err)
		}
		requests = append(requests, q)
	}
	return requests, nil
}

// parseArgs reads the arguments of a request, such as "lr number, warm bool?".
func parseArgs(text string) (args []RequestArg, err error) {
	if text == "" {
		return nil, nil
	}
	for _, arg := range strings.Split(text, ", ") {
		name, kind, ok := strings.Cut(arg, " ")
		if !ok {
			return nil, fmt.Errorf("has the argument %q, want NAME TYPE", arg)
		}
		kind, optional := strings.CutSuffix(kind, "?")
		args = append(args, RequestArg{Name: name, Type: RequestType(kind), Optional: optional})
	}
	return args, nil
}

func (r *reader) ports(what string, list []PortDesc) (ports []ManifestPort) {
	for i, d := range list {
		ports = append(ports, ManifestPort{r.text(fmt.Sprintf("name of %s %d", what, i), d.Name),
			r.text(fmt.Sprintf("payload of %s %d", what, i), d.Payload), r.text(fmt.Sprintf("doc of %s %d", what, i), d.Doc), d.Flags, d.Schema})
	}
	return ports
}

// check refuses a manifest that breaks the rules.
func (m *Manifest) check() error {
	switch {
	case m.Name == "" || m.Name[0] == '@':
		return errors.New("it has no name")
	case !oneLine(m.Name):
		return fmt.Errorf("its name is %q, want one line of printable text", m.Name)
	case !recordSize(m.MessageBytes, ComponentMessageBytes):
		return fmt.Errorf("message_bytes = %d, want a multiple of 8 from %d to %d", m.MessageBytes, ComponentMessageBytes, maxRecordBytes)
	case !recordSize(m.BindingBytes, ColumnBindingBytes):
		return fmt.Errorf("binding_bytes = %d, want a multiple of 8 from %d to %d", m.BindingBytes, ColumnBindingBytes, maxRecordBytes)
	}
	if err := checkPorts("signal", m.Signals); err != nil {
		return err
	}
	if err := checkPorts("slot", m.Slots); err != nil {
		return err
	}
	if err := CheckRequests(m.Requests); err != nil {
		return err
	}
	if err := CheckRequests(m.Asks); err != nil {
		return fmt.Errorf("of what it asks others: %w", err)
	}
	return m.checkColumns()
}

// recordSize reports whether a record that the host writes may have that size.
func recordSize(n, least int) bool { return n >= least && n <= maxRecordBytes && n%8 == 0 }

func checkPorts(what string, list []ManifestPort) error {
	for i, p := range list {
		switch {
		case !snakeCase(p.Name):
			return fmt.Errorf("%s %d has the name %q, want snake_case", what, i, p.Name)
		case !snakeCase(p.Payload):
			return fmt.Errorf("%s %s has the payload %q, want snake_case", what, p.Name, p.Payload)
		case p.Flags&^(PortOnLoan|PortBlocks) != 0:
			return unknown("%s %s has unknown flags %#x", what, p.Name, p.Flags)
		case slices.ContainsFunc(list[:i], func(q ManifestPort) bool { return q.Name == p.Name }):
			return fmt.Errorf("there are two %ss %s", what, p.Name)
		}
	}
	return nil
}

func (m *Manifest) checkColumns() error {
	for i, c := range m.Columns {
		switch {
		case c.Slot >= len(m.Slots):
			return fmt.Errorf("column %d is of slot %d, there are %d", i, c.Slot, len(m.Slots))
		case c.Name == "":
			return fmt.Errorf("column %d has no name", i)
		case !oneLine(c.Name):
			return fmt.Errorf("column %d has the name %q, want one line of printable text", i, c.Name)
		case c.Flags&^(ColumnWrite|ColumnOptional) != 0:
			return unknown("column %s has unknown flags %#x", c.Name, c.Flags)
		case c.DType != 0 && c.DType.Bytes() == 0:
			return unknown("column %s has the unknown type %d", c.Name, c.DType)
		}
		same := func(o ManifestColumn) bool { return o.Slot == c.Slot && o.Name == c.Name }
		if slices.ContainsFunc(m.Columns[:i], same) {
			return fmt.Errorf("slot %s has the column %s twice", m.Slots[c.Slot].Name, c.Name)
		}
	}
	return nil
}

// oneLine reports whether text can be shown as it is, in a line with other text.
func oneLine(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// snakeCase reports whether a name has lower-case letters, digits and _ alone, a letter first.
func snakeCase(name string) bool {
	for i, c := range []byte(name) {
		if letter := c >= 'a' && c <= 'z'; !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return name != ""
}
