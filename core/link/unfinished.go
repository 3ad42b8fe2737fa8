package link

import (
	"github.com/rlhost/rlhost/core/internal/grow"
	"github.com/rlhost/rlhost/hostabi"
)

// Pending is a message that a peer did not finish with: not acknowledged, or about a block on loan and not answered.
type Pending struct {
	Port    int
	Message hostabi.Message
	Claimed bool // the block that the message carries is claimed for it; the claim passes to the caller
}

// Unfinished returns, after Stop, the messages that the peer has not finished with, in the order in which they were
// sent, each once. They and their claims become the caller's, to be given to another link or released. From now on
// Send returns ErrStopped.
func (l *Link) Unfinished() []Pending {
	l.tx.Lock()
	defer l.tx.Unlock()
	l.emptied = true
	list := make([]Pending, 0, l.sent.Len()+len(l.requests.open))
	open := l.requests.open
	for l.sent.Len() > 0 {
		e := l.sent.Pop()
		for len(open) > 0 && open[0].number < e.number {
			list = append(list, open[0].pending())
			open = open[1:]
		}
		asked := len(open) > 0 && open[0].number == e.number
		if asked {
			open = open[1:]
		}
		if asked || !e.asks { // an answer may come before its acknowledgement
			list = append(list, e.pending())
		}
	}
	for i := range open {
		list = append(list, open[i].pending())
	}
	l.requests.open, l.queue = nil, grow.FIFO[hostabi.Message]{}
	return list
}

func (e *entry) pending() Pending {
	return Pending{Port: e.port, Message: e.message, Claimed: e.claimed}
}

// Resend sends messages that another link returned from Unfinished, in order, with their claims. Call it before
// any Send. Ports are this link's.
func (l *Link) Resend(list []Pending) {
	l.tx.Lock()
	defer l.tx.Unlock()
	for i := range list {
		p := &list[i]
		asks := l.config.Host && p.Message.Handle != 0 && !p.Claimed
		l.enter(p.Port, &p.Message, p.Claimed, asks)
	}
}
