package hostabi

import "structs"

// DType is the type of a tensor's elements.
type DType uint8

// Element types.
const (
	U8 DType = iota + 1
	I8
	I16
	I32
	I64
	F16
	BF16
	F32
	F64
	Bool
)

var dtypes = [...]struct {
	name  string
	bytes int
}{
	U8: {"u8", 1}, I8: {"i8", 1}, I16: {"i16", 2}, I32: {"i32", 4}, I64: {"i64", 8},
	F16: {"f16", 2}, BF16: {"bf16", 2}, F32: {"f32", 4}, F64: {"f64", 8}, Bool: {"bool", 1},
}

// Bytes returns the size of one element, or 0 for a type that does not exist.
func (d DType) Bytes() int {
	if int(d) < len(dtypes) {
		return dtypes[d].bytes
	}
	return 0
}

// String returns the short name, such as f32, or "dtype?" for a type that does not exist.
func (d DType) String() string {
	if d.Bytes() > 0 {
		return dtypes[d].name
	}
	return "dtype?"
}

// Role says what a tensor of an environment means.
type Role uint16

// Roles. Required of every environment: action, observation, reward, terminated, truncated.
const (
	RoleAction           Role = iota + 1 // read by the guest: action[t]
	RoleObservation                      // written: obs[t+1]
	RoleReward                           // written: reward[t], f32 scalar
	RoleTerminated                       // written: terminated[t], u8 scalar, 0 or 1
	RoleTruncated                        // written: truncated[t], u8 scalar, 0 or 1
	RoleActionMask                       // written: mask[t+1], u8 per discrete action, 1 = legal
	RoleFinalObservation                 // written under same-step autoreset: one row per environment, no time
	RoleAgentAlive                       // written: u8 per agent
	RoleInfo                             // written: metrics of the environment itself
)

var roleNames = [...]string{"role?", "action", "observation", "reward", "terminated", "truncated",
	"action_mask", "final_observation", "agent_alive", "info"}

// String returns the role's name.
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return roleNames[0]
}

// Autoreset is a bit set of what an environment can do when an episode ends, in Gymnasium's words.
type Autoreset uint32

// Autoreset modes.
const (
	// NextStep: obs[t+1] is the last observation; the following step ignores its action, has reward 0 and
	// writes the first observation of the new episode.
	NextStep Autoreset = 1 << iota
	// SameStep: obs[t+1] is the first observation of the new episode, the last one goes to the final
	// observation tensor.
	SameStep
	// Disabled: the host calls rl_reset with a mask.
	Disabled
)

// String returns the mode's name as in TOML.
func (a Autoreset) String() string {
	switch a {
	case NextStep:
		return "next_step"
	case SameStep:
		return "same_step"
	case Disabled:
		return "disabled"
	}
	return "autoreset?"
}

// Caps is a bit set of optional features of an environment.
type Caps uint32

// Features.
const (
	// CapStrides: the guest honours any StrideElem, so that the host may lay tensors out as [elem][env].
	CapStrides Caps = 1 << iota
	// CapPreferSoA: the guest is faster with [elem][env] (implies CapStrides).
	CapPreferSoA
)

// MaxRank is the largest number of dimensions of a tensor of one environment.
const MaxRank = 6

// Sizes of the structs below.
const (
	SpecBytes    = 64
	TensorBytes  = 64
	BindingBytes = 32
)

// Spec is the head of what rl_describe writes; Tensors TensorDesc follow it.
type Spec struct {
	_ structs.HostLayout

	Size         uint32    // 0: SpecBytes; a later minor version may append
	ABIMajor     uint16    // 4
	ABIMinor     uint16    // 6
	Caps         Caps      // 8
	Agents       uint32    // 12: agents per environment, 1 or more
	MaxEnvs      uint32    // 16: most environments in one rl_create, 0 = no limit
	EpisodeLimit uint32    // 20: time limit that the environment applies itself (truncated), 0 = none
	Tensors      uint32    // 24
	Autoreset    Autoreset // 28: modes offered
	Name         [32]byte  // 32: name@version, NUL padded
}

// TensorDesc describes one tensor of one environment (no batch or time dimension).
type TensorDesc struct {
	_ structs.HostLayout

	Role  Role            // 0
	Index uint16          // 2: distinguishes tensors of one role
	DType DType           // 4
	Rank  uint8           // 5: 0 = scalar
	Flags uint16          // 6: reserved, 0
	Shape [MaxRank]uint32 // 8
	Low   float32         // 32: bounds of a Box; equal = unbounded
	High  float32         // 36
	N     uint32          // 40: number of values of a Discrete tensor, 0 = Box
	Name  [20]byte        // 44: NUL padded
}

// Elems returns the number of elements of one environment, 1 for a scalar, or 0 if the product exceeds limit
// or the rank is not allowed. The check cannot overflow.
func (d *TensorDesc) Elems(limit int) int {
	if int(d.Rank) > MaxRank {
		return 0
	}
	n := 1
	for _, dim := range d.Shape[:d.Rank] {
		if dim == 0 || uint64(dim) > uint64(limit/n) {
			return 0
		}
		n *= int(dim)
	}
	return n
}

// Binding tells the guest where a tensor lies, in bytes of its linear memory. rl_bind takes one per described
// tensor, in the order of the description. The element (t, env, agent, i) is at
// Ptr + t*StrideT + env*StrideEnv + agent*StrideAgent + i*StrideElem, where i counts the flattened shape.
type Binding struct {
	_ structs.HostLayout

	Ptr         uint32 // 0: aligned to 64 bytes
	StrideT     uint32 // 4: 0 for tensors without time
	StrideEnv   uint32 // 8
	StrideAgent uint32 // 12
	StrideElem  uint32 // 16
	_           [3]uint32
}
