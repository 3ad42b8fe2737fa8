//go:build !wasip1

package hostabi

// Reading and checking descriptions is the host's: guests do without, since fmt and os, which it needs, would make each of them
// larger and slower to copy.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxRecordBytes = 1 << 12

// ErrSpec is wrapped by every error about an environment's description.
var ErrSpec = errors.New("environment description not accepted")

// ErrNotYet is wrapped too if a description is valid but asks for features that this host does not run yet.
var ErrNotYet = errors.New("this host does not run it yet")

// ErrTooOld is wrapped too if a description is of a later version than this host's, so that the host must be updated. It is an
// ErrNotYet.
var ErrTooOld = errors.New("this rlhost is too old")

// tooOld is an ErrTooOld with its own text.
type tooOld struct{ text string }

func (e *tooOld) Error() string { return e.text }

func (e *tooOld) Is(target error) bool { return target == ErrTooOld || target == ErrNotYet }

// ParseSpec decodes and checks the output of rl_describe. b is not kept.
func ParseSpec(b []byte) (EnvSpec, error) {
	if err := later(b); err != nil {
		return EnvSpec{}, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	s, err := parse(b)
	if err == nil {
		err = s.check()
	}
	if err != nil && s.ABI.Minor > EnvABI.Minor && !errors.Is(err, ErrTooOld) {
		err = &tooOld{fmt.Sprintf("it is of ABI %v: %v", s.ABI, err)}
	}
	if err != nil {
		return s, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	return s, nil
}

// later reads what any version of the ABI has in its place, the major version and the needs, before anything that a later version may
// have changed.
func later(b []byte) error {
	const major, needs = 4, 16
	if len(b) < specBytes10 {
		return fmt.Errorf("%d bytes, the head alone has %d", len(b), specBytes10)
	}
	v := binary.LittleEndian.Uint16(b[major:])
	switch lacks := Features(binary.LittleEndian.Uint64(b[needs:])) &^ HostFeatures; {
	case v > EnvABI.Major:
		return &tooOld{fmt.Sprintf("it is of ABI %d, this host speaks %v", v, EnvABI)}
	case v < EnvABI.Major:
		return fmt.Errorf("abi_major is %d, want %d", v, EnvABI.Major)
	case lacks != 0:
		return &tooOld{fmt.Sprintf("it needs %v", lacks)}
	}
	return nil
}

func parse(b []byte) (s EnvSpec, err error) {
	var head Spec
	s.ABI.Major, s.ABI.Minor = EnvABI.Major, binary.LittleEndian.Uint16(b[6:])
	known := make([]byte, SpecBytes) // what a shorter head has not is 0
	copy(known, b[:min(int(binary.LittleEndian.Uint32(b)), len(b))])
	if err := decode(&head, known, "head", 0); err != nil {
		return s, err
	}
	r := reader{b: b}
	// Hints that this host does not know are ignored.
	s = EnvSpec{
		ABI: s.ABI, Caps: head.Caps & envCaps, Needs: head.Needs,
		Flags:   head.Flags & specFlags,
		MaxEnvs: int(head.MaxEnvs), EpisodeLimit: int(head.EpisodeLimit), Autoreset: head.Autoreset & autoresets,
		Render:  Render{head.RenderModes & renderModes, int(head.RenderWidth), int(head.RenderHeight), head.RenderFPS},
		Rewards: Rewards{Low: head.RewardLow, High: head.RewardHigh}, DT: head.DT, StateVersion: head.StateVersion,
		StateMax: int(head.StateMax), BindingBytes: int(head.BindingBytes),
	}
	if t := head.RewardThreshold; !isNaN(t) {
		s.Rewards.Threshold = &t
	}
	if err := r.open(&head); err != nil {
		return s, err
	}
	s.Name, s.Doc, s.Licence, s.Keys = r.text("name", head.Name), r.text("doc", head.Doc), r.text("licence", head.Licence), r.text("keys", head.Keys)
	if strings.Contains(s.Name, "@") {
		return s, fmt.Errorf("its name is %q: what follows an @ is the version, a string of its own", s.Name)
	}
	if version := r.text("version", head.Version); version != "" {
		s.Name += "@" + version
	}
	at := uint64(head.Size)
	groups := records[GroupDesc](&r, &at, "groups", head.Groups, MaxGroups, head.GroupBytes, GroupBytes)
	tensors := records[TensorDesc](&r, &at, "tensors", head.Tensors, MaxTensors, head.TensorBytes, TensorBytes)
	args := records[ArgDesc](&r, &at, "args", head.Args, MaxArgs, head.ArgBytes, ArgBytes)
	for i := range groups {
		s.Groups = append(s.Groups, r.group(i, &groups[i]))
	}
	for i := range tensors {
		s.Tensors = append(s.Tensors, r.tensor(i, &tensors[i]))
	}
	for i := range args {
		s.Args = append(s.Args, r.arg(i, &args[i]))
	}
	return s, r.err
}

// reader reads a description. It keeps the first error, after which its results mean nothing.
type reader struct {
	b, strings []byte
	head       int // its length
	err        error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// open checks the sizes in the head, also of records that are missing, and finds the string table.
func (r *reader) open(head *Spec) error {
	for _, record := range []struct {
		name  string
		size  uint16
		known int
	}{
		{"group_bytes", head.GroupBytes, GroupBytes}, {"tensor_bytes", head.TensorBytes, TensorBytes},
		{"arg_bytes", head.ArgBytes, ArgBytes}, {"binding_bytes", head.BindingBytes, BindingBytes},
	} {
		if n := int(record.size); n < record.known || n > maxRecordBytes || n%4 != 0 {
			return fmt.Errorf("%s = %d, want a multiple of 4 from %d to %d", record.name, n, record.known, maxRecordBytes)
		}
	}
	return r.openTable(head.Size, specBytes10, head.StringsAt, head.StringsLen)
}

// openTable checks the size of a head and finds the string table.
func (r *reader) openTable(size, known, at, n uint32) error {
	switch end := uint64(at) + uint64(n); {
	case size < known || size > maxRecordBytes || size%4 != 0 || int(size) > len(r.b):
		return fmt.Errorf("a head of %d bytes, want a multiple of 4 from %d to %d, of the %d that there are", size, known, maxRecordBytes, len(r.b))
	case n > 0 && at < size:
		return fmt.Errorf("strings at %d, within the head of %d bytes", at, size)
	case end > uint64(len(r.b)):
		return fmt.Errorf("strings at %d to %d of %d bytes", at, end, len(r.b))
	case n > 0 && (r.b[at] != 0 || r.b[end-1] != 0):
		return errors.New("the string table does not begin and end with a NUL")
	default:
		r.head, r.strings = int(size), r.b[at:end]
	}
	return nil
}

// decode fills a record from its bytes and reports one whose reserved fields are not 0.
func decode[T Spec | GroupDesc | TensorDesc | ArgDesc | ComponentSpec | PortDesc | ColumnDesc | RequestDesc](to *T, from []byte, what string, i int) error {
	_, _ = binary.Decode(from, binary.LittleEndian, to)    // there are as many bytes as it has
	back, _ := binary.Append(nil, binary.LittleEndian, to) // which writes blank fields as 0
	for k := range from {
		if from[k] != back[k] {
			return unknown("%s %d: byte %d is %d; it is reserved and must be 0", what, i, k, from[k])
		}
	}
	return nil
}

// records decodes count records of size bytes each, of which the host knows the first known ones, from at on.
func records[T GroupDesc | TensorDesc | ArgDesc | PortDesc | ColumnDesc | RequestDesc](r *reader, at *uint64, what string, count, most uint32, size uint16, known int) []T {
	if count == 0 || r.err != nil {
		return nil
	}
	if count > most {
		r.fail("%d %s, at most %d", count, what, most)
		return nil
	}
	if int(size) < known || size > maxRecordBytes || size%4 != 0 {
		r.fail("records of %s of %d bytes, want a multiple of 4 from %d to %d", what, size, known, maxRecordBytes)
		return nil
	}
	end := *at + uint64(count)*uint64(size)
	if end > uint64(len(r.b)) {
		r.fail("%d %s at %d do not fit in %d bytes", count, what, *at, len(r.b))
		return nil
	}
	list := make([]T, count)
	for i := range list {
		if err := decode(&list[i], r.b[*at+uint64(i)*uint64(size):][:known], what, i); err != nil {
			r.fail("%w", err)
			return nil
		}
	}
	*at = end
	return list
}

// text returns a string of the table.
func (r *reader) text(what string, at uint32) string {
	if at == 0 || r.err != nil {
		return ""
	}
	if int64(at) >= int64(len(r.strings)) {
		r.fail("%s is the string at %d, outside the table of %d bytes", what, at, len(r.strings))
		return ""
	}
	rest := r.strings[at:]
	s := string(rest[:slices.Index(rest, 0)]) // the table ends with a NUL
	switch {
	case len(s) > MaxStringBytes:
		r.fail("%s has %d bytes, at most %d", what, len(s), MaxStringBytes)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(c rune) bool { return unicode.IsControl(c) && c != '\n' }):
		r.fail("%s is %q: want UTF-8 without control characters", what, s)
	}
	return s
}

func (r *reader) group(i int, d *GroupDesc) Group {
	g := Group{Name: r.text("name of group "+fmt.Sprint(i), d.Name), Agents: int(d.Agents), AgentNames: r.text("agent_names of group "+fmt.Sprint(i), d.AgentNames)}
	if d.Flags != 0 {
		r.fail("group %d: flags are %#x; they are reserved and must be 0", i, d.Flags)
	}
	return g
}

// Hints that this host knows.
const (
	envCaps     = CapStrides | CapPreferSoA
	specFlags   = SpecDeterministic | SpecDynamicAgents | SpecInitCalls
	autoresets  = NextStep | SameStep | Disabled
	renderModes = RenderText | RenderRGB | RenderRGBA
	argFlags    = ArgAffectsSpaces
)

func (r *reader) tensor(i int, d *TensorDesc) Tensor {
	t := Tensor{Role: d.Role, Index: d.Index, Group: d.Group, DType: d.DType, Rank: d.Rank, Flags: d.Flags, Shape: d.Shape,
		Low: d.Low, High: d.High, N: d.N, Start: d.Start, Pair: d.Pair, Scale: d.Scale,
		Path: r.text(fmt.Sprintf("path of tensor %d", i), d.Path), Doc: r.text(fmt.Sprintf("doc of tensor %d", i), d.Doc)}
	n, at := uint64(t.Elems(MaxTensorElems)), uint64(d.Values)
	switch {
	case at == 0 || n == 0 || r.err != nil || !d.Role.Known():
	case d.DType.Float():
		t.Lows, t.Highs = values[float32](r, i, at, n), values[float32](r, i, at+4*n, n)
	default:
		t.Counts = values[uint32](r, i, at, n)
	}
	t.open()
	return t
}

// open clears the value of an absent bound: it may be anything.
func (t *Tensor) open() {
	if t.Flags&TensorNoLow != 0 {
		t.Low = 0
		clear(t.Lows)
	}
	if t.Flags&TensorNoHigh != 0 {
		t.High = 0
		clear(t.Highs)
	}
}

// values decodes numbers that a tensor refers to.
func values[T float32 | uint32](r *reader, tensor int, at, n uint64) []T {
	if at%4 != 0 || at < uint64(r.head) || at+4*n > uint64(len(r.b)) {
		r.fail("tensor %d: values at %d to %d of %d bytes, want a multiple of 4 after the head of %d", tensor, at, at+4*n, len(r.b), r.head)
		return nil
	}
	list := make([]T, n)
	_, _ = binary.Decode(r.b[at:at+4*n], binary.LittleEndian, list) // as many bytes as it has
	return list
}

func (r *reader) arg(i int, d *ArgDesc) Arg {
	a := Arg{Name: r.text(fmt.Sprintf("name of argument %d", i), d.Name), Doc: r.text(fmt.Sprintf("doc of argument %d", i), d.Doc), Type: d.Kind,
		Flags: d.Flags & argFlags, Min: d.Min, Max: d.Max, Default: r.text(fmt.Sprintf("default of argument %d", i), d.Value)}
	if choices := r.text(fmt.Sprintf("choices of argument %d", i), d.Choices); choices != "" {
		a.Choices = strings.Split(choices, "\n")
	}
	if a.Type > ArgChoice { // it is of a later version
		a.Type, a.Min, a.Max, a.Choices = ArgText, 0, 0, nil
	}
	return a
}
