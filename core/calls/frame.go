package calls

import "encoding/binary"

// PartBytes is the most that a frame carries: half of what a server of NATS takes at once where nobody has said otherwise.
const PartBytes = 512 << 10

// MostBytes bounds a call and a reply.
const MostBytes = 1 << 30

type kind uint32

const (
	kindCall    kind = 1 + iota // a part of a call
	kindGot                     // it has arrived
	kindWant                    // asks for a part of the reply
	kindReply                   // a part of the reply
	kindUnknown                 // there is no such call: the program that had its beginning is gone
)

const headBytes = 32

// head is the beginning of a frame.
type head struct {
	session, number uint64 // of the caller; of the call, from 1
	kind            kind
	part, parts     uint32
}

// frame returns the head and what it carries.
func (h head) frame(body []byte) []byte {
	f := make([]byte, headBytes, headBytes+len(body))
	binary.LittleEndian.PutUint64(f, h.session)
	binary.LittleEndian.PutUint64(f[8:], h.number)
	binary.LittleEndian.PutUint32(f[16:], uint32(h.kind))
	binary.LittleEndian.PutUint32(f[20:], h.part)
	binary.LittleEndian.PutUint32(f[24:], h.parts)
	return append(f, body...)
}

// parse returns false for what is no frame.
func parse(f []byte) (h head, body []byte, ok bool) {
	if len(f) < headBytes || len(f) > headBytes+PartBytes {
		return head{}, nil, false
	}
	h = head{
		session: binary.LittleEndian.Uint64(f), number: binary.LittleEndian.Uint64(f[8:]), kind: kind(binary.LittleEndian.Uint32(f[16:])),
		part: binary.LittleEndian.Uint32(f[20:]), parts: binary.LittleEndian.Uint32(f[24:]),
	}
	return h, f[headBytes:], h.part < h.parts && h.parts <= MostBytes/PartBytes
}

// partsOf returns in how many parts so many bytes go.
func partsOf(n int) uint32 { return uint32(max(1, (n+PartBytes-1)/PartBytes)) }

// partOf returns a part of data.
func partOf(data []byte, part uint32) []byte {
	at := min(int(part)*PartBytes, len(data))
	return data[at:min(at+PartBytes, len(data))]
}
