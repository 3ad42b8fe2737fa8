package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
)

// Graph is a checked pipeline. It is not changed after Parse.
type Graph struct {
	File        string // name of the file that it was read from
	Dir         string // folder that paths of plugins are relative to
	Synchronous bool   // one loop, zero lag, bit-reproducible
	Run         RunTable
	Swap        Swap
	Envs        []Env
	Policies    []Policy
	Plugins     []*Plugin
	Components  []Component
	Wires       []Wire
}

// RunTable is the [run] table.
type RunTable struct {
	Name       string
	Seed       uint64
	Dir        string // folder that run folders are made in
	Stop       component.StopRule
	Checkpoint Checkpoint
	Evaluation Evaluation
}

// Checkpoint says when checkpoints are taken and which are kept.
type Checkpoint struct {
	Every time.Duration `toml:"every"` // at the first dataset boundary after this long; 0 = only at the end
	Keep  int           `toml:"keep"`  // newest ones kept
	Best  bool          `toml:"best"`  // keep the one with the best mean return as well
}

// MaxEpisodes bounds the episodes of an evaluation, which keeps the return of each.
const MaxEpisodes = 1_000_000

// Evaluation is the frozen evaluation at the end of a run.
type Evaluation struct {
	Episodes      int    `toml:"episodes"` // at most MaxEpisodes
	Seed          uint64 `toml:"seed"`
	Deterministic bool   `toml:"deterministic"` // what is judged: the most likely actions, or else sampled ones
	MaxSteps      int    `toml:"max_steps"`     // of an episode; 0 = ten times the longest in training, at least 10,000
}

// Env is a declared environment.
type Env struct {
	Name  string
	Table EnvTable
	Swap  SwapRule // of what runs its environments, as far as the environment goes

	// Places in the file, for what is found wrong later: the value of use, and that of sha256.
	UseAt, SHAAt Span

	at Span // of its header
}

// Policy is a declared policy.
type Policy struct {
	Name string
	Env  string // the environment that it is made for

	At Span // of env, or of the header

	table  *node
	config any // what Parts decoded the table into
}

// Component is a node of the graph, with Count instances.
type Component struct {
	Name     string
	Kind     string
	Count    int
	Runtime  string // builtin or process
	Plugin   string // plugin that it is a component of; empty: of this program
	Swap     SwapRule
	Loop     string // event loop of its instances; "[i]" at its end stands for the instance
	Manifest component.Manifest
	Flow     component.Flow // zero if the kind has none

	Env, Policy string // names in its table, if it has such keys

	table  *node
	config any   // what the component decoded its table into
	maker  Maker // of a plugin's kinds, nil for the program's own
}

// Wire connects one signal of all instances of a component to one slot of all instances of another.
type Wire struct {
	From, Signal string
	To, Slot     string
	Mode         bus.Mode
	Depth        int
	OnFull       bus.Overflow
	Payload      string

	signalAt, slotAt, depthAt Span
}

// Component returns the component of that name, or nil. A nil graph has none.
func (g *Graph) Component(name string) *Component {
	if g == nil {
		return nil
	}
	i := slices.IndexFunc(g.Components, func(c Component) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &g.Components[i]
}

// key returns a key of the component's table, or nil.
func (x *Component) key(name string) *node {
	if x == nil {
		return nil
	}
	return x.table.at(name)
}

// Env returns the environment of that name, or nil.
func (g *Graph) Env(name string) *Env {
	i := slices.IndexFunc(g.Envs, func(e Env) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	return &g.Envs[i]
}

// Policy returns the policy of that name, or nil.
func (g *Graph) Policy(name string) *Policy {
	i := slices.IndexFunc(g.Policies, func(p Policy) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &g.Policies[i]
}

// Hash returns the SHA-256 of Expanded, in hexadecimal: two files with the same hash mean the same run.
func (g *Graph) Hash() string {
	sum := sha256.Sum256([]byte(g.Expanded()))
	return hex.EncodeToString(sum[:])
}

// Mode returns ModeSync or ModeAsync.
func (g *Graph) Mode() string {
	if g.Synchronous {
		return ModeSync
	}
	return ModeAsync
}
