package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Version is the version of the protocol. OpHello carries it, and a server refuses any other.
const Version = 2

// Sizes in bytes.
const (
	HeadBytes = 48
	MaxFrame  = 64 << 10
)

// Op is the operation of a request.
type Op uint8

// Operations. An operation that plugins/objects/store has too takes and returns the same. OpHello comes first and once.
const (
	OpHello  Op = iota + 1 // Index: Version; Name: for people → Index: the server's Version, Claim: the session
	OpCreate               // Name, Config; Reuse → Object
	OpOpen                 // Name, Wait; Write → Object, Layout, and the file unless NoFile
	OpRemove               // Object
	OpNew
	OpSpare
	OpCommit
	OpAbort
	OpRead
	OpLatest
	OpPop // Spare is 1 if the block is lent
	OpBatch
	OpRelease
	OpDelete
	OpStat   // Object → Text: JSON of Stat
	OpList   // Name: prefix, Index: unused → Names; after a full frame ask again with After
	OpCancel // Index: Seq of a request that waits, which is answered with ErrCanceled unless it is over. No reply
	OpLock   // Spare is 1 if the entry is torn
	OpUnlock
	opEnd
)

// Flags of a request.
type Flags uint8

// Flags.
const (
	OneWay Flags = 1 << iota // of OpAbort and OpRelease: no reply
	Next                     // of OpCommit: with a spare block for the next push; of OpPop: lend
	Revoke                   // of OpDelete
	Reuse                    // of OpCreate: an object that exists will do
	Write                    // of OpOpen: a file to read and write, not only to read
	NoFile                   // of OpOpen: without a file
	Range                    // of OpBatch: Most entries from Index on, instead of Indices
	flagsEnd
)

// Flags that share a bit with one of another operation.
const (
	Grow  = Revoke // of OpCreate: an object that exists is made as large
	Alone = Write  // of OpLock
	Tear  = Revoke // of OpUnlock
	Mend  = Reuse  // of OpUnlock
)

// ErrFrame says that the bytes are not a frame of this protocol.
var ErrFrame = errors.New("bad frame")

// Request is one request. Slices of a parsed one are valid until the next parse into it.
type Request struct {
	Op      Op
	Flags   Flags
	Seq     uint32
	Object  uint32
	Claim   uint64
	Index   uint64
	Release uint64 // a claim to end before anything else, or 0
	Wait    time.Duration
	Name    string   // of OpHello, OpCreate, OpOpen, OpList
	After   string   // of OpList: only names after this one
	Values  []Value  // of OpCommit
	Indices []uint64 // of OpBatch
	Most    int      // of OpBatch with Range
	Config  Config   // of OpCreate
}

// Bytes of a request's head: op 0, flags 1, values 2, zero 3, seq 4, object 8, count 12, claim 16, index 24,
// release 32, wait 40.

// AppendRequest appends the frame of a request. Errors: ErrFrame if it would be too long.
func AppendRequest(b []byte, r *Request) ([]byte, error) {
	from := len(b)
	b = append(b, byte(r.Op), byte(r.Flags), byte(min(len(r.Values), 255)), 0)
	b = binary.LittleEndian.AppendUint32(b, r.Seq)
	b = binary.LittleEndian.AppendUint32(b, r.Object)
	b = binary.LittleEndian.AppendUint32(b, uint32(r.count()))
	b = binary.LittleEndian.AppendUint64(b, r.Claim)
	b = binary.LittleEndian.AppendUint64(b, r.Index)
	b = binary.LittleEndian.AppendUint64(b, r.Release)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Wait))
	switch r.Op {
	case OpHello, OpOpen:
		b = append(b, r.Name...)
	case OpList:
		b = append(append(b, r.Name...), r.After...)
	case OpCreate:
		b = appendConfig(append(b, r.Name...), &r.Config)
	case OpCommit:
		b = appendValues(b, r.Values)
	case OpBatch:
		for _, index := range r.Indices {
			b = binary.LittleEndian.AppendUint64(b, index)
		}
	}
	if len(b)-from > MaxFrame {
		return nil, fmt.Errorf("request of %d bytes: %w: at most %d", len(b)-from, ErrFrame, MaxFrame)
	}
	return b, nil
}

// count returns the head's count: indices of a batch, or bytes of a name that is not last.
func (r *Request) count() int {
	switch r.Op {
	case OpBatch:
		if r.Flags&Range != 0 {
			return r.Most
		}
		return len(r.Indices)
	case OpCreate, OpList:
		return len(r.Name)
	}
	return 0
}

// ParseRequest reads a frame into r and reuses its slices. Errors: ErrFrame.
func ParseRequest(r *Request, frame []byte) error {
	if len(frame) < HeadBytes || len(frame) > MaxFrame {
		return fmt.Errorf("request of %d bytes: %w: %d to %d", len(frame), ErrFrame, HeadBytes, MaxFrame)
	}
	le := binary.LittleEndian
	*r = Request{
		Op: Op(frame[0]), Flags: Flags(frame[1]), Seq: le.Uint32(frame[4:]), Object: le.Uint32(frame[8:]),
		Claim: le.Uint64(frame[16:]), Index: le.Uint64(frame[24:]), Release: le.Uint64(frame[32:]),
		Wait:   time.Duration(le.Uint64(frame[40:])),
		Values: r.Values[:0], Indices: r.Indices[:0],
	}
	switch {
	case r.Op == 0 || r.Op >= opEnd:
		return fmt.Errorf("operation %d: %w", r.Op, ErrFrame)
	case uint8(r.Flags) >= uint8(flagsEnd) || frame[3] != 0:
		return fmt.Errorf("flags %#x: %w", frame[1], ErrFrame)
	case r.Wait < Forever:
		return fmt.Errorf("wait of %d: %w", r.Wait, ErrFrame)
	}
	return r.parseRest(reader{frame[HeadBytes:], nil}, int(frame[2]), int(le.Uint32(frame[12:])))
}

func (r *Request) parseRest(in reader, values, count int) error {
	switch r.Op {
	case OpHello, OpOpen:
		r.Name = in.text(len(in.rest))
	case OpList:
		r.Name = in.text(count)
		r.After = in.text(len(in.rest))
	case OpCreate:
		r.Name = in.text(count)
		r.Config = in.config()
	case OpCommit:
		r.Values = in.values(r.Values, values)
	case OpBatch:
		if r.Flags&Range != 0 {
			r.Most = count
			break
		}
		if count > len(in.rest)/8 {
			return fmt.Errorf("batch of %d: %w", count, ErrFrame)
		}
		for range count {
			r.Indices = append(r.Indices, in.u64())
		}
	}
	return in.end()
}
