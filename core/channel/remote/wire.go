package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/channel"
)

// Version of the frames, which a client says first.
const Version = 1

// MaxInline is the most bytes of an item that travels in a frame.
const MaxInline = 64 << 10

const (
	requestHead = 56
	replyHead   = 24
	itemHead    = 24
	maxRequest  = requestHead + channel.MaxKey + MaxInline
	maxReply    = 128 << 10
)

type op uint8

const (
	opHello   op = 1 + iota // version in size; the reply has the limits
	opPut                   // data in the frame, or size bytes of region
	opGet                   //
	opBatch                 //
	opPeek                  //
	opAlloc                 // a region of size bytes, the reply's spare
	opMap                   // the file of region
	opFree                  // regions, 8 bytes each; without a reply
	opCancel                // the request whose seq is in region; without a reply of its own
	opPutBack               // as opPut
	opStat                  // JSON of a status
	opStop                  //
	opBye                   // the client ends in order: it holds nothing that it has not used; without a reply
)

type flags uint8

// Flags of requests.
const (
	flagNoWait flags = 1 << iota
	flagNext         // opPut: the reply may have a spare region as large as this item's
	flagEarly        // opPut: the caller has not waited, so that an item that is refused is lost
)

// Flags of replies.
const (
	flagCopy   flags = 1 << iota // copy the data of regions and free them at once: much of the memory is held
	flagPacked                   // the table of items and their data lie in the spare region, which is the client's then
	flagFile                     // the region's file comes with the frame
	flagRoom                     // opPut: there is much room, so that the next put need not be waited for
)

type status uint8

// Statuses of replies, in this order: statuses[i] is status i+1.
var statuses = []error{
	channel.ErrFull, channel.ErrEmpty, channel.ErrClosed, channel.ErrTooLarge, channel.ErrInvalid, channel.ErrCanceled, errMemory, errOther,
}

var (
	errMemory = errors.New("no memory")
	errOther  = errors.New("refused")
	errFrame  = errors.New("this is no request")
)

func statusOf(err error) status {
	if err == nil {
		return 0
	}
	for i, is := range statuses {
		if errors.Is(err, is) {
			return status(i + 1)
		}
	}
	return status(len(statuses))
}

// request is what a client asks.
type request struct {
	op      op
	flags   flags
	seq     uint32
	ack     uint32 // how many replies with items it has used, of all: one that it asks for the sake of another's items does not count that one
	most    uint32
	weight  float64
	wait    int64 // nanoseconds; negative is no limit
	region  uint64
	size    uint64
	release uint64 // a region that it needs no more; 0 = none
	key     []byte // part of the frame
	data    []byte // part of the frame
}

func (r *request) parse(frame []byte) error {
	if len(frame) < requestHead {
		return fmt.Errorf("%w: a frame of %d bytes", errFrame, len(frame))
	}
	le := binary.LittleEndian
	key := int(le.Uint16(frame[2:]))
	if key > len(frame)-requestHead {
		return fmt.Errorf("%w: a key of %d bytes in a frame of %d", errFrame, key, len(frame))
	}
	*r = request{
		op: op(frame[0]), flags: flags(frame[1]), seq: le.Uint32(frame[4:]), ack: le.Uint32(frame[8:]), most: le.Uint32(frame[12:]),
		weight: math.Float64frombits(le.Uint64(frame[16:])), wait: int64(le.Uint64(frame[24:])), region: le.Uint64(frame[32:]),
		size: le.Uint64(frame[40:]), release: le.Uint64(frame[48:]),
		key: frame[requestHead : requestHead+key], data: frame[requestHead+key:],
	}
	return nil
}

func (r *request) append(frame []byte) []byte {
	le := binary.LittleEndian
	frame = append(frame, byte(r.op), byte(r.flags))
	frame = le.AppendUint16(frame, uint16(len(r.key)))
	frame = le.AppendUint32(frame, r.seq)
	frame = le.AppendUint32(frame, r.ack)
	frame = le.AppendUint32(frame, r.most)
	frame = le.AppendUint64(frame, math.Float64bits(r.weight))
	frame = le.AppendUint64(frame, uint64(r.wait))
	frame = le.AppendUint64(frame, r.region)
	frame = le.AppendUint64(frame, r.size)
	frame = le.AppendUint64(frame, r.release)
	frame = append(frame, r.key...)
	return append(frame, r.data...)
}

// reply is the head of an answer. Its items follow, then their data.
type reply struct {
	op     op
	status status
	flags  flags
	seq    uint32
	count  uint32 // of items
	size   uint32 // of the spare region, in pages
	spare  uint64 // a region that is the client's now; 0 = none
}

// pageShift turns the size of a region into pages, as replies have it.
const pageShift = 12

func (r *reply) append(frame []byte) []byte {
	le := binary.LittleEndian
	frame = append(frame, byte(r.op), byte(r.status), byte(r.flags), 0)
	frame = le.AppendUint32(frame, r.seq)
	frame = le.AppendUint32(frame, r.count)
	frame = le.AppendUint32(frame, r.size)
	return le.AppendUint64(frame, r.spare)
}

func (r *reply) parse(frame []byte) error {
	if len(frame) < replyHead {
		return fmt.Errorf("an answer of %d bytes", len(frame))
	}
	le := binary.LittleEndian
	*r = reply{
		op: op(frame[0]), status: status(frame[1]), flags: flags(frame[2]), seq: le.Uint32(frame[4:]), count: le.Uint32(frame[8:]),
		size: le.Uint32(frame[12:]), spare: le.Uint64(frame[16:]),
	}
	return nil
}

// appendItems appends the table of items, then the data of all that lie in no region, or of all at all.
func appendItems(frame []byte, items []channel.Item, whole bool) []byte {
	le := binary.LittleEndian
	for _, i := range items {
		region := i.Region
		if whole {
			region = 0
		}
		frame = le.AppendUint64(frame, math.Float64bits(i.Weight))
		frame = le.AppendUint64(frame, region)
		frame = le.AppendUint64(frame, uint64(len(i.Data)))
	}
	for _, i := range items {
		if i.Region == 0 || whole {
			frame = append(frame, i.Data...)
		}
	}
	return frame
}

// parseItems returns n items of a table. The data of items in no region is part of it.
func parseItems(table []byte, n int) ([]channel.Item, []int, error) {
	if n > len(table)/itemHead {
		return nil, nil, fmt.Errorf("%d items in %d bytes", n, len(table))
	}
	le := binary.LittleEndian
	data := table[n*itemHead:]
	items, sizes := make([]channel.Item, n), make([]int, n)
	for i := range n {
		head := table[i*itemHead:]
		size := le.Uint64(head[16:])
		items[i] = channel.Item{Weight: math.Float64frombits(le.Uint64(head)), Region: le.Uint64(head[8:])}
		sizes[i] = int(size)
		if items[i].Region != 0 {
			continue
		}
		if size > uint64(len(data)) {
			return nil, nil, fmt.Errorf("an item of %d bytes where %d are left", size, len(data))
		}
		items[i].Data, data = data[:size:size], data[size:]
	}
	return items, sizes, nil
}
