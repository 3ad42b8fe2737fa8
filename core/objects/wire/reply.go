package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Reply answers one request. Slices of a parsed one are valid until the next parse into it.
type Reply struct {
	Op         Op // of the request
	Status     Status
	Seq        uint32
	Object     uint32
	Block      uint32
	SpareBlock uint32
	Claim      uint64
	Index      uint64
	Spare      uint64
	Views      []View   // of OpRead, OpLatest, OpPop, OpBatch
	Layout     Layout   // of OpOpen
	Names      []string // of OpList
	Text       string   // of OpStat, and of an error

	values []Value // of Views
}

// Bytes of a reply's head: op 0, status 1, zero 2, seq 4, object 8, block 12, claim 16, index 24, spare 32, spare
// block 40, count 44.

// AppendReply appends the frame of a reply. Errors: ErrFrame if it would be too long.
func AppendReply(b []byte, r *Reply) ([]byte, error) {
	from := len(b)
	b = append(b, byte(r.Op), byte(r.Status), 0, 0)
	b = binary.LittleEndian.AppendUint32(b, r.Seq)
	b = binary.LittleEndian.AppendUint32(b, r.Object)
	b = binary.LittleEndian.AppendUint32(b, r.Block)
	b = binary.LittleEndian.AppendUint64(b, r.Claim)
	b = binary.LittleEndian.AppendUint64(b, r.Index)
	b = binary.LittleEndian.AppendUint64(b, r.Spare)
	b = binary.LittleEndian.AppendUint32(b, r.SpareBlock)
	b = binary.LittleEndian.AppendUint32(b, uint32(r.count()))
	switch {
	case r.Status != OK || r.Op == OpStat:
		b = append(b, r.Text...)
	case r.Op == OpOpen:
		b = appendLayout(b, &r.Layout)
	case r.Op == OpList:
		for _, name := range r.Names {
			b = append(append(b, byte(min(len(name), 255))), name[:min(len(name), 255)]...)
		}
	default:
		b = appendViews(b, r.Views)
	}
	if len(b)-from > MaxFrame {
		return nil, fmt.Errorf("reply of %d bytes: %w: at most %d", len(b)-from, ErrFrame, MaxFrame)
	}
	return b, nil
}

func (r *Reply) count() int {
	if r.Op == OpList {
		return len(r.Names)
	}
	return len(r.Views)
}

// ParseReply reads a frame into r and reuses its slices. Errors: ErrFrame.
func ParseReply(r *Reply, frame []byte) error {
	if len(frame) < HeadBytes || len(frame) > MaxFrame {
		return fmt.Errorf("reply of %d bytes: %w: %d to %d", len(frame), ErrFrame, HeadBytes, MaxFrame)
	}
	le := binary.LittleEndian
	*r = Reply{
		Op: Op(frame[0]), Status: Status(frame[1]), Seq: le.Uint32(frame[4:]), Object: le.Uint32(frame[8:]),
		Block: le.Uint32(frame[12:]), Claim: le.Uint64(frame[16:]), Index: le.Uint64(frame[24:]),
		Spare: le.Uint64(frame[32:]), SpareBlock: le.Uint32(frame[40:]),
		Views: r.Views[:0], Names: r.Names[:0], values: r.values[:0],
	}
	count := int(le.Uint32(frame[44:]))
	in := reader{frame[HeadBytes:], nil}
	switch {
	case r.Status != OK || r.Op == OpStat:
		r.Text = in.text(len(in.rest))
	case r.Op == OpOpen:
		r.Layout = in.layout()
	case r.Op == OpList:
		for i := 0; i < count && in.err == nil; i++ {
			r.Names = append(r.Names, in.text(int(in.u8())))
		}
	default:
		in.views(r, count)
	}
	return in.end()
}

// tornBit marks the number of a view's tracks where its entry is torn.
const tornBit = 1 << 31

func appendViews(b []byte, views []View) []byte {
	for i := range views {
		v := &views[i]
		b = binary.LittleEndian.AppendUint64(b, v.Index)
		b = binary.LittleEndian.AppendUint32(b, v.Block)
		tracks := uint32(len(v.Values))
		if v.Torn {
			tracks |= tornBit
		}
		b = binary.LittleEndian.AppendUint32(b, tracks)
		b = appendValues(b, v.Values)
	}
	return b
}

func (in *reader) views(r *Reply, n int) {
	for i := 0; i < n && in.err == nil; i++ {
		v := View{Index: in.u64(), Block: in.u32()}
		tracks := in.u32()
		v.Torn = tracks&tornBit != 0
		tracks &^= tornBit
		from := len(r.values)
		r.values = in.values(r.values, int(tracks))
		v.Values = r.values[from:len(r.values):len(r.values)]
		r.Views = append(r.Views, v)
	}
}

func appendLayout(b []byte, l *Layout) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(l.Capacity))
	b = binary.LittleEndian.AppendUint32(b, uint32(l.Blocks))
	b = binary.LittleEndian.AppendUint64(b, uint64(l.Size))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(l.Columns)))
	for _, c := range l.Columns {
		b = binary.LittleEndian.AppendUint64(b, uint64(c.At))
		b = binary.LittleEndian.AppendUint64(b, uint64(c.Stride))
		b = appendTrack(b, c.Track)
	}
	return b
}

func (in *reader) layout() Layout {
	l := Layout{Capacity: int(in.u32()), Blocks: int(in.u32()), Size: int(in.u64())}
	n := int(in.u32())
	for i := 0; i < n && in.err == nil; i++ {
		l.Columns = append(l.Columns, Column{At: int(in.u64()), Stride: int(in.u64()), Track: in.track()})
	}
	return l
}

// Status is the outcome of an operation.
type Status uint8

// Statuses without an error of package wire.
const (
	OK     Status = 0
	Failed Status = 1 // an error without a number, described by the text
)

// sentinels returns the errors that are sent by number, less firstSentinel. New ones go to the end.
func sentinels() [19]error {
	return [...]error{
		ErrNotFound, ErrExists, ErrRemoved, ErrNoEntry, ErrEmpty, ErrFull,
		ErrBusy, ErrSpent, ErrForeign, ErrKind, ErrTooLarge, ErrTracks,
		ErrDType, ErrLimit, ErrClosed, ErrRequest, ErrFrame,
		ErrCanceled, ErrLocked,
	}
}

const firstSentinel = 16

// StatusOf returns the number of an error.
func StatusOf(err error) Status {
	if err == nil {
		return OK
	}
	for i, sentinel := range sentinels() {
		if errors.Is(err, sentinel) {
			return firstSentinel + Status(i)
		}
	}
	return Failed
}

// remote is an error from a server: its text and its sentinel.
type remote struct {
	text     string
	sentinel error
}

func (e *remote) Error() string { return e.text }
func (e *remote) Unwrap() error { return e.sentinel }

// Err returns the error of a reply, which wraps the sentinel of its status, or nil.
func (r *Reply) Err() error {
	if r.Status == OK {
		return nil
	}
	e := &remote{text: r.Text}
	if all := sentinels(); r.Status >= firstSentinel && int(r.Status-firstSentinel) < len(all) {
		e.sentinel = all[r.Status-firstSentinel]
	}
	return e
}
