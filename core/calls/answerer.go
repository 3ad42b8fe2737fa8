package calls

import "sync"

// Answerer handles the calls of one caller after another. Its methods may be called from any goroutine.
type Answerer struct {
	send   func(frame []byte)
	handle func(call []byte) []byte

	running sync.WaitGroup
	mu      sync.Mutex
	closed  bool
	session uint64
	number  uint64 // of the newest call
	parts   uint32 // of it; 0 before its first
	next    uint32 // part of it
	call    []byte
	busy    bool // handle runs
	done    bool // reply is that of the newest call
	reply   []byte
}

// NewAnswerer returns an answerer. handle is called on a goroutine of its own, never twice at once, with bytes that are its own.
func NewAnswerer(send func(frame []byte), handle func(call []byte) []byte) *Answerer {
	return &Answerer{send: send, handle: handle}
}

// Hear takes a frame that has arrived. It keeps nothing of it.
func (a *Answerer) Hear(frame []byte) {
	h, body, ok := parse(frame)
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.busy || h.session < a.session { // a caller repeats what it waits for
		return
	}
	if h.session > a.session {
		if h.kind != kindCall || h.number != 1 || h.part != 0 {
			a.send(head{h.session, h.number, kindUnknown, h.part, h.parts}.frame(nil))
			return
		}
		a.session, a.number = h.session, 0
	}
	switch h.kind {
	case kindCall:
		a.take(h, body)
	case kindWant:
		if a.done && h.number == a.number && h.part < partsOf(len(a.reply)) {
			a.answer(h.part)
		}
	}
}

// take takes a part of a call, with mu held.
func (a *Answerer) take(h head, body []byte) {
	if h.number == a.number+1 && h.part == 0 {
		a.number, a.parts, a.next, a.call, a.done, a.reply = h.number, h.parts, 0, nil, false, nil
	}
	switch {
	case h.number != a.number || h.parts != a.parts:
		return
	case a.done:
		if h.part == h.parts-1 {
			a.answer(0)
		}
		return
	case h.part == a.next:
		a.call = append(a.call, body...)
		a.next++
	case h.part > a.next:
		return
	}
	if a.next < a.parts {
		a.send(head{h.session, h.number, kindGot, h.part, h.parts}.frame(nil))
		return
	}
	call := a.call
	a.busy, a.call = true, nil
	a.running.Go(func() { a.run(call) })
}

func (a *Answerer) run(call []byte) {
	reply := a.handle(call)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy, a.done, a.reply = false, true, reply
	a.answer(0)
}

// answer sends a part of the reply, with mu held.
func (a *Answerer) answer(part uint32) {
	a.send(head{a.session, a.number, kindReply, part, partsOf(len(a.reply))}.frame(partOf(a.reply, part)))
}

// Close waits for the call under way, and takes no other.
func (a *Answerer) Close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.running.Wait()
}
