package component

import "math"

// Episode is an ended episode of an agent: the content of a message of the payload episode.
type Episode struct {
	Return     float32 // of the raw rewards
	Length     uint32  // env steps
	Env        uint32  // global index of the environment
	Agent      uint16  // index of the agent in it
	Terminated bool    // else truncated
}

// EpisodeOf decodes a message of the payload episode.
func EpisodeOf(m *Message) Episode {
	const terminated, agentAt = 1 << 32, 49
	return Episode{
		Return: math.Float32frombits(uint32(m.Inline[0])), Length: uint32(m.Inline[0] >> 32), Env: uint32(m.Inline[1]),
		Agent: uint16(m.Inline[1] >> agentAt), Terminated: m.Inline[1]&terminated != 0,
	}
}
