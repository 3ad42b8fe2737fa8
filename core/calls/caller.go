package calls

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrUnknown is returned where the other program does not know the calls before: it has been started again.
var ErrUnknown = errors.New("it knows nothing of the calls before")

// ErrLarge is wrapped by the error of a call that has too many bytes.
var ErrLarge = errors.New("too many bytes for a call")

// Waits before something is sent again: the first, and the longest.
const (
	again    = 200 * time.Millisecond
	atLatest = time.Second
)

// Caller makes calls, one at a time. It belongs to one goroutine, but for Hear.
type Caller struct {
	send    func(frame []byte)
	session uint64
	number  uint64
	heard   chan []byte
}

// NewCaller returns a caller whose session is above that of each caller before it that the same Answerer has heard.
func NewCaller(session uint64, send func(frame []byte)) *Caller {
	return &Caller{send: send, session: session, heard: make(chan []byte, 8)}
}

// Hear takes a frame that has arrived, and keeps it. It does not block: what there is no room for comes again. Any goroutine.
func (c *Caller) Hear(frame []byte) {
	select {
	case c.heard <- frame:
	default:
	}
}

// Call has the other program handle data once and returns its reply. After an error, which may be that of ctx, nobody knows whether it was
// handled, and the caller is of no more use.
func (c *Caller) Call(ctx context.Context, data []byte) (reply []byte, err error) {
	if len(data) > MostBytes {
		return nil, fmt.Errorf("%w: %d, at most %d", ErrLarge, len(data), MostBytes)
	}
	c.number++
	parts := partsOf(len(data))
	var answer head
	for part := range parts {
		h := head{c.session, c.number, kindCall, part, parts}
		want := kindGot
		if part == parts-1 {
			want, part = kindReply, 0
		}
		if answer, reply, err = c.exchange(ctx, h.frame(partOf(data, h.part)), want, part); err != nil {
			return nil, err
		}
	}
	whole := append([]byte(nil), reply...)
	for part := uint32(1); part < answer.parts; part++ {
		h := head{c.session, c.number, kindWant, part, answer.parts}
		if _, reply, err = c.exchange(ctx, h.frame(nil), kindReply, part); err != nil {
			return nil, err
		}
		whole = append(whole, reply...)
	}
	return whole, nil
}

// exchange sends a frame until its answer is there.
func (c *Caller) exchange(ctx context.Context, frame []byte, want kind, part uint32) (h head, body []byte, err error) {
	wait := again
	timer := time.NewTimer(wait)
	defer timer.Stop()
	c.send(frame)
	for {
		select {
		case <-ctx.Done():
			return head{}, nil, context.Cause(ctx)
		case <-timer.C:
			c.send(frame)
			wait = min(2*wait, atLatest)
			timer.Reset(wait)
		case f := <-c.heard:
			h, body, ok := parse(f)
			switch {
			case !ok || h.session != c.session || h.number != c.number: // of an earlier call
			case h.kind == kindUnknown:
				return head{}, nil, ErrUnknown
			case h.kind == want && h.part == part:
				return h, body, nil
			}
		}
	}
}
