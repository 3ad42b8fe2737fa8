package component

import (
	"fmt"
	"math"
	"slices"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Names of the payloads that the host knows, as in manifests. Any other name is a payload too, about which the host
// knows only that a signal connects to slots of the same payload.
const (
	PayloadRequest    = "act_request"    // a row of observations that waits for actions
	PayloadActions    = "actions"        // the same request, answered
	PayloadResets     = "reset_request"  // environments whose next episodes want reset parameters
	PayloadParams     = "reset_params"   // the same request, answered
	PayloadRewards    = "reward_request" // a block whose rewards are complete, and not yet what is learned from
	PayloadShaped     = "shaped_rewards" // the same request, answered
	PayloadTrajectory = "trajectory"     // a full block of env steps
	PayloadDataset    = "dataset"        // blocks that are learned from together
	PayloadWeights    = "weights"        // a new policy version
	PayloadStats      = "learner_stats"  // of one learner round
	PayloadEpisode    = "episode"        // that has ended
)

// Payload is what the host knows of the messages with one payload.
type Payload struct {
	Name string
	// Block: each message carries a block.
	Block bool
	// Steps: the block holds a trajectory. The sender's env steps are counted by these messages.
	Steps bool
	// Grantable names the columns of the block that a wire may let its receiver write.
	Grantable []string
	// OnLoan: the block is still written by who asked, and is until all have answered, each of whom writes a part of it. So the
	// message carries no claim, and its receivers may be several.
	OnLoan bool
	// Learned: the receiver is a learner or feeds one: its env steps count as trained on.
	Learned bool
	// Publishes: PolicyVersion is one that the sender publishes.
	Publishes bool
	// Answers: the message is the request that it answers, with the same fields but for the policy that acted.
	Answers bool
	// Inline returns the values in the message itself, for people; nil if there are none.
	Inline func(m *hostabi.Message) map[string]any
}

// payloads has a row for each payload.
var payloads = [...]Payload{
	{Name: PayloadRequest, OnLoan: true, Grantable: []string{trajectory.Action.String()}, Inline: func(m *hostabi.Message) map[string]any {
		return map[string]any{"t": m.T, "split": m.Split}
	}},
	{Name: PayloadActions, OnLoan: true, Answers: true},
	{Name: PayloadResets, OnLoan: true, Grantable: []string{trajectory.ResetParam.String()}, Inline: inlineOfBlock},
	{Name: PayloadParams, OnLoan: true, Answers: true},
	{Name: PayloadRewards, OnLoan: true, Grantable: []string{trajectory.ShapedReward.String()}, Inline: inlineOfBlock},
	{Name: PayloadShaped, OnLoan: true, Answers: true},
	{Name: PayloadTrajectory, Block: true, Steps: true, Grantable: trajectory.GrantableNames()},
	{Name: PayloadDataset, Block: true, Learned: true},
	{Name: PayloadWeights, Block: true, Publishes: true},
	{Name: PayloadStats, Block: true},
	{Name: PayloadEpisode, Inline: func(m *hostabi.Message) map[string]any {
		e := trajectory.EpisodeOf(m)
		return map[string]any{"env": e.Env, "agent": e.Agent, "return": Number(float64(e.Return)), "length": e.Length, "terminated": e.Terminated}
	}},
}

func inlineOfBlock(m *hostabi.Message) map[string]any {
	return map[string]any{"split": m.Split, "first_env": trajectory.BlockRequestOf(m).FirstEnv}
}

// PayloadOf returns what the host knows of a payload: only its name, if it is not in the table.
func PayloadOf(name string) Payload {
	if i := slices.IndexFunc(payloads[:], func(p Payload) bool { return p.Name == name }); i >= 0 {
		return payloads[i]
	}
	return Payload{Name: name}
}

// Number returns x as a value that JSON can hold.
func Number(x float64) any {
	if math.IsNaN(x) || math.Abs(x) > 1e300 {
		return fmt.Sprint(x)
	}
	return x
}
