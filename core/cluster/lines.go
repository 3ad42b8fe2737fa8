package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/relay"
	"github.com/rlhost/rlhost/hostabi"
)

// Limits of lines.
const (
	lineFrame  = 256 << 10 // bytes of a message in one frame
	lineHead   = 12
	lineCredit = 4 << 20 // bytes of one line that its receiver has not taken
	linesBlock = 512 << 10
	linesQueue = 32 // blocks under way, each way
	linesMost  = 1024
	linesWait  = 200 * time.Millisecond
)

// ErrLines is wrapped where lines are over, because the other end or the way to it is.
var ErrLines = errors.New("the way to the other machine is gone")

// kinds of frames. A frame has its kind, the line's number and its length before its bytes.
const (
	frameOpen   = 1 + iota // the service that is meant
	frameMore              // a part of a message
	frameEnd               // its last part
	frameCredit            // so many bytes have been taken
	frameClose
)

// LinesOptions are what Lines are made with.
type LinesOptions struct {
	Key    string // of the joined host
	Number uint64 // counts the Lines of that host, so that none hears what was meant for an earlier one

	Own, Other uint64 // incarnations of this end and of the other

	// Accept serves a line that the host has opened, on a goroutine of its own, and closes it. It is the owner's; a host has none.
	Accept func(service string, l *Line)

	Largest int // bytes of a message at most
}

// Lines are any number of connections between a joined host and the owner, over one stream of blocks each way: what is sent on a line arrives once
// and in its order, also where the network is cut meanwhile, as long as both ends live. Methods may be called from any goroutine.
type Lines struct {
	o       LinesOptions
	out     *Outgoing
	in      *Incoming
	serving sync.WaitGroup
	closing sync.Once

	mu     sync.Mutex
	frames [][]byte          // that no block has taken, the oldest first
	bodies map[uint64][]byte // of blocks under way
	last   uint64            // number of a block
	lines  map[uint32]*Line
	opened uint32
	over   error
}

// Line is one connection.
type Line struct {
	of *Lines
	id uint32

	// All below belong to mu of Lines.
	ready   sync.Cond
	inbox   []arrived
	partial arrived
	waits   int // bytes that have come and for which no credit is due
	owed    int // bytes that were taken, for which credit is due
	credit  int // bytes that may be sent
	ended   bool
	closed  bool
}

// arrived is a message, or what has come of one, and for how many bytes credit is due once it is taken.
type arrived struct {
	message []byte
	cost    int
}

// Lines begins one end. The other one is to begin with the same key and number.
func (l *Link) Lines(o LinesOptions) (*Lines, error) {
	s := &Lines{o: o, bodies: map[uint64][]byte{}, lines: map[uint32]*Line{}}
	subject := func(end string) (up, down string) {
		verb := "lines." + strconv.FormatUint(o.Number, 10) + "." + end
		return SubjectUp(o.Key, verb), SubjectDown(o.Key, verb)
	}
	to, toAnswers := subject("up")
	fromAnswers, from := subject("down")
	if o.Accept != nil {
		to, toAnswers, from, fromAnswers = from, fromAnswers, to, toAnswers
	}
	if err := s.begin(l, to, toAnswers, from, fromAnswers); err != nil {
		if s.in != nil {
			s.in.Close()
		}
		return nil, err
	}
	return s, nil
}

func (s *Lines) begin(l *Link, to, toAnswers, from, fromAnswers string) (err error) {
	s.mu.Lock() // what comes before both streams are there waits
	defer s.mu.Unlock()
	s.in, err = l.Receives(IncomingOptions{
		From: from, Answers: fromAnswers, Incarnation: s.o.Own, Window: linesQueue, Largest: linesBlock + lineFrame + 2*lineHead,
		Commit: s.take, Lost: func(relay.Count) {},
	})
	if err != nil {
		return err
	}
	s.out, err = l.Sends(OutgoingOptions{
		To: to, Answers: toAnswers, Incarnation: s.o.Own, Receiver: s.o.Other, Queue: linesQueue, Timeout: linesWait, Body: s.body, Ended: s.ended,
	})
	s.over = err
	return err
}

// Open opens a line to a service of the owner.
func (s *Lines) Open(service string) (*Line, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over != nil:
		return nil, s.over
	case len(s.lines) >= linesMost:
		return nil, fmt.Errorf("%d connections are open to the run, which is the most of one machine", linesMost)
	}
	s.opened++
	line := s.add(s.opened)
	s.push(frameOpen, line.id, []byte(service))
	return line, nil
}

// Over returns why no line can be opened any more, nil while one can.
func (s *Lines) Over() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// Close ends all lines, and waits until Accept has returned for each.
func (s *Lines) Close() {
	s.end(ErrLines)
	s.closing.Do(func() {
		s.out.Close()
		s.in.Close()
	})
	s.serving.Wait()
}

func (s *Lines) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return
	}
	s.over = why
	for _, l := range s.lines {
		l.ready.Broadcast()
	}
	s.frames = nil
}

func (s *Lines) add(id uint32) *Line {
	l := &Line{of: s, id: id, credit: lineCredit}
	l.ready.L = &s.mu
	s.lines[id] = l
	return l
}

// push sends a frame, with mu held.
func (s *Lines) push(kind byte, id uint32, payload []byte) {
	if s.over != nil {
		return
	}
	frame := append(make([]byte, 0, lineHead+len(payload)), kind, 0, 0, 0)
	frame = binary.LittleEndian.AppendUint32(frame, id)
	frame = binary.LittleEndian.AppendUint32(frame, uint32(len(payload)))
	s.frames = append(s.frames, append(frame, payload...))
	s.drain()
}

// drain makes blocks of frames while there is room for blocks, with mu held.
func (s *Lines) drain() {
	for s.over == nil && len(s.frames) > 0 {
		size, n := 0, 0
		for ; n < len(s.frames) && (n == 0 || size+len(s.frames[n]) <= linesBlock); n++ {
			size += len(s.frames[n])
		}
		if !s.out.Put(relay.Block{Handle: hostabi.Handle(s.last + 1)}) {
			return
		}
		s.last++
		body := s.frames[0]
		for _, f := range s.frames[1:n] {
			body = append(body, f...)
		}
		s.bodies[s.last] = body
		s.frames = append(s.frames[:0], s.frames[n:]...)
	}
}

func (s *Lines) body(to []byte, b relay.Block) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(to, s.bodies[uint64(b.Handle)]...)
}

// ended forgets blocks that have arrived. Where one is in doubt, the other end is another life of it.
func (s *Lines) ended(blocks []relay.Block, committed bool) {
	if !committed {
		s.end(ErrLines)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range blocks {
		delete(s.bodies, uint64(b.Handle))
	}
	s.drain()
}

// take takes a block. What waits in lines is bounded by their credits, so there is room for the next block at once.
func (s *Lines) take(_ uint64, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(body) >= lineHead && s.over == nil {
		kind, id, size := body[0], binary.LittleEndian.Uint32(body[4:]), int(binary.LittleEndian.Uint32(body[8:]))
		if size > len(body)-lineHead {
			break
		}
		s.frame(kind, id, body[lineHead:lineHead+size])
		body = body[lineHead+size:]
	}
	s.in.Freed(1)
}

// frame takes a frame, with mu held.
func (s *Lines) frame(kind byte, id uint32, payload []byte) {
	if kind == frameOpen {
		s.accept(id, string(payload))
		return
	}
	l := s.lines[id]
	if l == nil {
		return // closed here
	}
	switch kind {
	case frameMore, frameEnd:
		l.part(payload, kind == frameEnd)
	case frameCredit:
		if len(payload) == 4 {
			l.credit += int(binary.LittleEndian.Uint32(payload))
		}
	case frameClose:
		l.ended = true
	}
	l.ready.Broadcast()
}

// accept serves a line, with mu held.
func (s *Lines) accept(id uint32, service string) {
	switch {
	case s.o.Accept == nil, s.lines[id] != nil:
		return
	case len(s.lines) >= linesMost:
		s.push(frameClose, id, nil)
		return
	}
	line := s.add(id)
	s.serving.Go(func() { s.o.Accept(service, line) })
}

// part takes a part of a message, with mu held. An end that sends more than it may has its line closed.
func (l *Line) part(payload []byte, last bool) {
	cost := lineHead + len(payload)
	if l.waits+cost > lineCredit || len(l.partial.message)+len(payload) > l.of.o.Largest {
		l.close()
		l.ended = true
		return
	}
	l.partial.message = append(l.partial.message, payload...)
	l.partial.cost += cost
	l.waits += cost
	if last {
		l.inbox = append(l.inbox, l.partial)
		l.partial = arrived{}
		return
	}
	l.givePartial()
}

// givePartial gives credit for what has come of a message that nothing is before: it may be larger than all credit.
func (l *Line) givePartial() {
	if len(l.inbox) == 0 {
		l.give(l.partial.cost)
		l.partial.cost = 0
	}
}

// give says that bytes have been taken, with mu held, once they are worth a frame.
func (l *Line) give(cost int) {
	l.waits -= cost
	l.owed += cost
	if l.owed >= lineCredit/4 && !l.closed {
		l.of.push(frameCredit, l.id, binary.LittleEndian.AppendUint32(nil, uint32(l.owed)))
		l.owed = 0
	}
}

// Send sends a message, which stays the caller's. It waits while the other end has not taken much of what was sent before.
func (l *Line) Send(message []byte) error {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	for {
		part := message[:min(len(message), lineFrame)]
		for l.credit < lineHead+len(part) && l.gone() == nil {
			l.ready.Wait()
		}
		if err := l.gone(); err != nil {
			return err
		}
		l.credit -= lineHead + len(part)
		message = message[len(part):]
		if len(message) == 0 {
			l.of.push(frameEnd, l.id, part)
			return nil
		}
		l.of.push(frameMore, l.id, part)
	}
}

// gone returns why nothing can be sent, with mu held.
func (l *Line) gone() error {
	switch {
	case l.of.over != nil:
		return l.of.over
	case l.ended, l.closed:
		return io.ErrClosedPipe
	}
	return nil
}

// Receive returns the next message. io.EOF: one of the ends has closed the line.
func (l *Line) Receive() ([]byte, error) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	for len(l.inbox) == 0 && l.gone() == nil {
		l.ready.Wait()
	}
	switch {
	case l.of.over != nil:
		return nil, l.of.over
	case l.closed, len(l.inbox) == 0:
		return nil, io.EOF
	}
	next := l.inbox[0]
	l.inbox = l.inbox[1:]
	l.give(next.cost)
	l.givePartial()
	return next.message, nil
}

// Close ends the line at both ends. What was sent before arrives.
func (l *Line) Close() error {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.close()
	return nil
}

func (l *Line) close() {
	if l.closed {
		return
	}
	l.closed = true
	delete(l.of.lines, l.id)
	l.of.push(frameClose, l.id, nil)
	l.ready.Broadcast()
}
