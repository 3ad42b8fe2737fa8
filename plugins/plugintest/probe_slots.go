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
func (c *Probe) onNumber(m *hostabi.Message) {
	c.remember(m)
	x := m.Inline[0]
	reply := *m
	switch m.Kind {
	case OpEcho:
	case OpCount:
		reply.Inline = [2]uint64{c.count, c.sum}
	case OpAdd:
		c.sum += x * uint64(c.config.Scale)
		return
	case OpMake:
		c.make(m)
		return
	case OpAbort:
		reply.Inline[0] = c.abort()
	case OpRelease:
		c.release(m)
		return
	case OpLease:
		reply.Inline[1] = c.lease(hostabi.Handle(x))
	case OpBurst:
		for t := range uint32(x) {
			reply.T = t
			c.say(reply)
		}
		return
	case OpAsk:
		c.ask(m)
		return
	case OpReply:
		reply.Inline[0] = uint64(len(c.held))
		for i := range c.held {
			c.answer(&c.held[i])
		}
		c.held = c.held[:0]
	case OpHistory:
		reply.Inline = [2]uint64{bits(c.history[0]), bits(c.history[3])}
	case OpConfig:
		reply.Inline = [2]uint64{uint64(c.config.Scale), uint64(c.config.Nested.Value)}
		reply.T, reply.Split, reply.PolicyVersion = uint32(len(c.config.Label)), uint32(c.h.Index), c.h.Run.Seed
	case OpKeep:
		reply.Inline[0] = c.keep()
	default:
		if !c.tellHost(m) {
			return
		}
	}
	c.say(reply)
}

// tellHost runs the operations on the host and reports whether the message must be copied.
func (c *Probe) tellHost(m *hostabi.Message) (copied bool) {
	x := m.Inline[0]
	switch m.Kind {
	case OpStop:
		c.h.Stop([]component.StopReason{"", component.StopReturn, component.StopEnvSteps, component.StopWall}[x%4])
		return false
	case OpBoundary:
		c.h.Boundary()
	case OpFail:
		c.h.Fail(errTold)
		return false
	case OpStat:
		c.h.Stats.Counter("probe/told").Add(x)
		v := math.Float64frombits(m.Inline[1])
		c.h.Stats.Gauge("probe/gauge").Set(v)
		c.h.Stats.Histogram("probe/histogram").Observe(v)
	case OpLog:
		c.h.Log.Warn("probe says " + strconv.FormatUint(x, 10))
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
func (c *Probe) make(m *hostabi.Message) {
	for range max(m.Inline[1], 1) {
		loan, err := c.arena.Loan()
		if err != nil {
			none := *m
			none.T = 1
			c.say(none)
			return
		}
		for i, b := 0, loan.Bytes(); i < len(b); i++ {
			b[i] = byte(m.Inline[0] + uint64(i))
		}
		c.commit(loan, *m, m.Kind, m.Inline[0])
	}
}

// commit commits a block, emits it with the given Kind and Inline[0], and releases its own claim.
func (c *Probe) commit(loan arena.Loan, m hostabi.Message, kind uint16, x uint64) {
	h, err := loan.Commit()
	if err != nil {
		c.h.Fail(err)
		return
	}
	m.Handle, m.Kind, m.Inline = h, kind, [2]uint64{x, uint64(c.config.BlockBytes)}
	c.emit(c.blocks, m)
	if err := c.arena.Release(h); err != nil {
		c.h.Fail(err)
	}
}

func (c *Probe) abort() uint64 {
	loan, err := c.arena.Loan()
	if err != nil {
		return 0
	}
	loan.Bytes()[0] = 1
	if err := loan.Abort(); err != nil {
		c.h.Fail(err)
	}
	return 1
}

func (c *Probe) keep() uint64 {
	loan, err := c.arena.Loan()
	if err != nil {
		return 0
	}
	c.loans = append(c.loans, loan)
	return 1
}

// release sums and releases the held leases.
func (c *Probe) release(m *hostabi.Message) {
	reply := *m
	reply.Handle = 0
	if len(c.leases) == 0 {
		reply.Inline = [2]uint64{}
		c.say(reply)
	}
	for i := range c.leases {
		l := &c.leases[i]
		reply.Inline = [2]uint64{sumOf(l.Bytes()), uint64(l.Handle())}
		if err := l.Release(); err != nil {
			c.h.Fail(err)
		}
		c.say(reply)
	}
	c.leases = c.leases[:0]
}

// lease tries to lease a block.
func (c *Probe) lease(h hostabi.Handle) uint64 {
	l, err := c.h.Arenas.Lease(h)
	if err == nil {
		err = l.Release()
	}
	for i, is := range []error{nil, arena.ErrStale, arena.ErrForeign, arena.ErrRange, arena.ErrState} {
		if errors.Is(err, is) {
			return uint64(i)
		}
	}
	c.h.Fail(err)
	return LeaseStale
}

// onBlock runs the operation of a message on its block.
func (c *Probe) onBlock(m *hostabi.Message) {
	reply := *m
	reply.Handle = 0
	switch m.Kind {
	case BlockSum, BlockTwice:
		reply.Inline = [2]uint64{c.sumLeased(m.Handle, m.Kind == BlockTwice), uint64(m.Handle)}
	case BlockHold:
		l, err := c.h.Arenas.Lease(m.Handle)
		if err != nil {
			c.h.Fail(err)
			return
		}
		c.leases = append(c.leases, l)
		reply.Inline = [2]uint64{uint64(len(c.leases)), uint64(m.Handle)}
	case BlockPass:
		c.emit(c.blocks, *m)
		return
	default:
		return
	}
	c.say(reply)
}

// sumLeased sums a block's bytes, if twice is set with a lease that outlives another one.
func (c *Probe) sumLeased(h hostabi.Handle, twice bool) uint64 {
	l, err := c.h.Arenas.Lease(h)
	if err != nil {
		c.h.Fail(err)
		return 0
	}
	if twice {
		second, err := c.h.Arenas.Lease(h)
		if err = errors.Join(err, l.Release()); err != nil {
			c.h.Fail(err)
			return 0
		}
		l = second
	}
	sum := sumOf(l.Bytes())
	if err := l.Release(); err != nil {
		c.h.Fail(err)
	}
	return sum
}

// ask asks about a block that it keeps on loan.
func (c *Probe) ask(m *hostabi.Message) {
	loan, err := c.arena.Loan()
	if err != nil {
		none := *m
		none.T = 1
		c.say(none)
		return
	}
	binary.LittleEndian.PutUint64(loan.Bytes(), m.Inline[0])
	binary.LittleEndian.PutUint64(loan.Bytes()[8:], 0)
	c.asked = append(c.asked, loan)
	request := *m
	request.Handle = loan.Handle()
	c.emit(c.asks, request)
}

// onAsk answers, or keeps the request until OpReply.
func (c *Probe) onAsk(m *hostabi.Message) {
	if m.Kind == AskLater {
		c.held = append(c.held, *m)
		return
	}
	c.answer(m)
}

func (c *Probe) answer(m *hostabi.Message) {
	var b []byte
	a, err := c.h.Arenas.Of(m.Handle)
	if err == nil {
		b, err = a.Loaned(m.Handle)
	}
	if err != nil || len(b) < 16 {
		lost := *m
		lost.Handle, lost.Kind = 0, askLost
		c.say(lost)
		return
	}
	binary.LittleEndian.PutUint64(b[8:], 2*binary.LittleEndian.Uint64(b)+1)
	c.emit(c.answers, *m)
}

// onAnswer commits a block that has been answered.
func (c *Probe) onAnswer(m *hostabi.Message) {
	i := slices.IndexFunc(c.asked, func(l arena.Loan) bool { return l.Handle() == m.Handle })
	if i < 0 {
		return
	}
	loan := c.asked[i]
	c.asked = slices.Delete(c.asked, i, i+1)
	c.commit(loan, *m, OpAsk, binary.LittleEndian.Uint64(loan.Bytes()[8:]))
	c.settle()
}

func sumOf(b []byte) uint64 {
	sum := uint64(0)
	for _, x := range b {
		sum += uint64(x)
	}
	return sum
}
