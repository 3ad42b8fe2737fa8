package arena

import "github.com/rlhost/rlhost/hostabi"

// Committed calls fn with the handle of every block that is committed and still claimed by some process. It reads one
// word for each block and claims none: by the time fn is called a block may be free or reused, and Lease then returns
// an error.
func (a *Arena) Committed(fn func(h hostabi.Handle)) {
	for block := range uint32(a.layout.blocks) {
		if w := a.word(block); w.state() == stateLive {
			fn(hostabi.MakeHandle(a.config.ID, block, w.generation()))
		}
	}
}

// HeldBy calls fn with the handle of every committed block on which a process has a claim: that of the holder's number,
// or this one's. Like Committed it claims none.
func (a *Arena) HeldBy(holder int, fn func(h hostabi.Handle)) {
	for block := range uint32(a.layout.blocks) {
		if w := a.word(block); (w.state() == stateLive || w.state() == stateZombie) && w.holders()&(1<<holder) != 0 {
			fn(hostabi.MakeHandle(a.config.ID, block, w.generation()))
		}
	}
}

// Claims returns how many claims this process has on a block, and whether others have any; none if the handle is stale. Other
// goroutines and processes may claim and release meanwhile.
func (a *Arena) Claims(h hostabi.Handle) (own int, others bool) {
	if a.check(h) != nil {
		return 0, false
	}
	w := a.word(h.Block())
	if w.generation() != h.Generation() || w.state() != stateLive && w.state() != stateZombie {
		return 0, false
	}
	if c := a.claims(h.Block()); c.generation() == h.Generation() {
		own = c.count()
	}
	return own, w.holders()&^a.me != 0
}
