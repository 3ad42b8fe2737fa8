package hostabi

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Limits on an environment's description; beyond them ParseSpec returns ErrSpec.
const (
	MaxTensors     = 1 << 10
	MaxGroups      = 64
	MaxAgents      = 1 << 12 // of one group
	MaxAllAgents   = 1 << 15 // of an environment
	MaxArgs        = 256
	MaxTensorElems = 1 << 24
	MaxActions     = 1 << 16
	MaxStringBytes = 1 << 12 // of one string

	MaxDescriptionBytes = 1 << 20 // of rl_describe's output
)

// EnvSpec is an environment's description of itself for one configuration. It is a value: copies are independent but
// share slices, which never change after ParseSpec.
type EnvSpec struct {
	Name         string // name@version
	Doc          string
	Licence      string
	Keys         string // what keys of a person who plays do, a line each, such as left=0 or up=-1,0.5; empty = not said
	ABI          Version
	Caps         Caps
	Needs        Features
	Flags        SpecFlags
	MaxEnvs      int // 0 = no limit
	EpisodeLimit int // time limit that the environment applies itself, 0 = none
	Autoreset    Autoreset
	Render       Render
	Rewards      Rewards
	DT           float32 // seconds of simulated time in a step, 0 = not said
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

// Rewards describes the rewards. Low and High are both 0 if they are not known.
type Rewards struct {
	Low, High float32
	Threshold *float32 // mean return that counts as solved; nil = none
}

// Group is a group of agents that share their spaces.
type Group struct {
	Name   string
	Agents int // most at once
	// AgentNames are the names of its agents, one a line; empty where they have none.
	AgentNames string
}

// AgentName returns the name of one of the group's agents: its own, or the group's with its number, such as runners/0.
func (g *Group) AgentName(agent int) string {
	if g.AgentNames != "" {
		return strings.Split(g.AgentNames, "\n")[agent]
	}
	return g.Name + "/" + strconv.Itoa(agent)
}

// OwnNames returns the own names of the environment's agents by their numbers, with the group before it where there are several, such as
// red/ann; "" for an agent that has none. It is nil where no agent has one.
func (s *EnvSpec) OwnNames() []string {
	var names []string
	first := 0
	for i := range s.Groups {
		g := &s.Groups[i]
		for agent := range g.Agents {
			if g.AgentNames == "" {
				break
			}
			if names == nil {
				names = make([]string, s.Agents())
			}
			if names[first+agent] = g.AgentName(agent); len(s.Groups) > 1 {
				names[first+agent] = g.Name + "/" + names[first+agent]
			}
		}
		first += g.Agents
	}
	return names
}

// Agent names one of an environment's agents in a message: by its number, and by its own name where it has one, such as agent 2 (cat).
func (s *EnvSpec) Agent(agent int) string {
	said, first := "agent "+strconv.Itoa(agent), 0
	for i := range s.Groups {
		g := &s.Groups[i]
		if own := agent - first; g.AgentNames != "" && own >= 0 && own < g.Agents {
			return said + " (" + g.AgentName(own) + ")"
		}
		first += g.Agents
	}
	return said
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
		DT: s.DT, RewardThreshold: nan, StateVersion: s.StateVersion, StateMax: uint32(s.StateMax),
		Name: w.text(name), Version: w.text(version), Doc: w.text(s.Doc), Licence: w.text(s.Licence), Keys: w.text(s.Keys),
	}
	if s.Rewards.Threshold != nil {
		head.RewardThreshold = *s.Rewards.Threshold
	}
	records := SpecBytes + len(s.Groups)*GroupBytes + len(s.Tensors)*TensorBytes + len(s.Args)*ArgBytes
	w.valuesAt = records
	for i := range s.Groups {
		w.put(GroupDesc{Name: w.text(s.Groups[i].Name), Agents: uint32(s.Groups[i].Agents), AgentNames: w.text(s.Groups[i].AgentNames)})
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

// writer gathers the part of a description after its head.
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

// Spaces returns the spaces of all tensors with that role, each with its path if it has one, after the name of its group if
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

// AgentsOf returns the first agent of a group in an environment, and their number.
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

// HasAgents reports whether an environment has several agents, or an agent that does not always act.
func (s *EnvSpec) HasAgents() bool {
	_, active := s.Tensor(RoleActive)
	return active || s.Agents() > 1
}

// ObsElems returns the number of elements of one environment's first observation.
func (s *EnvSpec) ObsElems() int {
	t, ok := s.Tensor(RoleObservation)
	if !ok {
		return 0
	}
	return t.Elems(MaxTensorElems)
}

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

// PickAutoreset returns the offered mode that the host prefers: same-step (the learner then sees every last observation), next-step, disabled.
func (s *EnvSpec) PickAutoreset() Autoreset {
	for _, mode := range []Autoreset{SameStep, NextStep, Disabled} {
		if s.Autoreset&mode != 0 {
			return mode
		}
	}
	return 0
}
