package hostabi

import "structs"

// MessageBytes is the size of a Message.
const MessageBytes = 64

// Message is the unit of a connection: 64 bytes, the same in the host's memory and in a ring cell. Data
// goes by Handle; only what fits in Inline goes by value.
type Message struct {
	_ structs.HostLayout

	Ctl           uint64    // 0: reserved for the transport's own word; zero in process
	Signal        uint16    // 8: index of the signal in its sender's manifest
	Slot          uint16    // 10: index of the slot in its receiver's manifest, set on delivery
	Sender        uint16    // 12: component that emitted the message; a reply goes back to it
	Kind          uint16    // 14: meaning of Inline, defined by the payload type of the signal
	Handle        Handle    // 16: block that the message carries, or 0
	T             uint32    // 24: time row within the block
	Split         uint32    // 28: split of the sender
	PolicyVersion uint64    // 32: policy version that the message speaks of
	Sequence      uint64    // 40: counts the messages of one signal, from 1
	Inline        [2]uint64 // 48: payload of up to 16 bytes
}
