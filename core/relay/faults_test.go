package relay

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/members"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/simnet"
)

// Settings of the simulation.
const (
	hosts   = 4
	window  = 16
	timeout = 200 * time.Millisecond
	ttl     = 3 * time.Second
	faults  = 2000 // a seed
)

// process is one life of a sending host.
type process struct {
	simnet.Process
	w      *world
	host   int
	sender *Sender
	// numbered has the block of each number that was given, by the incarnations of both ends.
	numbered map[[2]uint64]map[uint64]uint64
	claims   map[uint64]bool
	told     map[[2]uint64]uint64 // the highest number that a receiver has heard of
}

// owner is one life of the receiving host.
type owner struct {
	simnet.Process
	w         *world
	own       uint64
	receivers [hosts]*Receiver
	awake     members.Awake
	renewed   [hosts]time.Duration // of awake
}

// world is hosts that send blocks to one that receives them, and what is to be true of the blocks.
type world struct {
	simnet.Time
	t     *testing.T
	r     *rand.Rand
	to    [hosts]*simnet.Way
	from  [hosts]*simnet.Way
	hosts [hosts]*process
	dead  []*process
	owner *owner
	slow  int  // faults by which nothing is freed
	quiet bool // no more blocks are made

	incarnations uint64
	blocks       uint64
	committed    map[uint64]uint64 // the receiver's incarnation by block
	ended        map[uint64]bool   // receivers
	lost         map[[2]uint64]Count
	newest       [hosts]time.Duration // last commit
}

// stepsOf is how many env steps a block has.
func stepsOf(block uint64) uint64 { return 1 + block%7 }

func (w *world) next() uint64 { w.incarnations++; return w.incarnations }

// senderPort is a process's.
type senderPort struct{ *process }

func (p senderPort) NextIncarnation() uint64 { return p.w.next() }

func (p senderPort) Committed(blocks []Block) {
	for _, b := range blocks {
		if _, done := p.w.committed[uint64(b.Handle)]; !done {
			p.w.t.Fatalf("block %d is done and was never committed", b.Handle)
		}
	}
	p.release(blocks)
}

func (p senderPort) InDoubt(blocks []Block) {
	if !p.w.ended[p.sender.to] {
		p.w.t.Fatalf("%d blocks are in doubt although their receiver lives", len(blocks))
	}
	p.release(blocks)
}

func (p senderPort) release(blocks []Block) {
	for _, b := range blocks {
		if !p.claims[uint64(b.Handle)] {
			p.w.t.Fatalf("the claim on block %d is released twice", b.Handle)
		}
		delete(p.claims, uint64(b.Handle))
	}
}

func (p senderPort) Send(m Message, b Block) {
	w := p.w
	var body []byte
	if m.Kind == Data {
		body = binary.LittleEndian.AppendUint64(nil, uint64(b.Handle))
		ends := [2]uint64{m.From, m.To}
		if p.numbered[ends] == nil {
			p.numbered[ends] = map[uint64]uint64{}
		}
		if other, given := p.numbered[ends][m.Number]; given && other != uint64(b.Handle) {
			w.t.Fatalf("number %d is given to blocks %d and %d", m.Number, other, b.Handle)
		}
		p.numbered[ends][m.Number] = uint64(b.Handle)
	}
	bytes := append(m.AppendTo(nil), body...)
	p.send(func(r *Receiver) {
		m, body, err := Parse(bytes)
		if err != nil {
			w.t.Fatal(err)
		}
		if m.Kind != Open {
			p.tell(r, m.From, m.To, m.Number)
		}
		r.Handle(m, body)
	})
}

// send carries something to the owner's end for this host.
func (p *process) send(arrive func(*Receiver)) {
	w := p.w
	w.to[p.host].Send(&w.Time, w.r, func() {
		if o := w.owner; !o.Dead {
			o.Do(func() { arrive(o.receivers[p.host]) })
		}
	})
}

// tell remembers which blocks a receiver has heard of.
func (p *process) tell(r *Receiver, from, to, number uint64) {
	if to != r.own || from != r.from || !r.open {
		return
	}
	ends := [2]uint64{from, to}
	p.told[ends] = max(p.told[ends], number)
}

// receiverPort is an owner's, for one host.
type receiverPort struct {
	*owner
	host int
}

func (p receiverPort) Send(m Message) {
	w := p.w
	w.from[p.host].Send(&w.Time, w.r, func() {
		if h := w.hosts[p.host]; !h.Dead {
			h.Do(func() { h.sender.Handle(w.Now, m) })
		}
	})
}

func (p receiverPort) Commit(from, number, steps uint64, body []byte) {
	w, block := p.w, binary.LittleEndian.Uint64(body)
	if _, twice := w.committed[block]; twice {
		w.t.Fatalf("block %d is committed twice (host %d, incarnation %d, number %d)", block, p.host, from, number)
	}
	if steps != stepsOf(block) {
		w.t.Fatalf("block %d is counted with %d env steps, it has %d", block, steps, stepsOf(block))
	}
	w.committed[block] = p.own
	w.newest[p.host] = w.Now
	w.After(time.Duration(1+w.r.IntN(10))*time.Millisecond, p.free)
}

// free gives a block back, later where nothing is freed at present.
func (p receiverPort) free() {
	w := p.w
	switch {
	case w.owner != p.owner:
	case w.slow > 0 || p.Stops > 0:
		w.After(20*time.Millisecond, p.free)
	default:
		p.receivers[p.host].Freed(1)
	}
}

func (p receiverPort) Lost(from uint64, c Count) {
	sum := p.w.lost[[2]uint64{from, p.own}]
	sum.Blocks += c.Blocks
	sum.Steps += c.Steps
	p.w.lost[[2]uint64{from, p.own}] = sum
}

func (w *world) newOwner() {
	o := &owner{w: w, own: w.next(), awake: members.Awake{Gap: 300 * time.Millisecond}}
	for host := range o.receivers {
		o.receivers[host] = NewReceiver(o.own, window, receiverPort{o, host})
		if host%2 == 1 {
			o.receivers[host].Bound(uint64(host))
		}
	}
	w.owner = o
}

func (w *world) newSender(host int) {
	p := &process{w: w, host: host, numbered: map[[2]uint64]map[uint64]uint64{}, claims: map[uint64]bool{}, told: map[[2]uint64]uint64{}}
	w.hosts[host] = p
	p.sender = NewSender(w.Now, senderPort{p}, SenderOptions{Incarnation: w.next(), Receiver: w.owner.own, Queue: 8, Timeout: timeout})
}

// work is what a host does each 5 ms.
func (w *world) work(host int) {
	p := w.hosts[host]
	if p.Dead || p.Stops > 0 {
		return
	}
	for n := w.r.IntN(3); n > 0 && !w.quiet; n-- {
		block := w.blocks + 1
		if p.sender.Put(w.Now, Block{hostabi.Handle(block), stepsOf(block)}) {
			w.blocks, p.claims[block] = block, true
		}
	}
	if at, waits := p.sender.Deadline(); waits && at <= w.Now {
		p.sender.Tick(w.Now)
	}
}

// renew tells the owner that a host is there, each second.
func (w *world) renew(host int) {
	p := w.hosts[host]
	if p.Dead || p.Stops > 0 {
		return
	}
	from, to, given := p.sender.Told()
	o := w.owner
	p.send(func(r *Receiver) {
		if o == w.owner && to == o.own {
			o.renewed[host] = o.awake.Total()
			p.tell(r, from, to, given.Blocks)
			r.Told(from, to, given)
		}
	})
}

// judge ends leases, each 100 ms.
func (w *world) judge() {
	o := w.owner
	if o.Dead || o.Stops > 0 {
		return
	}
	total := o.awake.Pulse(w.Now)
	for host, r := range o.receivers {
		if total-o.renewed[host] > ttl {
			r.Expire()
		}
	}
}

// fault does one kind of harm.
func (w *world) fault() {
	upTo := func(d time.Duration) time.Duration { return 10*time.Millisecond + time.Duration(w.r.Int64N(int64(d))) }
	host := w.r.IntN(hosts)
	p, o := w.hosts[host], w.owner
	switch kind := w.r.IntN(10); {
	case kind < 4:
		ways := [][]*simnet.Way{{w.to[host]}, {w.from[host]}, {w.to[host], w.from[host]}, append(w.to[:], w.from[:]...)}[w.r.IntN(4)]
		hurt := simnet.AnyHurting(w.r)
		longest := 3 * time.Second
		if hurt == simnet.Cut {
			longest = 15 * time.Second
		}
		simnet.Hurt(&w.Time, hurt, upTo(longest), ways...)
	case kind == 4 && !p.Dead:
		p.Dead = true
		w.dead = append(w.dead, p)
		w.After(upTo(6*time.Second), func() { w.newSender(host) })
	case kind == 5 && !o.Dead && w.r.IntN(3) == 0:
		o.Dead = true
		w.ended[o.own] = true
		w.After(upTo(6*time.Second), w.newOwner)
	case kind == 6:
		p.Stop(&w.Time, upTo(8*time.Second))
	case kind == 7:
		o.Stop(&w.Time, upTo(8*time.Second))
	case kind == 8:
		w.slow++
		w.After(upTo(5*time.Second), func() { w.slow-- })
	case kind == 9 && !o.Dead && o.Stops == 0:
		o.receivers[host].Expire() // a lease that is over while its host lives
	}
}

// simulate does harm n times and checks the blocks.
func simulate(t *testing.T, seed uint64, n int) *world {
	w := &world{
		t: t, r: rand.New(rand.NewPCG(seed, 0)),
		committed: map[uint64]uint64{}, ended: map[uint64]bool{}, lost: map[[2]uint64]Count{},
	}
	for host := range hosts {
		w.to[host], w.from[host] = &simnet.Way{}, &simnet.Way{}
	}
	w.newOwner()
	for host := range hosts {
		w.newSender(host)
		w.Every(5*time.Millisecond, func() { w.work(host) })
		w.Every(time.Second, func() { w.renew(host) })
	}
	w.Every(100*time.Millisecond, w.judge)
	for range n {
		w.fault()
		w.Pass(time.Duration(1+w.r.IntN(800)) * time.Millisecond)
	}
	w.Pass(20 * time.Second) // the last faults end
	w.Pass(10 * time.Second)
	for host, p := range w.hosts {
		if w.Now-w.newest[host] > time.Second {
			t.Fatalf("host %d has stood still for %v: opening %v, %d kept, %d queued", host, w.Now-w.newest[host], p.sender.opening, len(p.sender.kept), len(p.sender.queue))
		}
	}
	w.quiet = true
	w.Pass(10 * time.Second)
	w.account()
	return w
}

// account checks that each block is where the counts say.
func (w *world) account() {
	t := w.t
	inDoubt, withDead := map[uint64]bool{}, map[uint64]bool{}
	for host, p := range w.hosts {
		if c := p.sender.Counts(); c.UnderWay.Blocks != 0 || len(p.claims) != 0 {
			t.Fatalf("host %d is not empty: %+v, %d claims", host, c, len(p.claims))
		}
	}
	for _, p := range w.dead {
		for block := range p.claims {
			withDead[block] = true
		}
	}
	var doubted, took Count
	for _, p := range append(w.dead, w.hosts[:]...) {
		c := p.sender.Counts()
		doubted.Blocks, doubted.Steps = doubted.Blocks+c.InDoubt.Blocks, doubted.Steps+c.InDoubt.Steps
		for _, of := range []Count{c.Committed, c.UnderWay, c.InDoubt} {
			took.Blocks, took.Steps = took.Blocks+of.Blocks, took.Steps+of.Steps
		}
		for ends, numbers := range p.numbered {
			for _, block := range numbers {
				if w.ended[ends[1]] {
					inDoubt[block] = true // it was sent to a receiver that has ended
				}
			}
		}
	}
	var made, gone Count
	for block := uint64(1); block <= w.blocks; block++ {
		made.add(Block{Steps: stepsOf(block)})
		if _, done := w.committed[block]; done || withDead[block] {
			continue
		}
		if !inDoubt[block] {
			t.Fatalf("block %d is lost and not counted", block)
		}
		gone.add(Block{Steps: stepsOf(block)})
	}
	if made != took {
		t.Fatalf("%+v were made, the senders count %+v", made, took)
	}
	if gone.Blocks > doubted.Blocks || gone.Steps > doubted.Steps {
		t.Fatalf("%+v are gone with their receivers, the senders count %+v in doubt", gone, doubted)
	}
	w.accountLost()
}

// accountLost checks what receivers call lost: blocks that had numbers, and never came.
func (w *world) accountLost() {
	for ends, c := range w.lost {
		var missing Count
		for _, p := range append(w.dead, w.hosts[:]...) {
			for _, block := range p.numbered[ends] {
				if _, done := w.committed[block]; !done {
					missing.add(Block{Steps: stepsOf(block)})
				}
			}
		}
		if c.Blocks > missing.Blocks || c.Steps > missing.Steps {
			w.t.Fatalf("the receiver counts %+v of incarnation %d as lost, %+v are", c, ends[0], missing)
		}
	}
	for _, p := range w.dead {
		missing, lost := map[uint64]bool{}, uint64(0)
		for ends, numbers := range p.numbered {
			if ends[1] != w.owner.own {
				continue
			}
			lost += w.lost[ends].Blocks
			for number, block := range numbers {
				if _, done := w.committed[block]; !done && number <= p.told[ends] {
					missing[block] = true
				}
			}
		}
		if uint64(len(missing)) > lost {
			w.t.Fatalf("the receiver has heard of %d blocks of a dead sender that never came, and counts %d", len(missing), lost)
		}
	}
}

// Hosts and their network are harmed in all ways at once.
func TestFaults_NoBlockIsDoubledOrLostUncounted(t *testing.T) {
	var blocks, committed, lost int
	simnet.Seeds(t, faults, func(seed uint64, n int) {
		w := simulate(t, seed, n)
		blocks, committed = blocks+int(w.blocks), committed+len(w.committed)
		for _, c := range w.lost {
			lost += int(c.Blocks)
		}
	})
	t.Logf("%d blocks, %d committed, %d counted as lost by receivers", blocks, committed, lost)
	if lost == 0 || committed == blocks {
		t.Error("nothing was lost: the faults do no harm")
	}
}
