package cluster

import (
	"encoding/binary"
	"iter"
	"slices"

	"github.com/rlhost/rlhost/core/relay"
)

// part says which bytes of a block a message has, where the block goes as several: it stands in the last word of the header, which package relay
// leaves free. Each part has the header.
type part struct {
	size uint32 // of the whole block
	at   uint32 // where the part begins
}

const partWord = relay.HeaderSize - 8

func partOf(message []byte) part {
	return part{binary.LittleEndian.Uint32(message[partWord:]), binary.LittleEndian.Uint32(message[partWord+4:])}
}

func (p part) put(message []byte) {
	binary.LittleEndian.PutUint32(message[partWord:], p.size)
	binary.LittleEndian.PutUint32(message[partWord+4:], p.at)
}

// messages cuts a header and its block into messages of at most that many bytes. A message is valid until the next one, and the buffer is used up.
func messages(buffer []byte, most int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(buffer) <= most {
			yield(buffer)
			return
		}
		header := slices.Clone(buffer[:relay.HeaderSize])
		size, step := len(buffer)-relay.HeaderSize, most-relay.HeaderSize
		for at := 0; at < size; at += step {
			message := buffer[at:min(at+most, len(buffer))]
			copy(message, header) // over the end of the part before, which has gone
			part{uint32(size), uint32(at)}.put(message)
			if !yield(message) {
				return
			}
		}
	}
}

// assembly puts the parts of one block at a time together. They come in their order; where one is missing the rest of that block is nothing, and
// the block comes again.
type assembly struct {
	of    relay.Message
	size  uint32
	bytes []byte
}

// add takes a part, and returns the whole block once it has all; largest bounds that.
func (a *assembly) add(m relay.Message, p part, body []byte, largest int) (whole []byte) {
	if p.at == 0 {
		a.of, a.size, a.bytes = m, p.size, a.bytes[:0]
	}
	if m != a.of || p.size != a.size || int(p.at) != len(a.bytes) || int(p.size) > largest || len(body) > int(p.size)-len(a.bytes) {
		a.of = relay.Message{}
		return nil
	}
	a.bytes = append(a.bytes, body...)
	if len(a.bytes) < int(a.size) {
		return nil
	}
	a.of = relay.Message{}
	return a.bytes
}
