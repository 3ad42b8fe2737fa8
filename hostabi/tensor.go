package hostabi

import (
	"strconv"
	"strings"
)

// DType is the type of a tensor's elements.
type DType uint8

// Element types. The numbers 6, 7, 9, 11, 12 and 13 are reserved for f16, bf16, f64, u16, u32 and u64.
const (
	U8   DType = 1
	I8   DType = 2
	I16  DType = 3
	I32  DType = 4
	I64  DType = 5
	F32  DType = 8
	Bool DType = 10
)

var dtypes = [...]struct {
	name  string
	bytes int
}{
	U8: {"u8", 1}, I8: {"i8", 1}, I16: {"i16", 2}, I32: {"i32", 4}, I64: {"i64", 8},
	F32: {"f32", 4}, F64: {"f64", 8}, Bool: {"bool", 1},
}

// Bytes returns the size of one element, or 0 for a type that does not exist.
func (d DType) Bytes() int {
	if int(d) < len(dtypes) {
		return dtypes[d].bytes
	}
	return 0
}

// Float reports whether elements are floating-point numbers.
func (d DType) Float() bool { return d == F32 || d == F64 }

// ofTensors reports whether tensors of environments may have the type.
func (d DType) ofTensors() bool { return d.Bytes() > 0 && d != F64 }

// String returns the short name, such as f32, or "dtype?" for a type that does not exist.
func (d DType) String() string {
	if d.Bytes() > 0 {
		return dtypes[d].name
	}
	return "dtype?"
}

// Role is the meaning of an environment's tensor.
type Role uint16

// Roles. Required of every environment: action, observation, reward, terminated, truncated. The guest does the
// reading and writing. The time axis of a role is fixed: see TensorFlags. The numbers 10, 11, 13, 15, 16 and 17 are reserved.
const (
	RoleAction           Role = iota + 1 // read: action[t]
	RoleObservation                      // written: obs[t+1]
	RoleReward                           // written: reward[t], f32 scalar
	RoleTerminated                       // written: terminated[t], u8 scalar, 0 or 1
	RoleTruncated                        // written: truncated[t], u8 scalar, 0 or 1
	RoleActionMask                       // written: mask[t+1], u8 per value of each element of a discrete action, 1 = legal
	RoleFinalObservation                 // written under same-step autoreset: one row, no time; Pair names the observation
	RoleActive                           // written: active[t+1], u8 per agent, 1 = acts at that time
	RoleInfo                             // written: info[t], f32 numbers of the environment itself, with their names in Path
	_
	_
	RoleDiscount // written: discount[t], f32 scalar, instead of the learner's constant
	_
	RoleResetParam // read in rl_reset: parameters of the next episode, no time
	_
	_
	_
	RoleResetInfo // written where an episode begins: info[t] in rl_reset, info[t+1] in a step, f32 numbers as of info

	lastRole = RoleResetInfo
)

// Known reports whether the role exists in this version of the ABI.
func (r Role) Known() bool { return r <= lastRole && roleTime[r] != 0 }

var roleNames = [lastRole + 1]string{RoleAction: "action", RoleObservation: "observation", RoleReward: "reward",
	RoleTerminated: "terminated", RoleTruncated: "truncated", RoleActionMask: "action_mask",
	RoleFinalObservation: "final_observation", RoleActive: "active", RoleInfo: "info", RoleDiscount: "discount",
	RoleResetParam: "reset_param", RoleResetInfo: "reset_info"}

// String returns the role's name, such as info, or role 900 for one that this version does not have.
func (r Role) String() string {
	if r.Known() {
		return roleNames[r]
	}
	return "role " + strconv.Itoa(int(r))
}

// TensorFlags say which axes a tensor has besides its shape, what its elements are, and how numbers are gathered.
type TensorFlags uint32

// Flags of tensors. The axis of time of a known role is fixed: TensorAtT for action, reward, terminated, truncated,
// info and discount, TensorAtT1 for observation, mask, active and reset info, TensorNoTime for the others.
const (
	TensorPerAgent TensorFlags = 1 << iota // a row for each agent of its group
	TensorAtT                              // rows t = 0 … T-1
	TensorAtT1                             // rows t = 0 … T
	TensorNoTime                           // one row
	TensorOptional                         // the environment runs without it: the host may leave it unbound
	TensorCritical                         // a host that does not know the role must refuse the environment
	TensorNoLow                            // a Box without a lower bound
	TensorNoHigh                           // a Box without an upper bound
	TensorImageHWC                         // a picture of rank 3: height, width, channels; dense within a row
	TensorImageCHW                         // a picture of rank 3: channels, height, width; dense within a row
	_                                      // reserved
	TensorBinary                           // elements are 0 or 1: a MultiBinary action has it with N = 2
	TensorEpisode                          // info that is valid in the row that ends an episode alone

	// Gathering of info over an episode, one of these; none of them is the last value.
	TensorSum
	TensorMean
	TensorMax
	TensorMin

	TensorTime   = TensorAtT | TensorAtT1 | TensorNoTime          // the mask of the axis of time
	TensorGather = TensorSum | TensorMean | TensorMax | TensorMin // the mask of the ways to gather
)

// Autoreset is a bit set of an environment's abilities at the end of an episode, in Gymnasium's words.
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

// Caps is a bit set of an environment's abilities that the host may use.
type Caps uint64

// Caps of environments.
const (
	// CapStrides: the guest honours any StrideElem, so that the host may lay tensors out as [elem][env].
	CapStrides Caps = 1 << iota
	// CapPreferSoA: the guest is faster with [elem][env] (implies CapStrides).
	CapPreferSoA
)

// Features is a bit set of parts of the ABI: features that a host runs, and features that an environment needs.
type Features uint64

// Features of the ABI, beyond one observation of f32 and one Discrete action of i32 with its mask. Bits 4, 6, 8, 9 and 10 are
// reserved.
const (
	// FeatureActions: Box, MultiDiscrete and MultiBinary actions, several action tensors, a Discrete action with a start.
	FeatureActions Features = 1 << iota
	// FeatureObservations: several observations, and such of other types than f32.
	FeatureObservations
	// FeatureAgents: several agents, active and tensors per agent.
	FeatureAgents
	FeatureInfo // info
	_
	FeatureDiscount // discount
	_
	FeatureResetParam // reset_param
	_
	_
	_
	FeatureResetInfo // reset_info
)

// featureNames has "" for a bit that is reserved.
var featureNames = [...]string{"actions", "observations", "agents", "info", "", "discount", "", "reset_param", "", "", "", "reset_info"}

// String lists the features by name.
func (f Features) String() string {
	var names []string
	for i := range 64 {
		switch {
		case f>>i&1 == 0:
		case i < len(featureNames) && featureNames[i] != "":
			names = append(names, featureNames[i])
		default:
			names = append(names, "feature "+strconv.Itoa(i))
		}
	}
	return strings.Join(names, ", ")
}

// SpecFlags is a bit set of properties of an environment.
type SpecFlags uint32

// Flags of environments.
const (
	SpecDeterministic SpecFlags = 1 << iota // the same seeds and actions give the same bytes
	_                                       // reserved
	SpecDynamicAgents                       // which agents are active changes within an episode
	_                                       // reserved
	SpecInitCalls                           // create and reset take long, seconds: the host shows that they run
)

// RenderMode is a bit set of forms in which an environment shows itself; rl_render takes the number of the bit. Bits 8
// to 15 of that argument name a camera or an agent.
type RenderMode uint32

// Render modes.
const (
	RenderText RenderMode = 1 << iota // UTF-8 text
	RenderRGB                         // u8 [height][width][3]
	RenderRGBA                        // u8 [height][width][4]
)

// ArgType is the type of an argument of the configuration.
type ArgType uint32

// Types of arguments.
const (
	ArgInteger ArgType = iota + 1 // i64
	ArgNumber                     // f64
	ArgBool                       // true or false
	ArgText
	ArgChoice // one of Choices
)

// ArgFlags is a bit set of properties of an argument.
type ArgFlags uint32

// Flags of arguments.
const (
	ArgAffectsSpaces ArgFlags = 1 << iota // tensors depend on it
)
