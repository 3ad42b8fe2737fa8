package component

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Names of the payloads that the host knows, as in manifests. Any other name is a payload too, about which the host
// knows only that a signal connects to slots of the same payload.
const (
	PayloadRequest    = "act_request"     // a row of observations that waits for actions
	PayloadActions    = "actions"         // the same request, answered
	PayloadResets     = "reset_request"   // environments whose next episodes want reset parameters
	PayloadParams     = "reset_params"    // the same request, answered
	PayloadRewards    = "reward_request"  // a block with all its rewards, before they are shaped
	PayloadShaped     = "shaped_rewards"  // the same request, answered
	PayloadObserve    = "observe_request" // a row of observations that a wrapper makes others of
	PayloadObserved   = "observations"    // the same request, answered
	PayloadTrajectory = "trajectory"      // a full block of env steps
	PayloadDataset    = "dataset"         // blocks that are learned from together
	PayloadWeights    = "weights"         // a new policy version
	PayloadStats      = "learner_stats"   // of one learner round
	PayloadEpisode    = "episode"         // that has ended
	PayloadChange     = "store_change"    // of an object of a store: the index of its newest entry
)

// Payload describes the messages with one payload to the host.
type Payload struct {
	Name string
	// Fields says what a message carries, and where: what both sides of a connection must agree on. Schema is a hash of it.
	Fields string
	// Block: each message carries a block.
	Block bool
	// Steps: the block holds a trajectory. The sender's env steps are counted by these messages.
	Steps bool
	// Grantable names the columns of the block that a wire may let its receiver write.
	Grantable []string
	// OnLoan: the block is still on loan to the sender, until all receivers have answered, each of which writes a part of it.
	// So the message carries no claim, and may have several receivers.
	OnLoan bool
	// Learned: the receiver is a learner or feeds one: its env steps count as trained on.
	Learned bool
	// Publishes: the sender publishes PolicyVersion.
	Publishes bool
	// Answers: the message is the request that it answers, with the same fields but for the policy that acted.
	Answers bool
	// AnsweredBy names the payload of the answers that the message asks for; empty if it asks for none.
	AnsweredBy string
	// Own: the payload is rlhost's own and no part of the component ABI, so that its fields may change with a release.
	Own bool
	// Inline returns the values in the message itself, for people; nil if there are none.
	Inline func(m *hostabi.Message) map[string]any
}

// Fields of requests and their answers.
const (
	fieldsOfAct   = "handle loan, t u32, split u32, step u64 at inline 0, first_agent u32 at inline 64, value_only bit at inline 96, bootstrap bit at inline 97, policy u8 at inline 98"
	fieldsOfBlock = "handle loan, split u32, step u64 at inline 0, first_env u32 at inline 64"
)

// payloads has a row for each payload.
var payloads = [...]Payload{
	{Name: PayloadRequest, Fields: fieldsOfAct, OnLoan: true, AnsweredBy: PayloadActions, Grantable: []string{trajectory.Action.String()}, Inline: func(m *hostabi.Message) map[string]any {
		return map[string]any{"t": m.T, "split": m.Split}
	}},
	{Name: PayloadActions, Fields: fieldsOfAct, OnLoan: true, Answers: true},
	{Name: PayloadResets, Fields: fieldsOfBlock, OnLoan: true, AnsweredBy: PayloadParams, Grantable: []string{trajectory.ResetParam.String()}, Inline: inlineOfBlock},
	{Name: PayloadParams, Fields: fieldsOfBlock, OnLoan: true, Answers: true},
	{Name: PayloadRewards, Fields: fieldsOfBlock, OnLoan: true, AnsweredBy: PayloadShaped, Grantable: []string{trajectory.ShapedReward.String()}, Inline: inlineOfBlock},
	{Name: PayloadShaped, Fields: fieldsOfBlock, OnLoan: true, Answers: true},
	{Name: PayloadObserve, Fields: fieldsOfBlock, OnLoan: true, AnsweredBy: PayloadObserved, Grantable: []string{trajectory.Obs.String()}, Inline: inlineOfBlock},
	{Name: PayloadObserved, Fields: fieldsOfBlock, OnLoan: true, Answers: true},
	{Name: PayloadTrajectory, Fields: "handle trajectory, split u32, policy_version u64", Block: true, Steps: true, Grantable: trajectory.GrantableNames()},
	{Name: PayloadDataset, Fields: "handle dataset {index u64, count u32, parts u32, handles u64[count], parts {member u32, first u32, envs u32, number u32}[parts]}, policy_version u64", Block: true, Learned: true, Own: true},
	{Name: PayloadWeights, Fields: "handle weights {version u64, parameters u32, statistics u32, hash u8[32], zero u8[16], parameters f32[], means f32[], scales f32[]}, policy_version u64", Block: true, Publishes: true, Own: true},
	{Name: PayloadStats, Fields: "handle names {f64[]}, policy_version u64", Block: true, Own: true},
	{Name: PayloadChange, Fields: "index u64 at inline 0", Own: true, Inline: func(m *hostabi.Message) map[string]any {
		return map[string]any{"index": m.Inline[0]}
	}},
	{Name: PayloadEpisode, Fields: "policy u32 at t, return f32 at inline 0, length u32 at inline 32, env u32 at inline 64, terminated bit at inline 96, task u16 at inline 97, agent u15 at inline 113", Inline: func(m *hostabi.Message) map[string]any {
		e := trajectory.EpisodeOf(m)
		return map[string]any{"env": e.Env, "agent": e.Agent, "return": Number(float64(e.Return)), "length": e.Length, "terminated": e.Terminated}
	}},
}

func inlineOfBlock(m *hostabi.Message) map[string]any {
	return map[string]any{"split": m.Split, "first_env": trajectory.BlockRequestOf(m).FirstEnv}
}

// Payloads returns the names of all payloads that the host knows.
func Payloads() []string {
	names := make([]string, len(payloads))
	for i := range payloads {
		names[i] = payloads[i].Name
	}
	return names
}

// PayloadOf returns the description of a payload: only its name, if it is not in the table.
func PayloadOf(name string) Payload {
	if i := slices.IndexFunc(payloads[:], func(p Payload) bool { return p.Name == name }); i >= 0 {
		return payloads[i]
	}
	return Payload{Name: name}
}

// Schema returns the default schema of a port with the payload: the first 8 bytes of the SHA-256 of the name and the fields. It is 0
// for a payload that the host does not know.
func (p *Payload) Schema() uint64 {
	if p.Fields == "" {
		return 0
	}
	sum := sha256.Sum256([]byte(p.Name + ": " + p.Fields))
	return binary.BigEndian.Uint64(sum[:])
}

// Number returns x as a value that JSON can hold.
func Number(x float64) any {
	if math.IsNaN(x) || math.Abs(x) > 1e300 {
		return fmt.Sprint(x)
	}
	return x
}
