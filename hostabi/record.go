package hostabi

import "structs"

// MaxRank is the largest number of dimensions of a tensor of one environment.
const MaxRank = 6

// Sizes of the structs below. Each record's size on the guest's side is in Spec: the host reads the part that both know and
// steps by the guest's size, so that later versions may append fields.
const (
	SpecBytes    = 136
	GroupBytes   = 32
	TensorBytes  = 128
	ArgBytes     = 48
	BindingBytes = 48
	HostBytes    = 48

	// specBytes10 is the length of a Spec of version 1.0, which ends before Keys.
	specBytes10 = 128
)

// Spec is the head of rl_describe's output. GroupDesc, TensorDesc and ArgDesc records follow it in this order; then,
// anywhere, the values that tensors refer to and the string table. Offsets count from the head's first byte. A string is
// an offset into the string table, where it ends with a NUL; 0 is the empty one. Reserved fields are 0.
type Spec struct {
	_ structs.HostLayout

	Size            uint32     // 0: of this record: SpecBytes
	ABIMajor        uint16     // 4
	ABIMinor        uint16     // 6
	Caps            Caps       // 8: features that the host may use
	Needs           Features   // 16: features without which the environment cannot run
	TensorBytes     uint16     // 24: sizes of the other records
	BindingBytes    uint16     // 26
	GroupBytes      uint16     // 28
	ArgBytes        uint16     // 30
	Tensors         uint32     // 32: how many records follow
	Groups          uint32     // 36: of agents; 0 = one group of one agent
	Args            uint32     // 40
	StringsAt       uint32     // 44: the string table
	StringsLen      uint32     // 48
	MaxEnvs         uint32     // 52: most environments in one rl_create, 0 = no limit
	EpisodeLimit    uint32     // 56: time limit that the environment applies itself (truncated), 0 = none
	Autoreset       Autoreset  // 60: modes offered
	Flags           SpecFlags  // 64
	RenderModes     RenderMode // 68: offered by rl_render
	RenderWidth     uint32     // 72: of a picture
	RenderHeight    uint32     // 76
	RenderFPS       float32    // 80: pictures a second at normal speed, 0 = not said
	RewardLow       float32    // 84: bounds of a reward; both 0 = not said
	RewardHigh      float32    // 88
	RewardThreshold float32    // 92: mean return that counts as solved, NaN = none
	StateVersion    uint32     // 96: of rl_save's output
	StateMax        uint32     // 100: most bytes that rl_save writes, 0 = not said
	Name            uint32     // 104: strings
	Version         uint32     // 108
	Doc             uint32     // 112
	Licence         uint32     // 116
	DT              float32    // 120: seconds of simulated time in a step, 0 = not said
	_               uint32
	Keys            uint32 // 128: string, since 1.1: what keys of a person who plays do, a line each, such as left=0
	_               uint32
}

// GroupDesc describes a group of agents, which share their spaces.
type GroupDesc struct {
	_ structs.HostLayout

	Name   uint32 // 0: string
	Agents uint32 // 4: most at once
	Flags  uint32 // 8: reserved, 0
	// AgentNames is a string: the agents' names, one a line.
	AgentNames uint32 // 12
	_          [4]uint32
}

// TensorDesc describes one tensor of one environment, or of one agent with TensorPerAgent, without batch and time.
type TensorDesc struct {
	_ structs.HostLayout

	Role  Role            // 0
	Index uint16          // 2: counts tensors of one role and group
	Group uint16          // 4
	DType DType           // 6
	Rank  uint8           // 7: 0 = scalar
	Flags TensorFlags     // 8
	Shape [MaxRank]uint32 // 12
	Low   float32         // 36: bounds of a Box, but for a side with TensorNoLow or TensorNoHigh
	High  float32         // 40
	N     uint32          // 44: values of a Discrete tensor, or of each element of a MultiDiscrete one; 0 = Box
	Start int32           // 48: first value of a Discrete tensor
	// Values is the offset of numbers for each element: f32 lows, then highs, of a Box; u32 counts of a MultiDiscrete
	// tensor. 0 = Low, High and N are the same for all elements.
	Values uint32  // 52
	Pair   uint16  // 56: Index of the observation that this is the last of, or of the action that this is the mask of
	_      uint16  // 58
	Scale  float32 // 60: the host multiplies elements by it as they enter a network, such as 1/255; 0 = chosen by its bounds
	Path   uint32  // 64: string; parts of a Dict or Tuple are paths such as inventory/0
	Doc    uint32  // 68: string
	_      [14]uint32
}

// ArgDesc describes an argument of the configuration.
type ArgDesc struct {
	_ structs.HostLayout

	Name    uint32   // 0: string
	Doc     uint32   // 4: string
	Kind    ArgType  // 8
	Flags   ArgFlags // 12
	Min     float64  // 16: bounds of a number; both 0 = none
	Max     float64  // 24
	Value   uint32   // 32: string: the default, as in the configuration
	Choices uint32   // 36: string: one choice a line
	_       [2]uint32
}

// Binding is the place of a tensor, in bytes of the guest's linear memory. rl_bind takes one per described
// tensor, in the order of the description. The element (t, env, agent, i) is at
// Ptr + t*StrideT + env*StrideEnv + agent*StrideAgent + i*StrideElem, where i counts the flattened shape.
type Binding struct {
	_ structs.HostLayout

	Ptr         uint32 // 0: aligned to 64 bytes; 0 for a tensor that the host does not want
	StrideT     uint32 // 4: 0 for tensors without time
	StrideEnv   uint32 // 8
	StrideAgent uint32 // 12
	StrideElem  uint32 // 16
	Rows        uint32 // 20: T, T+1 or 1
	RowAlign    uint32 // 24: every row begins at a multiple of it
	_           [5]uint32
}

// HostDesc describes the host to the guest, before rl_describe.
type HostDesc struct {
	_ structs.HostLayout

	Size          uint32   // 0: of this record: HostBytes
	ABIMajor      uint16   // 4
	ABIMinor      uint16   // 6
	Features      Features // 8: features that the host runs
	MaxTensors    uint32   // 16
	MaxElems      uint32   // 20: of one tensor
	MaxBlockBytes uint32   // 24: of all tensors that are bound at once
	_             [5]uint32
}
