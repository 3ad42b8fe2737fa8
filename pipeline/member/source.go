package member

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/cluster"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/relay"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
)

// source stands at the owner for an instance on a joined host, and emits what that sends.
type source struct {
	stand
	away *Away
	name string
	runs bool // environments

	opening sync.Mutex // held while in is made or closed

	// mu is taken within the functions that in calls: no method of in but Freed is called with it held.
	mu      sync.Mutex
	h       *component.Host
	of      string // key of the host that sends
	share   uint64 // that in is of
	in      *cluster.Incoming
	arena   *arena.Arena
	arrived []hostabi.Message // committed and not emitted; the claims on their blocks are this component's
	stored  uint64            // blocks of in that were put into the arena
	freed   uint64            // of them, free again
	told    uint64            // of freed, in what the host was told last
	silent  int               // blocks that are free again and in has not heard of
	telling bool              // tellAll is posted
	unused  []uint32          // blocks of the arena that are free, and known to be: one that is taken before would give one credit for two
	takenBy map[uint32]*cluster.Incoming
	stopped bool
	rested  func() // what Pause was given, until it has been called

	lost uint64 // env steps; guarded by mu
}

var _ component.Component = (*source)(nil)

// Start binds the slots: new versions of policies go to the host, all else is for nobody here.
func (s *source) Start(h *component.Host) error {
	s.h = h
	s.bind(h, func(p *component.Port) func(*hostabi.Message) {
		if component.PayloadOf(p.Payload).Publishes {
			return func(m *hostabi.Message) { s.away.publish(h, m) }
		}
		return nil
	})
	s.away.started(s)
	return nil
}

// open makes an arena for the blocks of the instance, and begins to take them. A host that asks again gets the same answer.
func (s *source) open(link *cluster.Link, key string, own uint64, q *streamRequest) (streamReply, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.sends(q.Share) {
		return streamReply{Incarnation: own}, nil
	}
	s.closeFormer()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return streamReply{}, errors.New("the run is over")
	}
	if err := s.makeArena(q); err != nil {
		return streamReply{}, err
	}
	in, err := link.Receives(cluster.IncomingOptions{
		From: cluster.SubjectUp(key, subjectOf(verbBlocks, q)), Answers: cluster.SubjectDown(key, subjectOf(verbAnswers, q)),
		Incarnation: own, Window: s.arena.Blocks(), Held: len(s.takenBy), Flight: max(1, flightBytes/s.away.count()/q.BlockBytes),
		Largest: frameHead + frameMost*messageSize + q.BlockBytes, Commit: s.commit, Lost: s.lose,
	})
	if err != nil {
		return streamReply{}, err
	}
	s.in, s.of, s.share, s.stored, s.freed, s.told, s.silent = in, key, q.Share, 0, 0, 0, 0
	return streamReply{Incarnation: own}, nil
}

// sends reports whether the host of a share sends already.
func (s *source) sends(share uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.in != nil && s.share == share
}

// leave ends what the host of a share sends, if it does.
func (s *source) leave(share uint64) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.sends(share) {
		s.closeFormer()
	}
}

// closeFormer ends what a host sends, and counts the env steps that it has not brought, with opening held.
func (s *source) closeFormer() {
	s.mu.Lock()
	in, stopped := s.in, s.stopped
	s.mu.Unlock()
	if in == nil || stopped {
		return
	}
	in.Close()
	missing := in.Missing().Steps
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in = nil
	s.lost += missing
}

func (s *source) lose(c relay.Count) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost += c.Steps
}

// makeArena makes the arena, unless there is one since another host had the instance.
func (s *source) makeArena(q *streamRequest) error {
	if q.Blocks < 1 || q.Blocks > maxBlocks {
		return fmt.Errorf("%d blocks, want 1 to %d", q.Blocks, maxBlocks)
	}
	if q.BlockBytes > maxBlockBytes {
		return fmt.Errorf("blocks have %d bytes, and at most %d go to another host: lower envs or horizon", q.BlockBytes, maxBlockBytes)
	}
	schema, err := trajectory.DecodeSchema(q.Schema, q.BlockBytes)
	if err != nil {
		return err
	}
	if s.arena != nil {
		if s.arena.Blocks() != q.Blocks+spare || s.arena.BlockBytes() != q.BlockBytes || !sameLayout(arena.Document(s.arena.Schema()), q.Schema) {
			return errors.New("its blocks are others than on the host that had the instance before: is it the same version of rlhost?")
		}
		return nil
	}
	a, err := s.h.Arenas.Add(arena.Config{Name: s.h.Name + ".away", Blocks: q.Blocks + spare, BlockBytes: q.BlockBytes, Schema: schema})
	if err != nil {
		return err
	}
	s.h.Own(a)
	for block := range uint32(a.Blocks()) {
		s.unused = append(s.unused, block)
		a.OnFree(block, func(block uint32) { s.h.Receiver.Control(loop.Func(s.onFree), hostabi.Message{T: block}) })
	}
	s.arena, s.takenBy = a, map[uint32]*cluster.Incoming{}
	return nil
}

// sameLayout reports whether blocks of two schemas have the same columns at the same places, whatever environments they were laid out for.
func sameLayout(a, b *native.Schema) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Spec, y.Spec = nil, nil
	return reflect.DeepEqual(x, y)
}

// onFree tells the host that a block is free, after all weights that were published before.
func (s *source) onFree(m *hostabi.Message) { s.h.Receiver.Post(s.tellFree, *m) }

// tellFree notes that a block is free. What becomes free with it is told with it.
func (s *source) tellFree(m *hostabi.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.takenBy[m.T]; of != nil && of == s.in {
		s.freed++
	}
	delete(s.takenBy, m.T)
	s.unused = append(s.unused, m.T)
	s.silent++ // a block of a host that had the instance before has taken room too
	if !s.telling {
		s.telling = true
		s.h.Receiver.Post(s.tellAll, hostabi.Message{})
	}
}

// tellAll tells the host of all blocks that are free, unless the run's own host has more than half of them: then it hears of several at once, has
// work for longer, and wakes less often. The learner has enough until then: a dataset that needs more takes the rest of them.
func (s *source) tellAll(*hostabi.Message) {
	s.mu.Lock()
	s.telling = false
	enough := s.in != nil && s.stored-s.freed > uint64(s.arena.Blocks()-spare)/2
	s.mu.Unlock()
	if !enough {
		s.tellFreed()
	}
}

// tellFreed tells the host of all blocks that are free, unless it knows.
func (s *source) tellFreed() {
	s.mu.Lock()
	if s.in != nil && s.silent > 0 {
		s.in.Freed(s.silent)
	}
	s.silent = 0
	key, news := s.of, s.in != nil && s.freed > s.told
	s.mu.Unlock()
	if news {
		s.away.tell(key)
	}
}

// waits reports whether the host of the instance can fill no block until it hears of one that is free.
func (s *source) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.in != nil && s.stored-s.told >= uint64(s.arena.Blocks()-spare)
}

// commit takes what the host has sent.
func (s *source) commit(_ uint64, body []byte) {
	messages, block, took, err := parseFrame(body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	var handle hostabi.Handle
	if err == nil && block != nil {
		handle, err = s.store(block)
	}
	if handle == 0 {
		s.in.Freed(1) // it has taken no block
	}
	if err != nil {
		s.h.Log.Error("a host sends what cannot be used", "component", s.name, "why", err)
		return
	}
	last := &messages[len(messages)-1]
	if last.Handle = handle; handle != 0 {
		s.h.Trace.Wrote(s.name, int(last.Split), handle, s.h.Trace.Now().Add(-took))
	}
	for _, m := range messages {
		s.arrived = append(s.arrived, m)
		s.h.Receiver.Post(s.emit, hostabi.Message{})
	}
}

// store copies a block into the arena. The claim on it is the caller's.
func (s *source) store(block []byte) (hostabi.Handle, error) {
	if len(block) != s.arena.BlockBytes() {
		return 0, fmt.Errorf("a block of %d bytes, want %d", len(block), s.arena.BlockBytes())
	}
	if len(s.unused) == 0 {
		return 0, arena.ErrExhausted
	}
	loan, err := s.arena.LoanBlock(s.unused[0])
	if err != nil {
		return 0, err
	}
	s.unused = s.unused[1:]
	copy(loan.Bytes(), block)
	h, err := loan.Commit()
	if err == nil {
		s.takenBy[h.Block()] = s.in
		s.stored++
	}
	return h, err
}

// emit emits the first message that has arrived. It runs on the component's loop.
func (s *source) emit(*hostabi.Message) {
	s.mu.Lock()
	if len(s.arrived) == 0 {
		s.mu.Unlock()
		return
	}
	m := s.arrived[0]
	s.arrived = append(s.arrived[:0], s.arrived[1:]...)
	s.mu.Unlock()
	err := s.send(m)
	if m.Handle != 0 {
		err = errors.Join(err, s.arena.Release(m.Handle))
	}
	if err != nil {
		s.h.Fail(err)
	}
}

func (s *source) send(m hostabi.Message) error {
	signals := s.Manifest().Signals
	if int(m.Signal) >= len(signals) {
		return fmt.Errorf("its host sends signal %d, and there are %d", m.Signal, len(signals))
	}
	return s.h.Signal(signals[m.Signal].Name).Emit(m)
}

// lostSteps returns the env steps that were made and will not come; isHere reports whether a host's lease lasts.
func (s *source) lostSteps(isHere func(key string) bool) uint64 {
	s.mu.Lock()
	in, of, n := s.in, s.of, s.lost
	s.mu.Unlock()
	if in != nil && !isHere(of) {
		n += in.Missing().Steps
	}
	return n
}

// expire says that the lease of the host is over.
func (s *source) expire(key string) {
	s.mu.Lock()
	in := s.in
	if s.of != key {
		in = nil
	}
	s.mu.Unlock()
	if in != nil {
		in.Expire()
	}
}

// Stop ends the receiving and releases what was not emitted.
func (s *source) Stop() error {
	if s.h == nil {
		return nil // it has not been started
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	s.mu.Lock()
	in := s.in
	if s.stopped {
		in = nil
	}
	s.stopped = true
	s.mu.Unlock()
	if in != nil {
		in.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, m := range s.arrived {
		if m.Handle != 0 {
			errs = append(errs, s.arena.Release(m.Handle))
		}
	}
	s.arrived = nil
	return errors.Join(append(errs, s.away.stopped())...)
}

var _ component.Pauser = (*source)(nil)

// Pause pauses the instance on its host. rested is called once all that it has sent has been emitted here.
func (s *source) Pause(rested func()) {
	s.mu.Lock()
	s.rested = rested
	s.mu.Unlock()
	s.away.pause(s, true)
}

// Resume makes the instance run on.
func (s *source) Resume() {
	s.mu.Lock()
	s.rested = nil
	s.mu.Unlock()
	s.away.pause(s, false)
}

// Waiting returns nothing: an instance elsewhere keeps the messages that it has not begun with.
func (s *source) Waiting() []component.Waiting { return nil }

// rests calls what Pause was given, behind all that has arrived.
func (s *source) rests() {
	s.h.Receiver.Post(func(*hostabi.Message) {
		s.mu.Lock()
		rested := s.rested
		s.rested = nil
		s.mu.Unlock()
		if rested != nil {
			rested()
		}
	}, hostabi.Message{})
}

// pausing is an instance that is to be paused.
type pausing struct {
	number uint64 // of the rest that begins with it
	s      *source
}

// pause tells the host of an instance whether it is to be paused.
func (a *Away) pause(s *source, paused bool) {
	a.mu.Lock()
	a.rests++
	if paused {
		a.paused[s.name] = pausing{a.rests, s}
	} else if a.paused[s.name].s == s {
		delete(a.paused, s.name)
	}
	of := a.places.of(s.name)
	a.mu.Unlock()
	if of != nil {
		a.tell(of.key)
	}
	if paused {
		a.restWithout()
	}
}

// restOf is what the instances of a host are to do, with mu held.
func (a *Away) restOf(key string) rest {
	r := rest{Number: a.rests}
	for name := range a.paused {
		if of := a.places.of(name); of != nil && of.key == key {
			r.Instances = append(r.Instances, name)
		}
	}
	slices.Sort(r.Instances)
	return r
}

// answerRest takes that the instances of a share are paused as they were to be.
func (a *Away) answerRest(_ string, data []byte) []byte {
	var q restReply
	if err := json.Unmarshal(data, &q); err != nil {
		return nil
	}
	a.mu.Lock()
	var rested []*source
	for name, p := range a.paused {
		if of := a.places.of(name); p.number <= q.Number && of != nil && of.Number == q.Share {
			rested = append(rested, p.s)
		}
	}
	a.mu.Unlock()
	for _, s := range rested {
		s.rests()
	}
	return []byte("{}")
}

// restWithout lets instances rest that no host has, or one that is lost.
func (a *Away) restWithout() {
	var rested []*source
	a.mu.Lock()
	for name, p := range a.paused {
		here := false
		if of := a.places.of(name); of != nil {
			_, here = a.places.here[of.key]
		}
		if !here {
			rested = append(rested, p.s)
		}
	}
	a.mu.Unlock()
	for _, s := range rested {
		s.rests()
	}
}
