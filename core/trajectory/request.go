package trajectory

import "github.com/rlhost/rlhost/hostabi"

// ActRequest asks inference to act on one row of a block that the sender has on loan: to read obs[T] and mask[T]
// and write action[T], log_prob[T], value[T] and policy_version[T]. Where several policies act in the rows of the block, each
// writes its own. The reply is the same message, but for Policy, sent back when the row is written.
type ActRequest struct {
	Block hostabi.Handle
	T     int    // row
	Split uint32 // of the sender, for the sender
	// Step is the env step of the row, as Meta.FirstStep counts them, FirstEnv the global index of its first environment, or of that
	// environment's first agent, counting all agents of all environments: with the run's seed they key the sampling of actions.
	Step     uint64
	FirstEnv uint32
	// ValueOnly: write value[T] and policy_version[T] only; the row after the last step of a block.
	ValueOnly bool
	// Bootstrap: truncated[T-1] has ones under same-step autoreset; write bootstrap_value[T-1] from the final
	// observations of the truncated environments too.
	Bootstrap bool
	// Policy says, in the reply, whose rows are written: the policy's place in Shape.Policies. In a request it says so once
	// AddressedTo has been called.
	Policy int
}

// AddressedTo returns the request as it is for a policy that acts in blocks of a schema.
func (r ActRequest) AddressedTo(policy string, s *Schema) (ActRequest, error) {
	if _, err := s.Of(policy); err != nil {
		return r, err
	}
	r.Policy, _ = s.PolicyPlace(policy)
	return r, nil
}

const (
	flagValueOnly = 1 << 32
	flagBootstrap = 1 << 33
	policyAt      = 34
)

// Message encodes the request.
func (r ActRequest) Message() hostabi.Message {
	flags := uint64(r.FirstEnv) | uint64(r.Policy)<<policyAt
	if r.ValueOnly {
		flags |= flagValueOnly
	}
	if r.Bootstrap {
		flags |= flagBootstrap
	}
	return hostabi.Message{Handle: r.Block, T: uint32(r.T), Split: r.Split, Inline: [2]uint64{r.Step, flags}}
}

// ActRequestOf decodes a message of payload act_request or actions.
func ActRequestOf(m *hostabi.Message) ActRequest {
	return ActRequest{
		Block: m.Handle, T: int(m.T), Split: m.Split,
		Step: m.Inline[0], FirstEnv: uint32(m.Inline[1]),
		ValueOnly: m.Inline[1]&flagValueOnly != 0,
		Bootstrap: m.Inline[1]&flagBootstrap != 0,
		Policy:    int(m.Inline[1] >> policyAt & (1<<8 - 1)),
	}
}

// BlockRequest asks another component to write a part of a block that the sender has on loan: the reset parameters of the episodes that
// begin in it (columns of kind ResetParam), before anything else is written, or the shaped rewards (ShapedReward), after the last step.
// The reply is the same message.
type BlockRequest struct {
	Block    hostabi.Handle
	Split    uint32 // of the sender, for the sender
	Step     uint64 // env steps that each environment has made before, as Meta.FirstStep counts them
	FirstEnv uint32 // global index of the block's first environment
}

// Message encodes the request.
func (r BlockRequest) Message() hostabi.Message {
	return hostabi.Message{Handle: r.Block, Split: r.Split, Inline: [2]uint64{r.Step, uint64(r.FirstEnv)}}
}

// BlockRequestOf decodes a message of payload reset_request or reward_request, or an answer to one.
func BlockRequestOf(m *hostabi.Message) BlockRequest {
	return BlockRequest{Block: m.Handle, Split: m.Split, Step: m.Inline[0], FirstEnv: uint32(m.Inline[1])}
}
