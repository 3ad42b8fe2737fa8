package trajectory

import (
	"hash/fnv"
	"math"

	"github.com/rlhost/rlhost/hostabi"
)

// Episode is one episode of an agent that has ended: what a message of payload episode carries. The message's PolicyVersion
// is the newest policy version that acted in it.
type Episode struct {
	Return     float32 // sum of the raw rewards
	Length     uint32  // env steps; with several agents, steps in which the agent acted
	Env        uint32  // global index of the environment
	Agent      uint16  // index of the agent in it
	Terminated bool    // else truncated
	// Task distinguishes episodes whose returns cannot be compared: it counts the changes to other environments that
	// ended the running episodes, from 0. TrialTask marks episodes of environments on trial.
	Task uint16
	// Policy is the PolicyID of the policy that acted, 0 where one policy acts in all rows of the rollout's blocks: the
	// rollout's wires say which.
	Policy uint32
	// Number counts the episodes of the agent in its environment, from 0, in the life of the rollout's instance that Begun numbers; see
	// component.Succession.
	Number uint32
	Begun  uint16
}

// PolicyID is the number of a policy in an Episode: the 32-bit FNV-1a hash of its name.
func PolicyID(name string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return h.Sum32()
}

// TrialTask is the Task of episodes that do not count for judging the policy.
const TrialTask = 1<<16 - 1

const (
	flagTerminated = 1 << 32
	taskAt         = 33
	agentAt        = 49
)

// Message encodes the episode: Inline[0] has the bits of the return below and the length above, Inline[1] the
// environment below, the flag in bit 32, the task above it and the agent above that; T is the policy, Split the number and Kind the life.
func (e Episode) Message() hostabi.Message {
	where := uint64(e.Env) | uint64(e.Task)<<taskAt | uint64(e.Agent)<<agentAt
	if e.Terminated {
		where |= flagTerminated
	}
	return hostabi.Message{T: e.Policy, Split: e.Number, Kind: e.Begun, Inline: [2]uint64{
		uint64(math.Float32bits(e.Return)) | uint64(e.Length)<<32, where,
	}}
}

// EpisodeOf decodes a message of payload episode.
func EpisodeOf(m *hostabi.Message) Episode {
	return Episode{
		Return: math.Float32frombits(uint32(m.Inline[0])), Length: uint32(m.Inline[0] >> 32),
		Env: uint32(m.Inline[1]), Terminated: m.Inline[1]&flagTerminated != 0,
		Task: uint16(m.Inline[1] >> taskAt), Agent: uint16(m.Inline[1] >> agentAt), Policy: m.T, Number: m.Split, Begun: m.Kind,
	}
}
