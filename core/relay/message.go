package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// HeaderSize is how many bytes a message has before its block.
const HeaderSize = 64

// Kind says what a message is.
type Kind uint8

// Kinds of messages. An arrow says which end sends them: S the sender of blocks, R their receiver.
const (
	Open     Kind = 1 + iota // S→R: From wants to send. Of Previous, if it is not 0, Number were acknowledged.
	Opened                   // R→S: Known says whether Previous is remembered, Number how many of it were committed; Limit.
	Data                     // S→R: block Number; Steps is the sum of the env steps of all blocks up to it. The block follows.
	Probe                    // S→R: Number is the highest that was given, Steps its sum. The receiver answers.
	Ack                      // R→S: committed up to Number, may send up to Limit; Resend asks for all after Number.
	Refused                  // R→S: From is over.
	Stranger                 // R→S: To is not here; Limit is the incarnation of the receiver that is.
)

// Message is what the two ends tell each other. From is the sender's incarnation and To the receiver's, in both directions.
type Message struct {
	Kind                           Kind
	Resend, Known                  bool
	From, To                       uint64
	Number, Limit, Previous, Steps uint64
}

// The layout of a header, whose last bytes are 0.
const (
	layout = 1 // in the third byte

	flagResend = 1
	flagKnown  = 2
)

// ErrMessage is wrapped by errors of bytes that are no message.
var ErrMessage = errors.New("not a message of blocks")

// AppendTo appends the header to b.
func (m Message) AppendTo(b []byte) []byte {
	var flags byte
	if m.Resend {
		flags |= flagResend
	}
	if m.Known {
		flags |= flagKnown
	}
	b = append(b, byte(m.Kind), flags, layout, 0, 0, 0, 0, 0)
	for _, word := range [...]uint64{m.From, m.To, m.Number, m.Limit, m.Previous, m.Steps, 0} {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

// Parse returns the message that b begins with, and the block after it, which shares b's memory.
func Parse(b []byte) (m Message, body []byte, err error) {
	if len(b) < HeaderSize {
		return Message{}, nil, fmt.Errorf("%w: %d bytes, a header has %d", ErrMessage, len(b), HeaderSize)
	}
	if b[2] != layout {
		return Message{}, nil, fmt.Errorf("%w: layout %d, this host knows %d", ErrMessage, b[2], layout)
	}
	m.Kind = Kind(b[0])
	if m.Kind < Open || m.Kind > Stranger {
		return Message{}, nil, fmt.Errorf("%w: kind %d", ErrMessage, m.Kind)
	}
	m.Resend, m.Known = b[1]&flagResend != 0, b[1]&flagKnown != 0
	for i, word := range [...]*uint64{&m.From, &m.To, &m.Number, &m.Limit, &m.Previous, &m.Steps} {
		*word = binary.LittleEndian.Uint64(b[8+8*i:])
	}
	return m, b[HeaderSize:], nil
}
