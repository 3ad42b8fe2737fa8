package trajectory

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/hostabi"
)

// Column names one quantity of a trajectory: its kind and, if there are several of that kind, its index. The constants are
// the first of each kind, At names the others. T is the number of steps of the block, N the number of its environments, or of
// all their agents: the agents of an environment are contiguous.
type Column uint32

const (
	kindAt    = 16 // the index lies below
	hostKinds = 32 // kinds below it are roles of tensors
)

// Columns with a tensor of the environment, which lie in the region that the guest can write: one for each tensor of the
// role, in the order of the description, and a FinalObs for each Obs.
const (
	Action     = Column(hostabi.RoleAction) << kindAt           // [T][N] i32, written by inference, read by the guest and, checked, by the learner
	Obs        = Column(hostabi.RoleObservation) << kindAt      // [T+1][N][obs] as described by the environment
	Reward     = Column(hostabi.RoleReward) << kindAt           // [T][N] f32, raw
	Terminated = Column(hostabi.RoleTerminated) << kindAt       // [T][N] u8, 0 or 1
	Truncated  = Column(hostabi.RoleTruncated) << kindAt        // [T][N] u8, 0 or 1; 0 where terminated is 1 once the block is committed
	Mask       = Column(hostabi.RoleActionMask) << kindAt       // [T+1][N][actions] u8, only with an action mask
	FinalObs   = Column(hostabi.RoleFinalObservation) << kindAt // [N][obs], newest last observation of each environment
	Info       = Column(hostabi.RoleInfo) << kindAt             // [T][N][figures] f32, of the environment itself; where AtEnd undefined in all other rows
	Active     = Column(hostabi.RoleActive) << kindAt           // [T+1][N] u8, 1 where the agent acts; only where agents do not always act
	ResetParam = Column(hostabi.RoleResetParam) << kindAt       // [N][numbers] f32, read where an episode of the environment begins, NaN if nobody gives one; only with such a tensor
	Discount   = Column(hostabi.RoleDiscount) << kindAt         // [T][N] f32, 0 to 1, instead of the learner's constant; only with such a tensor
	ResetInfo  = Column(hostabi.RoleResetInfo) << kindAt        // [T+1][N][figures] f32, of the environment itself; undefined in rows in which no episode begins
)

// Columns that only the host touches.
const (
	LogProb       Column = (hostKinds + iota) << kindAt // [T][N] f32, of all actions under the policy that acted
	Value                                               // [T+1][N] f32, V(obs[t]) under the policy that acted
	Bootstrap                                           // [T][N] f32, V(last observation) where truncated[t], else undefined
	Valid                                               // [T][N] u8, 0 for rows that are not learned from: rows of no episode (phantom steps), lost rows, and rows of agents that do not act
	PolicyVersion                                       // [T+1] u64, policy version that wrote value[t] and action[t]
	PluginVersion                                       // [T][N] u64, version of the environment that made the row: as Meta.PluginVersion
	MetaColumn                                          // one Meta
	ShapedReward                                        // [T][N] f32, replaces reward in learning; only with Shape.Shaped
	RawAction                                           // [T][N][elems] f32, the raw sample of the Action of the same index, only of a Box

	// Columns of blocks with Memory.Past rows before the first.
	Age        // [T+1][N] u8, with Memory.State too: rows in which the agent acted since its episode began, 255 at most
	PastObs    // [Past][N][obs], one for each Obs: the observations before row 0, the newest last
	PastAction // [Past][N][elements], one for each Action
	PastReward // [Past][N] f32

	CoreState // [T/Chunk+3][N][State] f32, the policy's state of each environment before a row; see Schema.StateRow

	// Policy says which of Shape.Policies acts: [T+1][N] u8, only where there are several. Then the Valid and the PolicyVersion with
	// index k+1 belong to policy k alone; see Schema.Of.
	Policy

	// Columns of blocks with Memory.Learned or Memory.Executed.
	PastShaped   // [Past][N] f32: ShapedReward before row 0
	Executed     // [T][N][elements], one for each Action: the action that the environment has taken, in its own units; a wrapper may have replaced the policy's
	PastExecuted // [Past][N][elements], one for each Executed

	// PlayedVersion is the policy version that plays an agent's episode, AnyVersion before it has acted: [T+1][N] u64, only with
	// Shape.Versions. The inference of a policy whose versions are drawn writes the version that acts.
	PlayedVersion
)

// AnyVersion in PlayedVersion means the newest version.
const AnyVersion = ^uint64(0)

// Flags say along which axes a column extends, and how its rows are used.
type Flags uint16

// Flags of columns. Without AtT and AtT1 there is one row.
const (
	AtT       Flags = 1 << iota // a row for each step
	AtT1                        // a row for each step, and one after the last of them
	PerEnv                      // elements for each environment, or for each of its agents
	Guest                       // in the region that the guest can write
	Observed                    // observations: a reset writes its row, step t writes row t+1; row T is row 0 of the next block
	Outcome                     // result of step t, in row t
	Final                       // the last observation in the Observed column of the same index
	Grantable                   // a wire may let its receiver write it in a committed block
	Past                        // what a row depends on besides its observation, in blocks that keep it: see Memory
	AtEnd                       // defined in the rows alone in which the environment ends an episode
	AtBegin                     // defined in the rows alone in which an episode begins
	Decided                     // part of an agent's decision in a row: see CopyDecisionOf
)

// kind is the common description of the columns of one kind.
type kind struct {
	first Column
	name  string
	flags Flags
	dtype hostabi.DType // of the host's columns; the guest's have the types of their tensors
	elems int
}

// role returns the role of the tensors that there is a column for each of; 0 for columns of the host's own.
func (k *kind) role() hostabi.Role {
	switch {
	case k.first == PastObs, k.flags&Final != 0:
		return hostabi.RoleObservation
	case k.first == RawAction, k.first == PastAction, k.first == Executed, k.first == PastExecuted:
		return hostabi.RoleAction
	case k.flags&Guest == 0:
		return 0
	}
	return hostabi.Role(k.first >> kindAt)
}

// tensors returns the tensors that have a column each. All groups share one column for a role of which a group has one tensor.
func (k *kind) tensors(spec *hostabi.EnvSpec) []hostabi.Tensor {
	role := k.role()
	if role == 0 {
		return []hostabi.Tensor{{DType: k.dtype, Rank: 1, Shape: [hostabi.MaxRank]uint32{uint32(k.elems)}}}
	}
	list := spec.All(role)
	if len(list) > 1 && !role.Rule().Several {
		list = list[:1]
	}
	return list
}

// kinds are in the order in which columns lie in a block, the guest's first.
var kinds = []kind{
	{Action, "action", AtT | PerEnv | Guest | Decided, 0, 0},
	{Obs, "obs", AtT1 | PerEnv | Guest | Observed | Decided, 0, 0},
	{Reward, "reward", AtT | PerEnv | Guest | Outcome | Grantable | Decided, 0, 0},
	{Terminated, "terminated", AtT | PerEnv | Guest | Outcome, 0, 0},
	{Truncated, "truncated", AtT | PerEnv | Guest | Outcome, 0, 0},
	{Mask, "action_mask", AtT1 | PerEnv | Guest | Observed | Decided, 0, 0},
	{FinalObs, "final_obs", PerEnv | Guest | Final, 0, 0},
	{Active, "active", AtT1 | PerEnv | Guest | Observed, 0, 0},
	{Info, "info", AtT | PerEnv | Guest | Outcome, 0, 0},
	{Discount, "discount", AtT | PerEnv | Guest | Outcome, 0, 0},
	{ResetParam, "reset_param", PerEnv | Guest, 0, 0},
	{ResetInfo, "reset_info", AtT1 | PerEnv | Guest | AtBegin, 0, 0},
	{LogProb, "log_prob", AtT | PerEnv | Decided, hostabi.F32, 1},
	{Value, "value", AtT1 | PerEnv | Decided, hostabi.F32, 1},
	{Bootstrap, "bootstrap_value", AtT | PerEnv, hostabi.F32, 1},
	{Valid, "valid", AtT | PerEnv, hostabi.U8, 1},
	{PolicyVersion, "policy_version", AtT1, hostabi.I64, 1},
	{PluginVersion, "plugin_version", AtT | PerEnv, hostabi.I64, 1},
	{MetaColumn, "meta", 0, hostabi.U8, metaBytes},
	{ShapedReward, "shaped_reward", AtT | PerEnv | Outcome | Decided, hostabi.F32, 1},
	{RawAction, "raw_action", AtT | PerEnv | Decided, 0, 0},
	{Age, "age", AtT1 | PerEnv | Past | Decided, hostabi.U8, 1},
	{PastObs, "past_obs", PerEnv | Past, 0, 0},
	{PastAction, "past_action", PerEnv | Past, 0, 0},
	{PastReward, "past_reward", PerEnv | Past, hostabi.F32, 1},
	{CoreState, "core_state", PerEnv | Past, hostabi.F32, 0},
	{Policy, "policy", AtT1 | PerEnv, hostabi.U8, 1},
	{PastShaped, "past_shaped_reward", PerEnv | Past, hostabi.F32, 1},
	{Executed, "executed_action", AtT | PerEnv | Outcome, 0, 0},
	{PastExecuted, "past_executed_action", PerEnv | Past, 0, 0},
	{PlayedVersion, "played_version", AtT1 | PerEnv, hostabi.I64, 1},
}

// of returns the kind of columns whose rows continue below row 0 in this one, 0 for none.
func (c Column) of() Column {
	switch c.Kind() {
	case PastObs:
		return Obs.At(c.Index())
	case PastAction:
		return Action.At(c.Index())
	case PastReward:
		return Reward
	case PastShaped:
		return ShapedReward
	case PastExecuted:
		return Executed.At(c.Index())
	}
	return 0
}

// At returns the column of the same kind with that index.
func (c Column) At(index int) Column { return c.Kind() + Column(index) }

// Kind returns the first column of the same kind.
func (c Column) Kind() Column { return c &^ (1<<kindAt - 1) }

// Index returns how many columns of the same kind come before it.
func (c Column) Index() int { return int(c - c.Kind()) }

// String returns the column's name: its kind's, with the index after a slash unless it is 0.
func (c Column) String() string {
	for _, k := range kinds {
		if k.first == c.Kind() {
			return k.name + c.suffix()
		}
	}
	return "column?"
}

func (c Column) suffix() string {
	if c.Index() == 0 {
		return ""
	}
	return "/" + strconv.Itoa(c.Index())
}

// ParseColumn returns the column of a name as String writes it.
func ParseColumn(name string) (c Column, ok bool) {
	base, digits, several := strings.Cut(name, "/")
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == base })
	if i < 0 {
		return 0, false
	}
	c = kinds[i].first
	if several {
		index, err := strconv.ParseUint(digits, 10, kindAt)
		if err != nil {
			return 0, false
		}
		c = c.At(int(index))
	}
	return c, c.String() == name
}

// GrantableNames returns the names of the columns that are Grantable.
func GrantableNames() (names []string) {
	for _, k := range kinds {
		if k.flags&Grantable != 0 {
			names = append(names, k.name)
		}
	}
	return names
}

// ColumnKind is what the columns of a kind have in common.
type ColumnKind struct {
	Column Column // the first of them
	Name   string
	Flags  Flags
	Role   hostabi.Role  // of the tensors that have a column each, 0 for columns that belong to none
	DType  hostabi.DType // 0 for the type of the tensor
}

// ColumnKinds returns the kinds of columns, in the order in which their columns lie in a block.
func ColumnKinds() []ColumnKind {
	list := make([]ColumnKind, len(kinds))
	for i, k := range kinds {
		list[i] = ColumnKind{k.first, k.name, k.flags, k.role(), k.dtype}
	}
	return list
}

// ColumnNames returns the names of the first columns of all kinds.
func ColumnNames() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}
