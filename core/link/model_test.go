package link

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/hostabi"
)

// model drives a link at random, kills the plugin now and then, and knows the right outcome of each message.
type model struct {
	*pair
	r       *rand.Rand
	o       options
	next    uint32                // T of the next message of the host
	sent    []uint32              // by the host, in order
	handled map[uint32]int        // how often the plugin's slots had each
	told    uint32                // messages of the plugin's present life
	heard   uint32                // answers that the host got
	loans   map[uint32]arena.Loan // of requests that are not answered, by T
	blocked bool                  // the host's component is paused by others
}

func TestLink_LosesNothingWhateverHappens(t *testing.T) { losesNothing(t, false) }

// A link needs no more of a transport than its methods.
func TestLink_LosesNothingOverSockets(t *testing.T) {
	losesNothing(t, true)
	for _, pump := range []bool{false, true} {
		runOver(t, true, pump, true).trips(200) // with loops that sleep
	}
}

func losesNothing(t *testing.T, sockets bool) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for run := range uint64(30) {
		m := &model{r: rand.New(rand.NewPCG(seed, run)), handled: map[uint32]int{}, loans: map[uint32]arena.Loan{}}
		m.o = options{sockets: sockets, cells: 4 << m.r.IntN(4), window: []int{0, 1, 6}[m.r.IntN(3)],
			limits: map[int]int{0: m.r.IntN(4), 1: m.r.IntN(9)}}
		m.pair = newPair(t, m.o)
		m.wire()
		for range 600 {
			m.step(t)
		}
		m.check(t)
		if t.Failed() {
			t.Fatalf("run %d with %+v", run, m.o)
		}
	}
}

// wire makes the plugin answer requests and the host end them.
func (m *model) wire() {
	m.told, m.heard = 0, 0
	plugin := m.plugin
	plugin.onMessage = func(_ int, q *hostabi.Message) error {
		m.handled[q.T]++
		if q.Kind == 1 && m.r.IntN(4) > 0 { // a request, which it answers at once
			return plugin.Send(1, q)
		}
		if q.Kind == 2 && m.free(q.Handle) {
			m.t.Errorf("the block of message %d is free", q.T)
		} else if q.Kind == 2 {
			m.release(q.Handle)
		}
		return nil
	}
	m.host.onMessage = func(port int, q *hostabi.Message) error {
		if port == 0 {
			if q.T != m.heard {
				m.t.Errorf("the host got %d, want %d", q.T, m.heard)
			}
			m.heard++
			return nil
		}
		loan, ok := m.loans[q.T]
		if !ok {
			return nil // answered twice, by two lives
		}
		delete(m.loans, q.T)
		return loan.Abort()
	}
}

// step does one thing at random.
func (m *model) step(t *testing.T) {
	switch m.r.IntN(12) {
	case 0, 1:
		m.sendPlain(t)
	case 2:
		m.sendBlock(t)
	case 3:
		m.sendAsk(t)
	case 4:
		m.plugin.send(t, 0, hostabi.Message{T: m.told})
		m.told++
	case 5, 6:
		m.plugin.Poll()
	case 7:
		m.plugin.turn()
	case 8:
		m.host.Poll()
	case 9:
		m.host.turn()
		m.host.tell()
	case 10:
		m.plugin.tell()
	case 11:
		m.rare(t)
	}
	if m.plugin.fault != nil || m.host.fault != nil {
		t.Fatalf("faults: %v, %v", m.plugin.fault, m.host.fault)
	}
}

func (m *model) rare(t *testing.T) {
	switch m.r.IntN(8) {
	case 0:
		m.kill()
	case 1, 2:
		if m.blocked {
			m.host.receiver.Resume()
		} else {
			m.host.receiver.Pause()
		}
		m.blocked = !m.blocked
	case 3:
		m.host.Post(hostabi.Message{Slot: hostabi.LinkCredit})
		m.plugin.Post(hostabi.Message{Slot: hostabi.LinkCredit})
	default:
		m.settle()
	}
}

func (m *model) number(t *testing.T, q hostabi.Message) {
	q.T = m.next
	m.next++
	m.sent = append(m.sent, q.T)
	m.host.send(t, m.r.IntN(2), q)
}

func (m *model) sendPlain(t *testing.T) { m.number(t, hostabi.Message{}) }

func (m *model) sendBlock(t *testing.T) {
	if m.arenaFull() {
		return
	}
	h := m.commit()
	m.number(t, hostabi.Message{Kind: 2, Handle: h})
	m.release(h)
}

func (m *model) sendAsk(t *testing.T) {
	if m.arenaFull() {
		return
	}
	loan, err := m.blocks.Loan()
	if err != nil {
		t.Fatal(err)
	}
	m.loans[m.next] = loan
	m.number(t, hostabi.Message{Kind: 1, Handle: loan.Handle()})
}

func (m *model) arenaFull() bool {
	loan, err := m.blocks.Loan()
	if err != nil {
		return true
	}
	return loan.Abort() != nil
}

// kill ends the plugin at once and gives its work to another one.
func (m *model) kill() {
	m.host.Stop()
	if err := m.host.Drain(); err != nil {
		m.t.Fatal(err)
	}
	again := m.host.Unfinished()
	numbers := make([]uint32, len(again))
	for i, u := range again {
		numbers[i] = u.Message.T
	}
	if !slices.IsSorted(numbers) || len(slices.Compact(numbers)) != len(again) {
		m.t.Errorf("unfinished %v", numbers)
	}
	for i := range again {
		if n := m.handled[again[i].Message.T]; n == 0 && again[i].Message.T >= m.next {
			m.t.Errorf("unfinished %v was never sent", again[i])
		}
	}
	paused := m.blocked
	m.plugin.Stop()
	for _, u := range m.plugin.Unfinished() {
		if u.Claimed {
			m.release(u.Message.Handle)
		}
	}
	m.connect(m.withPorts())
	if paused {
		m.host.receiver.Pause()
	}
	m.wire()
	m.host.Resend(again)
}

func (m *model) withPorts() options {
	o := m.o
	o.sends, o.receives = []Port{{}, {}}, []Port{{}, {OnLoan: true}}
	return o
}

// check lets everything finish and checks that nothing was lost.
func (m *model) check(t *testing.T) {
	if m.blocked {
		m.host.receiver.Resume()
		m.blocked = false
	}
	m.settle()
	for len(m.loans) > 0 { // unanswered requests go to the next plugin, which may
		m.kill()
		m.settle()
	}
	for _, n := range m.sent {
		if m.handled[n] == 0 {
			t.Errorf("message %d was never handled", n)
		}
	}
	if m.heard != m.told {
		t.Errorf("the host heard %d of %d", m.heard, m.told)
	}
	if s := m.host.Stats(); s.Unacked != 0 || s.Open != 0 || s.Paused || s.Queued != 0 {
		t.Errorf("at the end %+v", s)
	}
	m.close()
}
