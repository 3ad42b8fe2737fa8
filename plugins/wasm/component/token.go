package component

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/stat"

	"github.com/rlhost/rlhost/hostabi"
)

// leased are the blocks that a guest keeps beyond its slots.
type leased struct {
	arenas *arena.Set
	blocks [maxWindows]atomic.Uint64 // by place, the handle; 0: none
}

// Holds calls fn with each of them. Any goroutine.
func (l *leased) Holds(fn func(a *arena.Arena, h hostabi.Handle)) {
	for i := range l.blocks {
		h := hostabi.Handle(l.blocks[i].Load())
		if h == 0 {
			continue
		}
		if a, err := l.arenas.Of(h); err == nil {
			fn(a, h)
		}
	}
}

// tokens are the blocks that a guest can name. A token is a place in the list, with the number of times that the place has been used.
type tokens struct {
	arenas *arena.Set
	leased *leased
	most   int // leases at once
	leases int
	list   [maxWindows]known
	free   []uint8 // places that name nothing
	places int     // that have been used

	returned *stat.Counter // leases that the guest has not ended itself
}

// known is a block that a guest can name.
type known struct {
	handle  hostabi.Handle // 0: none
	payload string         // of the slot that it came to
	window  *window        // where it is mapped, nil if the slot does not look at blocks
	leases  int
	uses    uint32
	slot    bool // the message that names it is being handled
}

// Parts of a token.
const placeBits = 9 // of the place, plus one: 0 is no token

func (t *tokens) token(place uint8) uint32 { return t.list[place].uses<<placeBits | uint32(place) + 1 }

// take names the block of a message with a payload; ok is false if there is no room.
func (t *tokens) take(h hostabi.Handle, payload string, w *window) (token uint32, ok bool) {
	var place uint8
	switch n := len(t.free); {
	case n > 0:
		place, t.free = t.free[n-1], t.free[:n-1]
	case t.places < len(t.list):
		place = uint8(t.places)
		t.places++
		if t.free == nil {
			t.free = make([]uint8, 0, len(t.list))
		}
	default:
		return 0, false
	}
	k := &t.list[place]
	*k = known{handle: h, payload: payload, window: w, uses: k.uses + 1, slot: true}
	return t.token(place), true
}

// find returns the block that a token names, or nil.
func (t *tokens) find(token uint32) *known {
	place := token&(1<<placeBits-1) - 1
	if place >= uint32(len(t.list)) || t.list[place].handle == 0 || t.token(uint8(place)) != token {
		return nil
	}
	return &t.list[place]
}

// drop ends the slot that a block came to.
func (t *tokens) drop(token uint32) {
	k := t.find(token)
	if k == nil {
		return
	}
	k.slot = false
	t.forget(token, k)
}

// forget frees the place of a block that nothing names any more.
func (t *tokens) forget(token uint32, k *known) {
	if k.leases == 0 && !k.slot {
		k.handle, k.window = 0, nil
		t.free = append(t.free, uint8(token&(1<<placeBits-1)-1))
	}
}

// lease claims a block. An error says that the guest has too many.
func (t *tokens) lease(token uint32) (hostabi.Status, error) {
	k := t.find(token)
	if k == nil {
		return hostabi.StatusArgument, nil
	}
	if t.leases == t.most {
		return 0, fmt.Errorf("it keeps %d leases of blocks and asks for another: give them back, or raise limits.leases", t.most)
	}
	if err := t.arenas.Retain(k.handle); err != nil {
		return hostabi.StatusState, nil
	}
	t.count(token, k, 1)
	return hostabi.StatusOK, nil
}

// count counts leases of a block that begin or end.
func (t *tokens) count(token uint32, k *known, n int) {
	t.leases += n
	k.leases += n
	if k.window != nil {
		k.window.pins += n
	}
	h := k.handle
	if k.leases == 0 {
		h = 0
	}
	t.leased.blocks[token&(1<<placeBits-1)-1].Store(uint64(h))
}

// release ends a lease.
func (t *tokens) release(token uint32) hostabi.Status {
	k := t.find(token)
	if k == nil || k.leases == 0 {
		return hostabi.StatusArgument
	}
	if err := t.arenas.Release(k.handle); err != nil {
		return hostabi.StatusState
	}
	t.count(token, k, -1)
	t.forget(token, k)
	return hostabi.StatusOK
}

// releaseAll ends all leases, and counts them.
func (t *tokens) releaseAll() error {
	t.returned.Add(uint64(t.leases))
	var errs []error
	for place := range t.list[:t.places] {
		k, token := &t.list[place], t.token(uint8(place))
		for k.leases > 0 {
			errs = append(errs, t.arenas.Release(k.handle))
			t.count(token, k, -1)
		}
		if k.handle != 0 {
			t.forget(token, k)
		}
	}
	return errors.Join(errs...)
}
