package link

import (
	"slices"

	"github.com/rlhost/rlhost/hostabi"
)

// maxAsked bounds how many of a peer's requests are remembered.
const maxAsked = 1 << 16

// question names the row of a block on loan that a request is about.
type question struct {
	block hostabi.Handle
	row   uint32
}

// requests are the unanswered requests about blocks on loan, in order. Guarded by Link.tx.
type requests struct {
	open  []entry    // of this end
	asked []question // of the peer, each as often as answers are due
}

// answers reports whether m, which is about to be sent, answers a request of the peer, which then has one answer less to come.
func (r *requests) answers(m *hostabi.Message) bool {
	i := slices.Index(r.asked, question{m.Handle, m.T})
	if i >= 0 {
		r.asked = slices.Delete(r.asked, i, i+1)
	}
	return i >= 0
}

// arrived takes the request that m answers out of the open ones; other messages are requests, which get that many answers. It
// reports whether there was room to record one.
func (r *requests) arrived(m *hostabi.Message, answers int) bool {
	for i := range r.open {
		if e := &r.open[i]; e.message.Handle == m.Handle && e.message.T == m.T {
			r.open = slices.Delete(r.open, i, i+1)
			return true
		}
	}
	if len(r.asked)+answers > maxAsked {
		return false
	}
	for range answers {
		r.asked = append(r.asked, question{m.Handle, m.T})
	}
	return true
}
