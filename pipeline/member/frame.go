package member

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

// What goes from host to host as one block of package relay: a number of messages, whether a block follows, how many microseconds that took where
// datasets are traced, the messages, and the block, which the last of them carries.
const (
	frameHead   = 8
	messageSize = 64
	frameMost   = 64 // messages
)

// errFrame is the error of bytes that are no frame.
var errFrame = errors.New("not a frame of messages")

// appendFrame appends the messages of a frame; its block follows.
func appendFrame(to []byte, messages []hostabi.Message, block bool, took time.Duration) []byte {
	carries := byte(0)
	if block {
		carries = 1
	}
	to = append(to, byte(len(messages)), carries, 0, 0)
	to = binary.LittleEndian.AppendUint32(to, uint32(min(max(0, took.Microseconds()), math.MaxUint32)))
	for i := range messages {
		to = appendMessage(to, &messages[i])
	}
	return to
}

// parseFrame returns the messages of a frame, its block, which shares b's memory, nil where it has none, and how long that took.
func parseFrame(b []byte) (messages []hostabi.Message, block []byte, took time.Duration, err error) {
	if len(b) < frameHead {
		return nil, nil, 0, errFrame
	}
	n, carries := int(b[0]), b[1] == 1
	rest := b[frameHead:]
	if n == 0 || n > frameMost || len(rest) < n*messageSize || carries != (len(rest) > n*messageSize) {
		return nil, nil, 0, errFrame
	}
	for i := range n {
		messages = append(messages, readMessage(rest[i*messageSize:]))
	}
	if carries {
		block = rest[n*messageSize:]
	}
	return messages, block, time.Duration(binary.LittleEndian.Uint32(b[4:])) * time.Microsecond, nil
}

// appendMessage appends what a message means on another host: all but its handle, its sender and the slot, which are that host's own.
func appendMessage(to []byte, m *hostabi.Message) []byte {
	to = binary.LittleEndian.AppendUint16(to, m.Signal)
	to = binary.LittleEndian.AppendUint16(to, m.Kind)
	to = binary.LittleEndian.AppendUint32(to, m.T)
	to = binary.LittleEndian.AppendUint32(to, m.Split)
	to = append(to, 0, 0, 0, 0)
	for _, word := range [...]uint64{m.PolicyVersion, m.Inline[0], m.Inline[1], 0, 0, 0} {
		to = binary.LittleEndian.AppendUint64(to, word)
	}
	return to
}

func readMessage(b []byte) (m hostabi.Message) {
	m.Signal, m.Kind = binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint16(b[2:])
	m.T, m.Split = binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	m.PolicyVersion = binary.LittleEndian.Uint64(b[16:])
	m.Inline = [2]uint64{binary.LittleEndian.Uint64(b[24:]), binary.LittleEndian.Uint64(b[32:])}
	return m
}
