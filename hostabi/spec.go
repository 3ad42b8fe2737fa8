package hostabi

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits on what an environment may describe; beyond them ParseSpec returns ErrSpec.
const (
	MaxTensors     = 64
	MaxGroups      = 64
	MaxArgs        = 256
	MaxTensorElems = 1 << 24
	MaxActions     = 1 << 16
	MaxStringBytes = 1 << 12 // of one string

	maxRecordBytes = 1 << 12
)

// ErrSpec is wrapped by every error about an environment's description.
var ErrSpec = errors.New("environment description not accepted")

// ErrNotYet is wrapped too where a description is valid but asks for what this host does not run yet.
var ErrNotYet = errors.New("this host does not run it yet")

// EnvSpec is an environment's description of itself for one configuration. It is a value: copies are independent but
// share slices, which nobody changes after ParseSpec.
type EnvSpec struct {
	Name         string // name@version
	Doc          string
	Licence      string
	ABI          Version
	Caps         Caps
	Needs        Features
	Flags        SpecFlags
	MaxEnvs      int // 0 = no limit
	EpisodeLimit int // time limit that the environment applies itself, 0 = none
	Autoreset    Autoreset
	Render       Render
	Rewards      Rewards
	StateVersion uint32
	StateMax     int // most bytes of a saved state, 0 = not said
	BindingBytes int // size of a Binding as the guest reads it; 0 = BindingBytes

	Groups  []Group  // none = one group of one agent
	Tensors []Tensor // in the order of rl_bind's bindings
	Args    []Arg
}

// Render says how an environment shows itself.
type Render struct {
	Modes         RenderMode
	Width, Height int
	FPS           float32
}

// Rewards says what rewards are like. Low and High are both 0 where they are not known.
type Rewards struct {
	Low, High float32
	Threshold *float32 // mean return that counts as solved; nil = none
}

// Group is a group of agents that share their spaces.
type Group struct {
	Name   string
	Agents int // most at once
}

// Arg is an argument of the configuration.
type Arg struct {
	Name, Doc string
	Type      ArgType
	Flags     ArgFlags
	Min, Max  float64 // both 0 = none
	Default   string
	Choices   []string
}

// ParseSpec decodes and checks what rl_describe wrote. b is not kept.
func ParseSpec(b []byte) (EnvSpec, error) {
	s, err := parse(b)
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return s, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	return s, nil
}

// preReleaseBytes is the size of the head before version 1 was a candidate.
const preReleaseBytes = 64

func parse(b []byte) (s EnvSpec, err error) {
	if len(b) >= 4 && binary.LittleEndian.Uint32(b) == preReleaseBytes {
		return s, errors.New("it is built for a pre-release of the ABI: rebuild it with the SDK that belongs to this rlhost")
	}
	if len(b) < SpecBytes {
		return s, fmt.Errorf("%d bytes, the head alone has %d", len(b), SpecBytes)
	}
	var head Spec
	if err := decode(&head, b[:SpecBytes], "head", 0); err != nil {
		return s, err
	}
	if v := (Version{head.ABIMajor, head.ABIMinor}); v.Major != EnvABI.Major {
		return s, fmt.Errorf("ABI %v, this host speaks %v", v, EnvABI)
	}
	r := reader{b: b}
	s = EnvSpec{
		ABI: Version{Major: head.ABIMajor, Minor: head.ABIMinor}, Caps: head.Caps, Needs: head.Needs, Flags: head.Flags,
		MaxEnvs: int(head.MaxEnvs), EpisodeLimit: int(head.EpisodeLimit), Autoreset: head.Autoreset,
		Render:  Render{head.RenderModes, int(head.RenderWidth), int(head.RenderHeight), head.RenderFPS},
		Rewards: Rewards{Low: head.RewardLow, High: head.RewardHigh}, StateVersion: head.StateVersion,
		StateMax: int(head.StateMax), BindingBytes: int(head.BindingBytes),
	}
	if t := head.RewardThreshold; !isNaN(t) {
		s.Rewards.Threshold = &t
	}
	if err := r.open(&head); err != nil {
		return s, err
	}
	s.Name, s.Doc, s.Licence = r.text("name", head.Name), r.text("doc", head.Doc), r.text("licence", head.Licence)
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

// reader reads a description. It keeps the first error, after which what it returns means nothing.
type reader struct {
	b, strings []byte
	err        error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// open checks the sizes in the head and finds the string table.
func (r *reader) open(head *Spec) error {
	if n := head.BindingBytes; n < BindingBytes || n > maxRecordBytes || n%4 != 0 {
		return fmt.Errorf("binding_bytes = %d, want a multiple of 4 from %d to %d", n, BindingBytes, maxRecordBytes)
	}
	return r.openTable(head.Size, SpecBytes, head.StringsAt, head.StringsLen)
}

// openTable checks the size of a head and finds the string table.
func (r *reader) openTable(size, known, at, n uint32) error {
	switch end := uint64(at) + uint64(n); {
	case size < known || size > maxRecordBytes || int(size) > len(r.b):
		return fmt.Errorf("a head of %d bytes, want %d or more of %d", size, known, len(r.b))
	case end > uint64(len(r.b)):
		return fmt.Errorf("strings at %d to %d of %d bytes", at, end, len(r.b))
	case n > 0 && (r.b[at] != 0 || r.b[end-1] != 0):
		return errors.New("the string table does not begin and end with a NUL")
	default:
		r.strings = r.b[at:end]
	}
	return nil
}

// decode fills a record from its bytes and reports one whose reserved fields are not 0.
func decode[T Spec | GroupDesc | TensorDesc | ArgDesc | ComponentSpec | PortDesc | ColumnDesc](to *T, from []byte, what string, i int) error {
	_, _ = binary.Decode(from, binary.LittleEndian, to)    // there are as many bytes as it has
	back, _ := binary.Append(nil, binary.LittleEndian, to) // which writes blank fields as 0
	for k := range from {
		if from[k] != back[k] {
			return fmt.Errorf("%s %d: byte %d is %d; it is reserved and must be 0", what, i, k, from[k])
		}
	}
	return nil
}

// records decodes count records of size bytes each, of which the host knows the first known ones, from at on.
func records[T GroupDesc | TensorDesc | ArgDesc | PortDesc | ColumnDesc](r *reader, at *uint64, what string, count, most uint32, size uint16, known int) []T {
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
	g := Group{Name: r.text("name of group "+fmt.Sprint(i), d.Name), Agents: int(d.Agents)}
	if d.Flags != 0 {
		r.fail("group %d: flags are %#x; they are reserved and must be 0", i, d.Flags)
	}
	return g
}

func (r *reader) tensor(i int, d *TensorDesc) Tensor {
	t := Tensor{Role: d.Role, Index: d.Index, Group: d.Group, DType: d.DType, Rank: d.Rank, Flags: d.Flags, Shape: d.Shape,
		Low: d.Low, High: d.High, N: d.N, Start: d.Start, Pair: d.Pair, Scale: d.Scale,
		Path: r.text(fmt.Sprintf("path of tensor %d", i), d.Path), Doc: r.text(fmt.Sprintf("doc of tensor %d", i), d.Doc)}
	n, at := uint64(t.Elems(MaxTensorElems)), uint64(d.Values)
	switch {
	case at == 0 || n == 0 || r.err != nil:
	case d.DType.Float():
		t.Lows, t.Highs = values[float32](r, i, at, n), values[float32](r, i, at+4*n, n)
	default:
		t.Counts = values[uint32](r, i, at, n)
	}
	return t
}

// values decodes numbers that a tensor refers to.
func values[T float32 | uint32](r *reader, tensor int, at, n uint64) []T {
	if at%4 != 0 || at+4*n > uint64(len(r.b)) {
		r.fail("tensor %d: values at %d to %d of %d bytes, want a multiple of 4 within them", tensor, at, at+4*n, len(r.b))
		return nil
	}
	list := make([]T, n)
	_, _ = binary.Decode(r.b[at:at+4*n], binary.LittleEndian, list) // as many bytes as it has
	return list
}

func (r *reader) arg(i int, d *ArgDesc) Arg {
	a := Arg{Name: r.text(fmt.Sprintf("name of argument %d", i), d.Name), Doc: r.text(fmt.Sprintf("doc of argument %d", i), d.Doc), Type: d.Kind,
		Flags: d.Flags, Min: d.Min, Max: d.Max, Default: r.text(fmt.Sprintf("default of argument %d", i), d.Value)}
	if choices := r.text(fmt.Sprintf("choices of argument %d", i), d.Choices); choices != "" {
		a.Choices = strings.Split(choices, "\n")
	}
	return a
}

// Describe returns the description as an environment writes it. ParseSpec is its inverse.
func (s *EnvSpec) Describe() []byte {
	nan := float32(math.NaN())
	w := writer{strings: []byte{0}}
	name, version, _ := strings.Cut(s.Name, "@")
	head := Spec{
		Size: SpecBytes, ABIMajor: s.ABI.Major, ABIMinor: s.ABI.Minor, Caps: s.Caps, Needs: s.Needs, TensorBytes: TensorBytes,
		BindingBytes: uint16(cmp.Or(s.BindingBytes, BindingBytes)), GroupBytes: GroupBytes, ArgBytes: ArgBytes, Tensors: uint32(len(s.Tensors)),
		Groups: uint32(len(s.Groups)), Args: uint32(len(s.Args)), MaxEnvs: uint32(s.MaxEnvs), EpisodeLimit: uint32(s.EpisodeLimit),
		Autoreset: s.Autoreset, Flags: s.Flags, RenderModes: s.Render.Modes, RenderWidth: uint32(s.Render.Width),
		RenderHeight: uint32(s.Render.Height), RenderFPS: s.Render.FPS, RewardLow: s.Rewards.Low, RewardHigh: s.Rewards.High,
		RewardThreshold: nan, StateVersion: s.StateVersion, StateMax: uint32(s.StateMax),
		Name: w.text(name), Version: w.text(version), Doc: w.text(s.Doc), Licence: w.text(s.Licence),
	}
	if s.Rewards.Threshold != nil {
		head.RewardThreshold = *s.Rewards.Threshold
	}
	records := SpecBytes + len(s.Groups)*GroupBytes + len(s.Tensors)*TensorBytes + len(s.Args)*ArgBytes
	w.valuesAt = records
	for i := range s.Groups {
		w.put(GroupDesc{Name: w.text(s.Groups[i].Name), Agents: uint32(s.Groups[i].Agents)})
	}
	for i := range s.Tensors {
		w.put(w.tensor(&s.Tensors[i]))
	}
	for i := range s.Args {
		a := &s.Args[i]
		w.put(ArgDesc{Name: w.text(a.Name), Doc: w.text(a.Doc), Kind: a.Type, Flags: a.Flags, Min: a.Min, Max: a.Max,
			Value: w.text(a.Default), Choices: w.text(strings.Join(a.Choices, "\n"))})
	}
	head.StringsAt, head.StringsLen = uint32(records+len(w.values)), uint32(len(w.strings))
	b, _ := binary.Append(nil, binary.LittleEndian, &head) // structs of fixed size always fit
	return slices.Concat(b, w.records, w.values, w.strings)
}

// writer gathers what follows the head of a description.
type writer struct {
	records, values, strings []byte
	valuesAt                 int // in the description
}

func (w *writer) text(s string) uint32 {
	if s == "" {
		return 0
	}
	at := len(w.strings)
	w.strings = append(append(w.strings, s...), 0)
	return uint32(at)
}

func (w *writer) put(record any) {
	w.records, _ = binary.Append(w.records, binary.LittleEndian, record) // structs of fixed size always fit
}

func (w *writer) tensor(t *Tensor) TensorDesc {
	d := TensorDesc{Role: t.Role, Index: t.Index, Group: t.Group, DType: t.DType, Rank: t.Rank, Flags: t.timed(), Shape: t.Shape, Low: t.Low,
		High: t.High, N: t.N, Start: t.Start, Pair: t.Pair, Scale: t.Scale, Path: w.text(t.Path), Doc: w.text(t.Doc)}
	if len(t.Lows)+len(t.Counts) > 0 {
		d.Values = uint32(w.valuesAt + len(w.values))
	}
	for _, list := range []any{t.Lows, t.Highs, t.Counts} {
		w.values, _ = binary.Append(w.values, binary.LittleEndian, list) // slices of numbers always fit
	}
	return d
}

// Tensor returns the first tensor with that role.
func (s *EnvSpec) Tensor(role Role) (Tensor, bool) {
	for _, t := range s.Tensors {
		if t.Role == role {
			return t, true
		}
	}
	return Tensor{}, false
}

// All returns the tensors with that role, in the order of the description.
func (s *EnvSpec) All(role Role) (list []Tensor) {
	for _, t := range s.Tensors {
		if t.Role == role {
			list = append(list, t)
		}
	}
	return list
}

// Spaces returns the spaces of all tensors with that role, each with its path where it has one, behind the name of its group where
// there are several.
func (s *EnvSpec) Spaces(role Role) string {
	var list []string
	for _, t := range s.All(role) {
		text := t.Space()
		if t.Path != "" {
			text = t.Path + ": " + text
		}
		if len(s.Groups) > 1 {
			text = s.Groups[t.Group].Name + ": " + text
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// Agents returns how many agents an environment has at most.
func (s *EnvSpec) Agents() int {
	n := 0
	for _, g := range s.Groups {
		n += g.Agents
	}
	return max(n, 1)
}

// AgentsOf returns which of an environment's agents are those of a group: so many from the first on.
func (s *EnvSpec) AgentsOf(group uint16) (first, agents int) {
	if len(s.Groups) == 0 {
		return 0, 1
	}
	for _, g := range s.Groups[:group] {
		first += g.Agents
	}
	return first, s.Groups[group].Agents
}

// GroupOf returns which group one of an environment's agents belongs to.
func (s *EnvSpec) GroupOf(agent int) (group int) {
	for group, g := range s.Groups {
		if agent -= g.Agents; agent < 0 {
			return group
		}
	}
	return 0
}

// OfGroup returns the description of one group of agents, as if there were no other.
func (s *EnvSpec) OfGroup(group int) EnvSpec {
	if len(s.Groups) < 2 {
		return *s
	}
	of := *s
	of.Groups, of.Tensors = s.Groups[group:group+1:group+1], nil
	for _, t := range s.Tensors {
		if int(t.Group) == group {
			t.Group = 0
			of.Tensors = append(of.Tensors, t)
		}
	}
	return of
}

// HasAgents reports whether an environment has several agents, or one that does not always act.
func (s *EnvSpec) HasAgents() bool {
	_, active := s.Tensor(RoleActive)
	return active || s.Agents() > 1
}

// ObsElems returns the number of elements of one environment's first observation.
func (s *EnvSpec) ObsElems() int { return s.elems(RoleObservation) }

// ActionElems returns the number of elements of one environment's first action, 1 for a Discrete action.
func (s *EnvSpec) ActionElems() int { return s.elems(RoleAction) }

// Actions returns the number of values of a Discrete action, or 0 if the action is a Box.
func (s *EnvSpec) Actions() int {
	t, _ := s.Tensor(RoleAction)
	return int(t.N)
}

// HasMask reports whether the environment writes an action mask.
func (s *EnvSpec) HasMask() bool {
	_, ok := s.Tensor(RoleActionMask)
	return ok
}

func (s *EnvSpec) elems(role Role) int {
	t, ok := s.Tensor(role)
	if !ok {
		return 0
	}
	return t.Elems(MaxTensorElems)
}

// PickAutoreset returns the mode that the host prefers of those offered: same-step (the learner then sees every
// last observation), next-step, disabled.
func (s *EnvSpec) PickAutoreset() Autoreset {
	for _, mode := range []Autoreset{SameStep, NextStep, Disabled} {
		if s.Autoreset&mode != 0 {
			return mode
		}
	}
	return 0
}
