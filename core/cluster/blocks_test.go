package cluster

import (
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/relay"
	"github.com/rlhost/rlhost/internal/testkit"
)

// blocksRig is two hosts with an arena each: one fills blocks with numbers, the other takes them.
type blocksRig struct {
	t        testing.TB
	from, to *arena.Arena
	out      *Outgoing
	in       *Incoming

	mu    sync.Mutex
	came  []uint64 // numbers, as they were committed
	steps uint64
	lost  relay.Count
}

func newArena(t testing.TB, name string, blocks, bytes int) *arena.Arena {
	t.Helper()
	a, err := arena.NewSet().Add(arena.Config{Name: name, Blocks: blocks, BlockBytes: bytes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// newBlocksRig connects a sender over one link with a receiver over another.
func newBlocksRig(t testing.TB, sender, receiver *Link, window, bytes int) *blocksRig {
	r := &blocksRig{t: t, from: newArena(t, "from", 2*window, bytes), to: newArena(t, "to", window, bytes)}
	for block := range uint32(window) {
		r.to.OnFree(block, func(uint32) { r.in.Freed(1) })
	}
	var err error
	r.in, err = receiver.Receives(IncomingOptions{
		From: "blocks", Answers: "answers", Incarnation: 1, Window: window, Flight: 2, Largest: bytes, Commit: r.commit,
		Lost: func(c relay.Count) { r.lost.Blocks += c.Blocks; r.lost.Steps += c.Steps },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.out, err = sender.Sends(OutgoingOptions{
		To: "blocks", Answers: "answers", Incarnation: 1, Receiver: 1, Queue: 2 * window, Timeout: 100 * time.Millisecond,
		Body: r.body, Ended: r.ended,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.out.Close(); r.in.Close() })
	return r
}

func (r *blocksRig) body(to []byte, b relay.Block) []byte {
	lease, err := r.from.Lease(b.Handle)
	if err != nil {
		r.t.Error(err)
		return to
	}
	to = append(to, lease.Bytes()...)
	if err := lease.Release(); err != nil {
		r.t.Error(err)
	}
	return to
}

func (r *blocksRig) ended(blocks []relay.Block, committed bool) {
	for _, b := range blocks {
		if err := r.from.Release(b.Handle); err != nil || !committed {
			r.t.Errorf("block %v is committed: %v, its claim ends: %v", b.Handle, committed, err)
		}
	}
}

func (r *blocksRig) commit(steps uint64, body []byte) {
	loan, err := r.to.Loan()
	if err != nil {
		r.t.Errorf("the window is not kept: %v", err)
		return
	}
	copy(loan.Bytes(), body)
	number := binary.LittleEndian.Uint64(body)
	if end := binary.LittleEndian.Uint64(body[len(body)-8:]); end != number || len(body) != len(loan.Bytes()) {
		r.t.Errorf("a block of %d bytes begins with number %d and ends with %d", len(body), number, end)
	}
	h, err := loan.Commit()
	if err != nil {
		r.t.Error(err)
		return
	}
	r.mu.Lock()
	r.came = append(r.came, number)
	r.steps += steps
	r.mu.Unlock()
	if err := r.to.Release(h); err != nil {
		r.t.Error(err)
	}
}

// put sends a block with a number, once there is room.
func (r *blocksRig) put(number uint64) {
	var loan arena.Loan
	for {
		var err error
		if loan, err = r.from.Loan(); err == nil {
			break
		}
		if !errors.Is(err, arena.ErrExhausted) {
			r.t.Fatal(err)
		}
		time.Sleep(20 * time.Microsecond)
	}
	binary.LittleEndian.PutUint64(loan.Bytes(), number)
	binary.LittleEndian.PutUint64(loan.Bytes()[len(loan.Bytes())-8:], number)
	h, err := loan.Commit()
	if err != nil {
		r.t.Fatal(err)
	}
	for !r.out.Put(relay.Block{Handle: h, Steps: 1 + number%7}) {
		time.Sleep(20 * time.Microsecond)
	}
}

// Cuts lose what is under way, in both directions, without an error that anybody sees. All blocks come, once, in their order, and are counted.
func TestBlocks_ComeOnceOverACableThatIsCut(t *testing.T) {
	cutBlocks(t, serve(t).Address(), 64<<10, 1500)
}

// The same over a server that takes less at once than a block has.
func TestBlocks_ComeOnceInParts(t *testing.T) {
	cutBlocks(t, external(t, &server.Options{MaxPayload: 32 << 10}), 300<<10+24, 300)
}

// external serves a cluster that somebody else runs.
func external(t *testing.T, o *server.Options) (address string) {
	t.Helper()
	o.Host, o.Port, o.NoSigs, o.NoLog = "127.0.0.1", server.RANDOM_PORT, true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(startTime) {
		t.Fatal("the server has not started")
	}
	return s.Addr().String()
}

func cutBlocks(t *testing.T, address string, bytes, blocks int) {
	line := testkit.NewCable(t, address)
	sender := connect(t, LinkOptions{URL: "nats://" + line.Address()})
	r := newBlocksRig(t, sender, connect(t, LinkOptions{URL: "nats://" + address}), 8, bytes)
	random := testkit.Random(t)
	const cuts = 15
	steps := uint64(0)
	for number := range uint64(blocks) {
		if random.IntN(blocks/cuts) == 0 {
			line.Cut()
			line.Mend()
		}
		r.put(number)
		steps += 1 + number%7
	}
	testkit.Until(t, "all blocks are acknowledged", func() bool { return r.out.Counts().UnderWay.Blocks == 0 })
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.came) != blocks || r.steps != steps || r.lost != (relay.Count{}) {
		t.Errorf("%d blocks of %d env steps came, %+v are lost; %d of %d were made", len(r.came), r.steps, r.lost, blocks, steps)
	}
	for i, number := range r.came {
		if number != uint64(i) {
			t.Fatalf("block %d came as number %d", number, i)
		}
	}
	if c := r.out.Counts(); c.Committed != (relay.Count{Blocks: uint64(blocks), Steps: steps}) || c.InDoubt != (relay.Count{}) {
		t.Errorf("the sender counts %+v", c)
	}
	if stats := sender.conn.Stats(); stats.Reconnects == 0 {
		t.Error("no cut has come about")
	}
}

// A sender that ends with blocks under way: what the receiver has heard of and never got is lost, and counted; another sender continues.
func TestBlocks_CountWhatAnEndedSenderHadUnderWay(t *testing.T) {
	server := serve(t)
	link := connect(t, LinkOptions{Server: server})
	lost := make(chan relay.Count, 1)
	var came, steps uint64
	in, err := link.Receives(IncomingOptions{From: "blocks", Answers: "answers", Incarnation: 1, Window: 4,
		Commit: func(n uint64, _ []byte) { came++; steps += n }, Lost: func(c relay.Count) { lost <- c }})
	if err != nil {
		t.Fatal(err)
	}
	say := func(m relay.Message) {
		if err := link.Tell(t.Context(), "blocks", m.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
	}
	say(relay.Message{Kind: relay.Open, From: 5, To: 1})
	say(relay.Message{Kind: relay.Data, From: 5, To: 1, Number: 1, Steps: 10})
	say(relay.Message{Kind: relay.Probe, From: 5, To: 1, Number: 3, Steps: 30})
	missing := relay.Count{Blocks: 2, Steps: 20}
	testkit.Until(t, "the receiver hears of three blocks", func() bool { return in.Missing() == missing })
	in.Expire()
	say(relay.Message{Kind: relay.Data, From: 5, To: 1, Number: 2, Steps: 20})
	say(relay.Message{Kind: relay.Open, From: 6, To: 1})
	if got := <-lost; got != missing {
		t.Errorf("lost %+v", got)
	}
	in.Close()
	if came != 1 || steps != 10 {
		t.Errorf("%d blocks of %d env steps came", came, steps)
	}
}

// BenchmarkBlocks copies blocks from one arena into another over a server in the receiving host, with and without what makes them come once.
func BenchmarkBlocks(b *testing.B) {
	const size, window = 256 << 10, 64
	host := serve(b)
	url := LinkOptions{URL: "nats://" + host.Address()}
	b.Run("relay", func(b *testing.B) {
		r := newBlocksRig(b, connect(b, url), connect(b, LinkOptions{Server: host}), window, size)
		b.SetBytes(size)
		b.ResetTimer()
		for number := range uint64(b.N) {
			r.put(number)
		}
		for r.out.Counts().UnderWay.Blocks > 0 {
			time.Sleep(20 * time.Microsecond)
		}
	})
	b.Run("nats", func(b *testing.B) {
		from, to := newArena(b, "from", 1, size), newArena(b, "to", 1, size)
		loan, err := from.Loan()
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = loan.Abort() }()
		into, err := to.Loan()
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = into.Abort() }()
		credits := make(chan struct{}, window)
		sender, receiver := connect(b, url), connect(b, LinkOptions{Server: host})
		_, err = receiver.conn.Subscribe("bare", func(m *nats.Msg) { copy(into.Bytes(), m.Data); <-credits })
		if err = errors.Join(err, receiver.Pulse(b.Context())); err != nil {
			b.Fatal(err)
		}
		buffer := make([]byte, 0, size)
		b.SetBytes(size)
		b.ResetTimer()
		for range b.N {
			credits <- struct{}{}
			buffer = append(buffer[:0], loan.Bytes()...)
			if err := sender.conn.Publish("bare", buffer); err != nil {
				b.Fatal(err)
			}
		}
		for len(credits) > 0 {
			time.Sleep(20 * time.Microsecond)
		}
	})
}
