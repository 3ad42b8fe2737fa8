package hostabi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Limits on what an environment may describe; beyond them ParseSpec returns ErrSpec.
const (
	MaxTensors     = 64
	MaxTensorElems = 1 << 24
	MaxActions     = 1 << 16
)

// ErrSpec is wrapped by every error about an environment's description.
var ErrSpec = errors.New("environment description not accepted")

// ErrNotYet is wrapped too where a description is valid but asks for what this host does not run yet.
var ErrNotYet = errors.New("this host does not run it yet")

// Runs is what this host runs, for messages with ErrNotYet.
const Runs = "one agent, one observation of f32, one Discrete action of i32, an action mask"

// EnvSpec is an environment's description of itself for one configuration. It is a value: copies are independent but
// share Tensors, which nobody changes after ParseSpec.
type EnvSpec struct {
	Name         string // name@version
	ABI          Version
	Caps         Caps
	Agents       int
	MaxEnvs      int // 0 = no limit
	EpisodeLimit int // time limit that the environment applies itself, 0 = none
	Autoreset    Autoreset
	Tensors      []TensorDesc // in the order of rl_bind's bindings
}

// ParseSpec decodes and checks what rl_describe wrote: a Spec followed by its tensors. b is not kept.
func ParseSpec(b []byte) (EnvSpec, error) {
	if len(b) < SpecBytes {
		return EnvSpec{}, fmt.Errorf("%w: %d bytes, the head alone has %d", ErrSpec, len(b), SpecBytes)
	}
	var head Spec
	if _, err := binary.Decode(b, binary.LittleEndian, &head); err != nil {
		return EnvSpec{}, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	size, count := head.Size, head.Tensors
	s := EnvSpec{
		ABI: Version{Major: head.ABIMajor, Minor: head.ABIMinor}, Caps: head.Caps, Agents: int(head.Agents),
		MaxEnvs: int(head.MaxEnvs), EpisodeLimit: int(head.EpisodeLimit), Autoreset: head.Autoreset,
		Name: cString(head.Name[:]),
	}
	if s.ABI.Major != EnvABI.Major {
		return EnvSpec{}, fmt.Errorf("%w: ABI %v, this host speaks %v", ErrSpec, s.ABI, EnvABI)
	}
	if count > MaxTensors {
		return EnvSpec{}, fmt.Errorf("%w: %d tensors, at most %d", ErrSpec, count, MaxTensors)
	}
	if size < SpecBytes || uint64(size)+uint64(count)*TensorBytes > uint64(len(b)) {
		return EnvSpec{}, fmt.Errorf("%w: %d tensors after a head of %d bytes do not fit in %d bytes",
			ErrSpec, count, size, len(b))
	}
	if count > 0 {
		s.Tensors = make([]TensorDesc, count)
		if _, err := binary.Decode(b[size:], binary.LittleEndian, s.Tensors); err != nil {
			return EnvSpec{}, fmt.Errorf("%w: %w", ErrSpec, err)
		}
	}
	return s, s.check()
}

// Describe returns the description as an environment writes it: a Spec and its tensors. ParseSpec is its inverse.
func (s *EnvSpec) Describe() []byte {
	head := Spec{
		Size: SpecBytes, ABIMajor: s.ABI.Major, ABIMinor: s.ABI.Minor, Caps: s.Caps, Agents: uint32(s.Agents),
		MaxEnvs: uint32(s.MaxEnvs), EpisodeLimit: uint32(s.EpisodeLimit), Tensors: uint32(len(s.Tensors)), Autoreset: s.Autoreset,
	}
	copy(head.Name[:], s.Name)
	b, _ := binary.Append(nil, binary.LittleEndian, &head) // structs of fixed size always fit
	b, _ = binary.Append(b, binary.LittleEndian, s.Tensors)
	return b
}

func cString(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return strings.ToValidUTF8(s, "?")
}

// Tensor returns the description of the first tensor with that role.
func (s *EnvSpec) Tensor(role Role) (TensorDesc, bool) {
	for _, d := range s.Tensors {
		if d.Role == role {
			return d, true
		}
	}
	return TensorDesc{}, false
}

// ObsElems returns the number of elements of one environment's observation.
func (s *EnvSpec) ObsElems() int { return s.elems(RoleObservation) }

// ActionElems returns the number of elements of one environment's action, 1 for a Discrete action.
func (s *EnvSpec) ActionElems() int { return s.elems(RoleAction) }

// Actions returns the number of values of a Discrete action, or 0 if the action is a Box.
func (s *EnvSpec) Actions() int {
	d, _ := s.Tensor(RoleAction)
	return int(d.N)
}

// HasMask reports whether the environment writes an action mask.
func (s *EnvSpec) HasMask() bool {
	_, ok := s.Tensor(RoleActionMask)
	return ok
}

func (s *EnvSpec) elems(role Role) int {
	d, ok := s.Tensor(role)
	if !ok {
		return 0
	}
	return d.Elems(MaxTensorElems)
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
