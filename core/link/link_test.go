package link

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/hostabi"
)

func TestSend_ArrivesInOrderBothWays(t *testing.T) {
	p := newPair(t, options{})
	defer p.close()
	const n = 1000 // more than the ring has cells
	for i := range uint32(n) {
		p.host.send(t, int(i%2), hostabi.Message{T: i, Inline: [2]uint64{uint64(i), 7}, Sender: 3, Sequence: uint64(i)})
		p.plugin.send(t, 0, hostabi.Message{T: i})
		if i%100 == 0 {
			p.host.Poll()
			p.plugin.idle()
		}
	}
	p.settle()
	if len(p.plugin.got) != n || !slices.Equal(p.host.seen(0), times(n, 0)) {
		t.Fatalf("the plugin got %d, the host %d messages", len(p.plugin.got), len(p.host.got))
	}
	for i, m := range p.plugin.got {
		if want := (hostabi.Message{Slot: uint16(i % 2), T: uint32(i), Inline: [2]uint64{uint64(i), 7}, Sender: 3, Sequence: uint64(i)}); m != want {
			t.Fatalf("message %d is %+v, want %+v", i, m, want)
		}
	}
	if s := p.host.Stats(); s.Sent != n || s.Acked != n || s.Unacked != 0 || s.Received != n || s.Finished != n {
		t.Errorf("stats %+v", s)
	}
}

func TestSend_KeepsAClaimUntilThePeerHasFinished(t *testing.T) {
	p := newPair(t, options{})
	defer p.close()
	for _, from := range []*end{p.host, p.plugin} {
		h := p.commit()
		from.send(t, 0, hostabi.Message{Handle: h})
		p.release(h) // the sender's own claim
		to := p.plugin
		if from == p.plugin {
			to = p.host
		}
		to.onMessage = func(int, *hostabi.Message) error {
			if p.free(h) {
				t.Errorf("the block is free while the slot runs")
			} else {
				p.release(h) // the claim of free
			}
			return nil
		}
		p.settle()
		if !p.free(h) {
			t.Errorf("%s keeps the block", from.config.Name)
			p.release(h)
		}
	}
}

// A request that several answer is open until the last of them has: they may be writing to the block.
func TestSend_ARequestIsOpenUntilAllHaveAnswered(t *testing.T) {
	p := newPair(t, options{answers: func(port int) int { return map[int]int{1: 3}[port] }})
	defer p.close()
	loan, err := p.blocks.Loan()
	if err != nil {
		t.Fatal(err)
	}
	q := hostabi.Message{Handle: loan.Handle(), T: 5, Sender: 9}
	p.plugin.send(t, 1, q)
	p.settle()
	for left := 3; left > 0; left-- {
		if p.host.asked() != left {
			t.Errorf("%d answers are due, want %d", p.host.asked(), left)
		}
		p.host.send(t, 1, q)
		p.settle()
	}
	if s := p.host.Stats(); s.Open != 0 || p.host.asked() != 0 {
		t.Errorf("stats %+v, %d answers due, want none", s, p.host.asked())
	}
	p.plugin.send(t, 0, q) // to no receiver
	p.settle()
	if p.host.asked() != 0 {
		t.Error("a request that nobody gets waits for an answer")
	}
	if err := loan.Abort(); err != nil {
		t.Error(err)
	}
}

func TestSend_OfABlockOnLoanCarriesNoClaim(t *testing.T) {
	p := newPair(t, options{})
	defer p.close()
	loan, err := p.blocks.Loan()
	if err != nil {
		t.Fatal(err)
	}
	q := hostabi.Message{Handle: loan.Handle(), T: 4, Sender: 9}
	p.host.send(t, 0, q)
	p.settle()
	if s := p.host.Stats(); s.Open != 1 || s.Unacked != 0 {
		t.Errorf("stats %+v, want one open request", s)
	}
	q.T = 5
	p.plugin.send(t, 1, q) // about another row
	p.settle()
	if s := p.host.Stats(); s.Open != 1 || p.host.asked() != 1 {
		t.Errorf("stats %+v, %d asked, want one each", s, p.host.asked())
	}
	p.host.send(t, 1, q) // the answer to that
	q.T = 4
	p.plugin.send(t, 1, q)
	p.settle()
	if s := p.host.Stats(); s.Open != 0 || p.host.asked() != 0 {
		t.Errorf("stats %+v, %d asked, want none", s, p.host.asked())
	}
	if err := loan.Abort(); err != nil {
		t.Error(err)
	}
	if err := p.host.Send(0, &q); !errors.Is(err, arena.ErrStale) {
		t.Errorf("Send about a loan that has ended = %v, want ErrStale", err)
	}
}

func TestWindow_PausesTheComponentOnceAndResumesAtHalf(t *testing.T) {
	p := newPair(t, options{limits: map[int]int{0: 4, 1: 1}})
	defer p.close()
	paused := func(want int) {
		t.Helper()
		if got := p.host.receiver.Pauses(); got != want {
			t.Errorf("%d pauses, want %d", got, want)
		}
	}
	for i := range uint32(3) {
		p.host.send(t, 0, hostabi.Message{T: i})
		paused(0)
	}
	p.host.send(t, 0, hostabi.Message{T: 3})
	paused(1)
	p.host.send(t, 1, hostabi.Message{T: 4})
	p.host.send(t, 0, hostabi.Message{T: 5}) // a slot that runs may still send
	paused(1)

	finish := func(n uint64) {
		p.plugin.Poll()
		for range n {
			p.plugin.finish(false)
		}
		p.plugin.tell()
		p.host.Poll()
	}
	finish(2) // port 0 has three left, port 1 its one
	paused(1)
	finish(2) // two and one
	paused(1)
	finish(1) // the one
	paused(0)
	if s := p.host.Stats(); s.Pauses != 1 || s.Paused || s.Acked != 5 {
		t.Errorf("stats %+v", s)
	}
}

func TestWindow_OfThePluginHoldsBackItsData(t *testing.T) {
	p := newPair(t, options{window: 8})
	defer p.close()
	for i := range uint32(8) {
		p.plugin.send(t, 0, hostabi.Message{T: i})
	}
	p.host.send(t, 0, hostabi.Message{T: 99})
	p.plugin.Poll()
	p.plugin.turn()
	if len(p.plugin.got) != 0 {
		t.Errorf("a component with a full window got %v", p.plugin.got)
	}
	p.settle()
	if len(p.plugin.got) != 1 {
		t.Errorf("it got %v, want one message", p.plugin.got)
	}
}

func TestAcknowledgement_OfTheHostWaitsWhileSomebodyElsePausesIt(t *testing.T) {
	p := newPair(t, options{limits: map[int]int{0: 1}})
	defer p.close()
	p.host.send(t, 0, hostabi.Message{})
	p.host.receiver.Pause() // a full connection
	p.plugin.send(t, 0, hostabi.Message{})
	p.host.idle()
	p.plugin.Poll()
	if s := p.plugin.Stats(); s.Acked != 0 {
		t.Errorf("acknowledged: %+v", s)
	}
	p.host.receiver.Resume()
	p.host.idle() // still paused by the link itself, which does not count
	p.plugin.Poll()
	if s := p.plugin.Stats(); s.Acked != 1 {
		t.Errorf("not acknowledged: %+v", s)
	}
}

func TestAcknowledgement_TravelsWithAnswers(t *testing.T) {
	p := newPair(t, options{})
	defer p.close()
	p.plugin.onMessage = func(_ int, m *hostabi.Message) error {
		// Like a component that collects all queued messages before it answers.
		p.plugin.receiver.Post(func(m *hostabi.Message) { p.plugin.send(t, 0, *m) }, *m)
		return nil
	}
	for i := range uint32(100) {
		p.host.send(t, 0, hostabi.Message{T: i})
		p.plugin.idle()
		if n := p.toHost.Len(); n != 1 {
			t.Fatalf("%d messages for one answer", n)
		}
		p.host.Poll()
		p.host.turn()
	}
	if s := p.host.Stats(); s.Acked != 100 || s.Received != 100 {
		t.Errorf("stats %+v", s)
	}
}

func TestUnfinished_ReturnsThePeersUnfinishedMessages(t *testing.T) {
	p := newPair(t, options{})
	defer p.close()
	loan, err := p.blocks.Loan()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(row uint32) hostabi.Message { return hostabi.Message{Handle: loan.Handle(), T: row} }
	h := p.commit()
	p.host.send(t, 0, ask(1))                // acknowledged, not answered
	p.host.send(t, 0, hostabi.Message{T: 2}) // acknowledged
	p.host.send(t, 0, ask(3))                // acknowledged and answered
	p.settle()
	p.host.send(t, 0, ask(4)) // answered, not acknowledged
	p.host.send(t, 1, hostabi.Message{T: 5, Handle: h})
	p.host.send(t, 0, ask(6))
	p.plugin.send(t, 1, ask(3))
	p.plugin.send(t, 1, ask(4))
	p.host.Stop()
	if err := p.host.Drain(); err != nil {
		t.Fatal(err)
	}
	p.host.send(t, 1, hostabi.Message{T: 7}) // after the end
	var rows []uint32
	list := p.host.Unfinished()
	for _, u := range list {
		rows = append(rows, u.Message.T)
		if u.Claimed != (u.Message.T == 5) || u.Port != int(u.Message.Slot) {
			t.Errorf("%+v", u)
		}
	}
	if want := []uint32{1, 5, 6, 7}; !slices.Equal(rows, want) {
		t.Errorf("unfinished %v, want %v", rows, want)
	}
	if err := p.host.Send(0, &hostabi.Message{Handle: h}); !errors.Is(err, ErrStopped) {
		t.Errorf("Send after Unfinished = %v, want ErrStopped", err)
	}

	p.plugin.Stop()
	p.connect(options{sends: []Port{{}, {}}, receives: []Port{{}, {OnLoan: true}}})
	p.host.Resend(list)
	p.settle()
	if len(p.plugin.got) != 4 || p.host.Stats().Open != 2 {
		t.Errorf("the next plugin got %v, stats %+v", p.plugin.got, p.host.Stats())
	}
	p.release(h)
	if !p.free(h) {
		t.Error("the block is still claimed")
	}
	if err := loan.Abort(); err != nil {
		t.Error(err)
	}
}

func TestPost_ReachesControl(t *testing.T) {
	p := newPair(t, options{})
	defer p.close()
	p.host.Post(hostabi.Message{Slot: hostabi.LinkCredit, Handle: 5})
	p.plugin.Post(hostabi.Message{Slot: hostabi.LinkStop, Kind: 2})
	p.settle()
	if len(p.plugin.control) != 1 || p.plugin.control[0].Handle != 5 || len(p.host.control) != 1 || p.host.control[0].Kind != 2 {
		t.Errorf("the plugin got %v, the host %v", p.plugin.control, p.host.control)
	}
}

func TestPeer_ThatBreaksTheRulesIsNotListenedTo(t *testing.T) {
	for want, m := range map[string]hostabi.Message{
		"acknowledged 3 messages of 2, 1 before": {Slot: hostabi.LinkAck, Ctl: 3},
		"acknowledged 0 messages of 2, 1 before": {Slot: hostabi.LinkAck, Ctl: 0},
		"message for port 9 of 2":                {Signal: 9, Ctl: 1},
	} {
		p := newPair(t, options{})
		p.host.send(t, 0, hostabi.Message{})
		p.plugin.idle()
		p.host.Poll()
		p.host.send(t, 0, hostabi.Message{})
		p.toHost.Put([]hostabi.Message{m, {Slot: hostabi.LinkStop}})
		p.host.Poll()
		if err := p.host.fault; !errors.Is(err, ErrPeer) || !strings.Contains(err.Error(), want) {
			t.Errorf("fault %v, want %q", err, want)
		}
		p.host.Poll()
		if len(p.host.control) != 0 {
			t.Errorf("%q: it went on listening", want)
		}
		p.close()
	}
}

func TestPeer_FaultOfADelivery(t *testing.T) {
	p := newPair(t, options{})
	defer p.close()
	bad := errors.New("a handle of nothing")
	p.host.onMessage = func(int, *hostabi.Message) error { return bad }
	p.plugin.send(t, 0, hostabi.Message{})
	p.host.Poll()
	if !errors.Is(p.host.fault, bad) || !errors.Is(p.host.Err(), bad) {
		t.Errorf("fault %v", p.host.fault)
	}
}

func TestStats_TellOfABatchThatIsBeingDelivered(t *testing.T) {
	p := newPair(t, options{})
	defer p.close()
	p.host.pumping = true // as Start would, with a goroutine
	p.host.send(t, 0, hostabi.Message{T: 1})
	p.plugin.Poll()
	p.plugin.send(t, 0, hostabi.Message{T: 2})
	p.plugin.finish(false)
	p.plugin.tell() // after the message, which blocks their receiver
	delivers, goOn := make(chan struct{}), make(chan struct{})
	p.host.onMessage = func(int, *hostabi.Message) error {
		close(delivers)
		<-goOn
		return nil
	}
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		p.host.Poll()
	}()
	<-delivers
	if s := p.host.Stats(); s.Available != 0 || !s.Delivering || s.Acked != 0 {
		t.Errorf("while a batch is delivered: %+v, want an empty ring and Delivering", s)
	}
	close(goOn)
	<-taken
	if s := p.host.Stats(); s.Delivering || s.Acked != 1 {
		t.Errorf("then: %+v, want one acknowledged message", s)
	}
}
