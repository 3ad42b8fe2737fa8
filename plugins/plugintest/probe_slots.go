package plugintest

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
)

// onNumber runs the operation of a message.
func (p *Probe) onNumber(m *hostabi.Message) {
	p.remember(m)
	x := m.Inline[0]
	reply := *m
	switch m.Kind {
	case OpEcho:
	case OpCount:
		reply.Inline = [2]uint64{p.count, p.sum}
	case OpAdd:
		p.sum += x * uint64(p.config.Scale)
		return
	case OpMake:
		p.make(m)
		return
	case OpAbort:
		reply.Inline[0] = p.abort()
	case OpRelease:
		p.release(m)
		return
	case OpLease:
		reply.Inline[1] = p.lease(hostabi.Handle(x))
	case OpBurst:
		for t := range uint32(x) {
			reply.T = t
			p.say(reply)
		}
		return
	case OpAsk:
		p.ask(m)
		return
	case OpReply:
		reply.Inline[0] = uint64(len(p.held))
		for i := range p.held {
			p.answer(&p.held[i])
		}
		p.held = p.held[:0]
	case OpHistory:
		reply.Inline = [2]uint64{bits(p.history[0]), bits(p.history[3])}
	case OpConfig:
		reply.Inline = [2]uint64{uint64(p.config.Scale), uint64(p.config.Nested.Value)}
		reply.T, reply.Split, reply.PolicyVersion = uint32(len(p.config.Label)), uint32(p.h.Index), p.h.Run.Seed
	case OpKeep:
		reply.Inline[0] = p.keep()
	default:
		if !p.tellHost(m) {
			return
		}
	}
	p.say(reply)
}

// tellHost runs the operations on the host and reports whether the message must be copied.
func (p *Probe) tellHost(m *hostabi.Message) (copied bool) {
	x := m.Inline[0]
	switch m.Kind {
	case OpStop:
		p.h.Stop([]component.StopReason{component.StopOwn, component.StopReturn, component.StopEnvSteps, component.StopWallTime}[x%4])
		return false
	case OpBoundary:
		p.h.Boundary()
	case OpFail:
		p.h.Fail(errTold)
		return false
	case OpStat:
		p.h.Stats.Counter("probe/told").Add(x)
		v := math.Float64frombits(m.Inline[1])
		p.h.Stats.Gauge("probe/gauge").Set(v)
		p.h.Stats.Histogram("probe/histogram").Observe(v)
	case OpLog:
		p.h.Log.Warn("probe says " + strconv.FormatUint(x, 10))
		return false
	case OpSleep:
		time.Sleep(time.Duration(x) * time.Millisecond)
	case OpExit:
		os.Exit(int(x))
	default:
		return false
	}
	return true
}

// make makes blocks and emits them.
func (p *Probe) make(m *hostabi.Message) {
	for range max(m.Inline[1], 1) {
		loan, err := p.arena.Loan()
		if err != nil {
			none := *m
			none.T = 1
			p.say(none)
			return
		}
		for i, b := 0, loan.Bytes(); i < len(b); i++ {
			b[i] = byte(m.Inline[0] + uint64(i))
		}
		p.commit(loan, *m, m.Kind, m.Inline[0])
	}
}

// commit commits a block, emits it with the given Kind and Inline[0], and releases its own claim.
func (p *Probe) commit(loan arena.Loan, m hostabi.Message, kind uint16, x uint64) {
	h, err := loan.Commit()
	if err != nil {
		p.h.Fail(err)
		return
	}
	m.Handle, m.Kind, m.Inline = h, kind, [2]uint64{x, uint64(p.config.BlockBytes)}
	p.emit(p.blocks, m)
	if err := p.arena.Release(h); err != nil {
		p.h.Fail(err)
	}
}

func (p *Probe) abort() uint64 {
	loan, err := p.arena.Loan()
	if err != nil {
		return 0
	}
	loan.Bytes()[0] = 1
	if err := loan.Abort(); err != nil {
		p.h.Fail(err)
	}
	return 1
}

func (p *Probe) keep() uint64 {
	loan, err := p.arena.Loan()
	if err != nil {
		return 0
	}
	p.loans = append(p.loans, loan)
	return 1
}

// release sums and releases the held leases.
func (p *Probe) release(m *hostabi.Message) {
	reply := *m
	reply.Handle = 0
	if len(p.leases) == 0 {
		reply.Inline = [2]uint64{}
		p.say(reply)
	}
	for i := range p.leases {
		l := &p.leases[i]
		reply.Inline = [2]uint64{sumOf(l.Bytes()), uint64(l.Handle())}
		if err := l.Release(); err != nil {
			p.h.Fail(err)
		}
		p.say(reply)
	}
	p.leases = p.leases[:0]
}

// lease tries to lease a block.
func (p *Probe) lease(h hostabi.Handle) uint64 {
	l, err := p.h.Arenas.Lease(h)
	if err == nil {
		err = l.Release()
	}
	for i, is := range []error{nil, arena.ErrStale, arena.ErrForeign, arena.ErrRange, arena.ErrState} {
		if errors.Is(err, is) {
			return uint64(i)
		}
	}
	p.h.Fail(err)
	return LeaseStale
}

// onBlock runs the operation of a message on its block.
func (p *Probe) onBlock(m *hostabi.Message) {
	reply := *m
	reply.Handle = 0
	switch m.Kind {
	case BlockSum, BlockTwice:
		reply.Inline = [2]uint64{p.sumLeased(m.Handle, m.Kind == BlockTwice), uint64(m.Handle)}
	case BlockHold:
		l, err := p.h.Arenas.Lease(m.Handle)
		if err != nil {
			p.h.Fail(err)
			return
		}
		p.leases = append(p.leases, l)
		reply.Inline = [2]uint64{uint64(len(p.leases)), uint64(m.Handle)}
	case BlockPass:
		p.emit(p.blocks, *m)
		return
	default:
		return
	}
	p.say(reply)
}

// sumLeased sums a block's bytes, if twice is set with a lease that outlives another one.
func (p *Probe) sumLeased(h hostabi.Handle, twice bool) uint64 {
	l, err := p.h.Arenas.Lease(h)
	if err != nil {
		p.h.Fail(err)
		return 0
	}
	if twice {
		second, err := p.h.Arenas.Lease(h)
		if err = errors.Join(err, l.Release()); err != nil {
			p.h.Fail(err)
			return 0
		}
		l = second
	}
	sum := sumOf(l.Bytes())
	if err := l.Release(); err != nil {
		p.h.Fail(err)
	}
	return sum
}

// ask asks about a block that it keeps on loan.
func (p *Probe) ask(m *hostabi.Message) {
	loan, err := p.arena.Loan()
	if err != nil {
		none := *m
		none.T = 1
		p.say(none)
		return
	}
	binary.LittleEndian.PutUint64(loan.Bytes(), m.Inline[0])
	binary.LittleEndian.PutUint64(loan.Bytes()[8:], 0)
	p.asked = append(p.asked, loan)
	request := *m
	request.Handle = loan.Handle()
	p.emit(p.asks, request)
}

// onAsk answers, or keeps the request until OpReply.
func (p *Probe) onAsk(m *hostabi.Message) {
	if m.Kind == AskLater {
		p.held = append(p.held, *m)
		return
	}
	p.answer(m)
}

func (p *Probe) answer(m *hostabi.Message) {
	var b []byte
	a, err := p.h.Arenas.Of(m.Handle)
	if err == nil {
		b, err = a.Loaned(m.Handle)
	}
	if err != nil || len(b) < 16 {
		lost := *m
		lost.Handle, lost.Kind = 0, askLost
		p.say(lost)
		return
	}
	binary.LittleEndian.PutUint64(b[8:], 2*binary.LittleEndian.Uint64(b)+1)
	p.emit(p.answers, *m)
}

// onAnswer commits a block that has been answered.
func (p *Probe) onAnswer(m *hostabi.Message) {
	i := slices.IndexFunc(p.asked, func(l arena.Loan) bool { return l.Handle() == m.Handle })
	if i < 0 {
		return
	}
	loan := p.asked[i]
	p.asked = slices.Delete(p.asked, i, i+1)
	p.commit(loan, *m, OpAsk, binary.LittleEndian.Uint64(loan.Bytes()[8:]))
	p.settle()
}

func sumOf(b []byte) uint64 {
	sum := uint64(0)
	for _, x := range b {
		sum += uint64(x)
	}
	return sum
}
