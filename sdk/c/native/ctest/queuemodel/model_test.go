package queuemodel

import (
	"fmt"

	"github.com/rlhost/rlhost/hostabi"
)

// The model explores every interleaving of the atomic steps of sdk/c/native/queue.c for a few processes on a small
// queue, with the death of any one process between any two of its steps. Messages take a cell each.
// TestModel_AgreesWithC holds the steps against the code.

// Fates of a message.
const (
	unsent    = iota
	published // visible
	delivered // its consumer gave its cell back
	handed    // to lost, by Recover
	vanished  // its producer was killed
)

const (
	maxModelProcs  = 4
	maxModelCells  = 4
	maxModelValues = 8
	perProducer    = 4 // values of producer p are 4p, 4p+1, …
)

// step numbers of a process. Producers and consumers go through the same ones.
const (
	loadIndex = iota // tail or head
	loadFirst        // the cell there
	loadRest         // the next cells
	loadHead         // of a producer that finds no room
	loadVoid         // the cell there
	casFirst         // the claim
	casIndex
	copyOne // the payload of cell i, last first
	storeOne
	help    // move the index over another's claim
	voiding // claim a void cell
	voidIndex
	voidFree
	dead
)

type modelProc struct {
	pc, op, t, n, i uint8
	owner           uint8
	w               word
	took            [2]uint8
	last            [2]uint8 // of a consumer: newest of each producer's messages, plus 1
}

// modelRecovery is the host in Recover.
type modelRecovery struct {
	pc, cell, j uint8
	owner       uint8
	restarted   bool
	w           word
}

const (
	idle = iota
	scan
	passTail
	storeVoid
	passHead
	collect
	storeFree
)

type modelState struct {
	tail, head uint8
	cells      [maxModelCells]word
	values     [maxModelCells]uint8
	fate       [maxModelValues]uint8
	procs      [maxModelProcs]modelProc
	host       modelRecovery
	crashed    uint8 // process that was killed, plus 1
}

// model is one configuration.
type model struct {
	size      uint8
	producers [][]uint8 // batches of each
	consumers []uint8   // the most that each takes at once
	crash     bool
	restart   bool // Recover itself is killed once and repeated
	fault     int  // a deliberate mistake, which must be found
}

// Mistakes to be found.
const (
	noFault        = iota
	voidFirstFirst // Recover makes the first cell of a claim void first
	freeFirstFirst // a consumer gives the first cell of a batch back first
	noHelp         // Recover does not move tail past the claim
	blindRest      // a producer looks at the first cell of its batch only
)

func (m *model) start() modelState {
	var s modelState
	for i := range m.size {
		s.cells[i] = free(uint64(i))
	}
	for i := range m.procs() {
		s.procs[i].owner = uint8(i + 1)
	}
	return s
}

func (m *model) procs() int { return len(m.producers) + len(m.consumers) }

func (m *model) at(s *modelState, pos uint8) *word { return &s.cells[pos&(m.size-1)] }

// extent returns how many cells a claim takes; a cell without one takes itself.
func (m *model) extent(w word) uint8 { return uint8(min(max(w.count(), 1), uint64(m.size))) }

func (m *model) finished(s *modelState, p int) bool {
	return p < len(m.producers) && int(s.procs[p].op) == len(m.producers[p])
}

// successors returns the states after every step that is possible.
func (m *model) successors(s modelState) ([]modelState, error) {
	var next []modelState
	for p := range m.procs() {
		if s.procs[p].pc == dead || m.finished(&s, p) && s.procs[p].pc == loadIndex {
			continue
		}
		after := s
		var err error
		if p < len(m.producers) {
			err = m.stepProducer(&after, p)
		} else {
			err = m.stepConsumer(&after, p)
		}
		if err != nil {
			return nil, err
		}
		next = append(next, after)
		if m.crash && s.crashed == 0 {
			next = append(next, m.kill(s, p))
		}
	}
	if s.host.pc != idle {
		after := s
		if err := m.stepHost(&after); err != nil {
			return nil, err
		}
		next = append(next, after)
		if m.restart && !s.host.restarted {
			again := s
			again.host = modelRecovery{pc: scan, owner: s.host.owner, restarted: true}
			next = append(next, again)
		}
	}
	return next, nil
}

func (m *model) kill(s modelState, p int) modelState {
	s.crashed = uint8(p + 1)
	s.host = modelRecovery{pc: scan, owner: s.procs[p].owner}
	s.procs[p].pc = dead
	return s
}

// batch returns the first value of the producer's current batch and its length.
func (m *model) batch(s *modelState, p int) (first, n uint8) {
	for i, b := range m.producers[p] {
		if i == int(s.procs[p].op) {
			return first + uint8(p*perProducer), b
		}
		first += b
	}
	panic("no batch")
}

func (m *model) stepProducer(s *modelState, p int) error {
	r := &s.procs[p]
	first, n := m.batch(s, p)
	t := r.t
	mine := claim(uint64(r.t), hostabi.RingWriting, uint64(n), uint16(r.owner))
	switch r.pc {
	case loadIndex:
		r.t, r.pc = s.tail, loadFirst
	case loadFirst:
		r.w = *m.at(s, r.t)
		ahead := r.w.ahead(uint64(r.t))
		switch {
		case ahead == 0 && r.w.state() == hostabi.RingFree && n > 1 && m.fault != blindRest:
			r.i, r.pc = n-1, loadRest
		case ahead == 0 && r.w.state() == hostabi.RingFree:
			r.pc = casFirst
		case ahead == 0:
			r.pc = help
		case ahead < 0:
			m.makeRoom(r)
		default:
			m.forget(r)
		}
	case loadRest:
		if pos := r.t + r.i; *m.at(s, pos) != free(uint64(pos)) {
			m.makeRoom(r)
		} else if r.i--; r.i == 0 {
			r.pc = casFirst
		}
	case loadHead:
		r.t, r.pc = s.head, loadVoid
	case loadVoid:
		if m.forget(r); *m.at(s, t) == void(uint64(t)) {
			r.t, r.pc = t, voiding
		}
	case casFirst:
		if *m.at(s, r.t) != r.w {
			m.forget(r)
			break
		}
		*m.at(s, r.t) = mine
		r.pc, r.w = casIndex, 0
	case casIndex:
		if s.tail == r.t {
			s.tail += n
		}
		r.i, r.pc = n-1, copyOne
	case copyOne:
		if *m.at(s, r.t) != mine {
			return fmt.Errorf("producer %d writes at %d without its claim: %x", p, r.t, *m.at(s, r.t))
		}
		s.values[(r.t+r.i)&(m.size-1)] = first + r.i
		r.pc = storeOne
	case storeOne:
		*m.at(s, r.t+r.i) = ready(uint64(r.t + r.i))
		if r.i > 0 {
			r.i, r.pc = r.i-1, copyOne
			break
		}
		for v := first; v < first+n; v++ {
			s.fate[v] = published
		}
		r.op++
		m.forget(r)
	case help:
		if s.tail == r.t {
			s.tail += m.extent(r.w)
		}
		m.forget(r)
	default:
		if m.stepVoid(s, r); r.pc == loadIndex {
			m.makeRoom(r) // there may be more
		}
	}
	return nil
}

// makeRoom goes to the steps that skip the void cells at the head.
func (m *model) makeRoom(r *modelProc) {
	m.forget(r)
	r.pc = loadHead
}

// forget goes back to the first step. Registers are cleared, so that states which differ in nothing else are one.
func (m *model) forget(r *modelProc) {
	r.pc, r.t, r.n, r.i, r.w, r.took = loadIndex, 0, 0, 0, 0, [2]uint8{}
}

func (m *model) stepConsumer(s *modelState, p int) error {
	r := &s.procs[p]
	limit := m.consumers[p-len(m.producers)]
	switch r.pc {
	case loadIndex:
		r.t, r.pc = s.head, loadFirst
	case loadFirst:
		m.lookAtHead(s, r, limit)
	case loadRest:
		if pos := r.t + r.n; *m.at(s, pos) != ready(uint64(pos)) {
			r.pc = casFirst
		} else if r.n++; r.n == limit {
			r.pc = casFirst
		}
	case casFirst:
		if *m.at(s, r.t) != r.w {
			m.forget(r)
			break
		}
		*m.at(s, r.t) = claim(uint64(r.t), hostabi.RingReading, uint64(r.n), uint16(r.owner))
		r.pc, r.w = casIndex, 0
	case casIndex:
		if s.head == r.t {
			s.head += r.n
		}
		r.i, r.pc = r.n-1, copyOne
	case copyOne:
		if *m.at(s, r.t) != claim(uint64(r.t), hostabi.RingReading, uint64(r.n), uint16(r.owner)) {
			return fmt.Errorf("consumer %d reads at %d without its claim: %x", p, r.t, *m.at(s, r.t))
		}
		r.took[r.i], r.pc = s.values[(r.t+r.i)&(m.size-1)], storeOne
	case storeOne:
		i := r.i
		if m.fault == freeFirstFirst {
			i = r.n - 1 - i
		}
		*m.at(s, r.t+i) = free(uint64(r.t + i + m.size))
		if err := s.become(r.took[i], delivered, published); err != nil {
			return err
		}
		if r.i > 0 {
			r.i, r.pc = r.i-1, copyOne
			break
		}
		return m.returnBatch(r, p)
	case help:
		if s.head == r.t {
			s.head += m.extent(r.w)
		}
		m.forget(r)
	default:
		m.stepVoid(s, r)
	}
	return nil
}

func (m *model) lookAtHead(s *modelState, r *modelProc, limit uint8) {
	r.w = *m.at(s, r.t)
	if r.w.ahead(uint64(r.t)) != 0 {
		m.forget(r)
		return
	}
	switch r.w.state() {
	case hostabi.RingReady:
		r.n, r.pc = 1, casFirst
		if limit > 1 {
			r.pc = loadRest
		}
	case hostabi.RingReading, hostabi.RingVoiding:
		r.pc = help
	case hostabi.RingVoid:
		r.pc = voiding
	default:
		m.forget(r)
	}
}

func (m *model) stepVoid(s *modelState, r *modelProc) {
	switch r.pc {
	case voiding:
		if *m.at(s, r.t) != void(uint64(r.t)) {
			m.forget(r)
			return
		}
		*m.at(s, r.t) = claim(uint64(r.t), hostabi.RingVoiding, 1, uint16(r.owner))
		r.pc = voidIndex
	case voidIndex:
		if s.head == r.t {
			s.head++
		}
		r.pc = voidFree
	case voidFree:
		*m.at(s, r.t) = free(uint64(r.t + m.size))
		m.forget(r)
	}
}

// returnBatch is the end of a get: each producer's messages come in order.
func (m *model) returnBatch(r *modelProc, p int) error {
	for _, v := range r.took[:r.n] {
		producer, seq := v/perProducer, v%perProducer
		if seq+1 <= r.last[producer] {
			return fmt.Errorf("consumer %d: message %d of producer %d after %d", p, seq, producer, r.last[producer]-1)
		}
		r.last[producer] = seq + 1
	}
	m.forget(r)
	return nil
}

func (s *modelState) become(v uint8, fate, from uint8) error {
	if s.fate[v] != from {
		return fmt.Errorf("message %d becomes %d but is %d, want %d", v, fate, s.fate[v], from)
	}
	s.fate[v] = fate
	return nil
}

func (m *model) stepHost(s *modelState) error {
	h := &s.host
	pos, n := uint8(h.w.pos()), m.extent(h.w)
	switch h.pc {
	case scan:
		return m.scanCell(s)
	case passTail:
		if s.tail == pos && m.fault != noHelp {
			s.tail += n
		}
		h.j, h.pc = n-1, storeVoid
	case storeVoid:
		j := h.j
		if m.fault == voidFirstFirst {
			j = n - 1 - j
		}
		*m.at(s, pos+j) = void(uint64(pos + j))
		m.nextOrScan(h, scan)
	case passHead:
		if s.head == pos {
			s.head += n
		}
		h.j, h.pc = n-1, collect
	case collect:
		v := s.values[(pos+h.j)&(m.size-1)]
		if h.w.state() == hostabi.RingReading && (h.j == 0 || *m.at(s, pos+h.j) == ready(uint64(pos+h.j))) &&
			!(h.restarted && s.fate[v] == handed) {
			if err := s.become(v, handed, published); err != nil {
				return err
			}
		}
		if m.nextOrScan(h, storeFree); h.pc == storeFree {
			h.j = n - 1
		}
	case storeFree:
		if h.j == 0 || *m.at(s, pos+h.j) == ready(uint64(pos+h.j)) {
			*m.at(s, pos+h.j) = free(uint64(pos + h.j + m.size))
		}
		m.nextOrScan(h, scan)
	}
	return nil
}

// nextOrScan counts j down and then moves to another step; to the next cell if that is scan.
func (m *model) nextOrScan(h *modelRecovery, then uint8) {
	if h.j > 0 {
		h.j--
		return
	}
	if h.pc = then; then == scan {
		h.cell, h.w = h.cell+1, 0
	}
}

func (m *model) scanCell(s *modelState) error {
	h := &s.host
	if h.cell == m.size {
		m.startAgain(s)
		return nil
	}
	w := s.cells[h.cell]
	switch state := w.state(); {
	case w.owner() != uint16(h.owner):
		h.cell++
	case state == hostabi.RingWriting:
		h.w, h.pc = w, passTail
	case state == hostabi.RingReading, state == hostabi.RingVoiding:
		h.w, h.pc = w, passHead
	default:
		h.cell++
	}
	return nil
}

// startAgain starts the killed process again as another owner. A producer continues after the batch that it was
// killed in, which vanished unless it was published.
func (m *model) startAgain(s *modelState) {
	p := int(s.crashed - 1)
	r := &s.procs[p]
	s.host = modelRecovery{}
	r.owner += maxModelProcs
	m.forget(r)
	if p >= len(m.producers) || m.finished(s, p) {
		return
	}
	first, n := m.batch(s, p)
	for v := first; v < first+n; v++ {
		s.fate[v] = vanished
	}
	r.op++
}
