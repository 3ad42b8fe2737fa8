package bus_test

import (
	"slices"

	"github.com/rlhost/rlhost/core/bus"
)

func (w *model) hold(c int) { w.components[c].held++ }

func (w *model) release(i int) {
	w.control = append(w.control, func() {
		if c := w.components[i]; c.held > 0 {
			c.held--
			w.resumed(c)
		}
	})
}

func (w *model) redirect(conns []int, to int) {
	var from []*modelComponent
	leads := map[*modelConn]*modelComponent{}
	for k, i := range conns {
		c := w.conns[i]
		if !slices.Contains(from, c.to) {
			from = append(from, c.to)
		}
		leads[c] = w.components[(to+k)%len(w.components)]
	}
	for _, r := range from {
		var kept, out []*modelConn
		for _, list := range []*[]*modelConn{&r.backlog, &w.data} {
			kept = nil
			for _, c := range *list {
				if c.to == r && leads[c] != nil {
					out = append(out, c)
				} else {
					kept = append(kept, c)
				}
			}
			*list = kept
		}
		w.data = append(w.data, out...)
		for c, to := range leads {
			if c.to == r {
				c.to = to
				delete(leads, c)
			}
		}
	}
	for _, i := range conns {
		if c := w.conns[i]; !c.closed && len(c.queue) == 0 {
			w.begin(c)
		}
	}
}

func (w *model) moveSignal(i, sig int) {
	c, to := w.conns[i], w.signals[sig]
	from := c.sig
	if from == to {
		return
	}
	taken := slices.ContainsFunc(to.conns, func(o *modelConn) bool {
		return c.o.Mode == bus.Reply && o.o.Mode == bus.Reply && o.o.Peer == c.o.Peer
	})
	if c.closed || taken {
		w.note("no move of signal %d", sig)
		return
	}
	to.sequence = max(to.sequence, from.sequence)
	if from.newest.Sequence > to.newest.Sequence {
		to.newest = from.newest
	}
	to.turn = from.turn
	from.conns = without(from.conns, func(o *modelConn) bool { return o == c })
	to.conns = append(to.conns, c)
	c.sig = to
	switch p := c.parking; {
	case p == nil:
	case c.o.Mode == bus.Queue:
		w.passOn(c, p, to.queue)
	default:
		old := p.owner
		p.owner = to.owner
		if p.active {
			p.owner.paused++
			w.unpause(old)
		}
	}
}

func (w *model) passOn(c *modelConn, p, to *modelParking) {
	gone := func(o *modelConn) bool { return o == c || o.closed }
	p.open, to.open = without(p.open, gone), append(without(to.open, gone), c)
	if len(p.open) == 0 && len(p.waiting) > 0 {
		to.waiting, p.waiting = append(p.waiting, to.waiting...), nil
		if !to.active {
			to.active = true
			to.owner.paused++
		}
	}
	c.parking = to
	w.settle(p, c)
	w.settle(to, c)
}
