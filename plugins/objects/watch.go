package objects

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/objects/wire"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/objects/store"
)

// watch emits a signal when an object has new entries: once for all that come before the loop has its turn.
type watch struct {
	h       *component.Host
	changed *bus.Signal
	store   *store.Store
	session *store.Session
	name    string
	end     context.CancelFunc
	running sync.WaitGroup
	newest  atomic.Uint64 // index, for the loop
	posted  atomic.Bool   // the loop will look at it
}

func newWatch(h *component.Host, s *store.Store, name string) (*watch, error) {
	session, err := s.Session("watch " + h.Name)
	if err != nil {
		return nil, err
	}
	w := &watch{h: h, changed: h.Signal("changed"), store: s, session: session, name: name}
	var ctx context.Context
	ctx, w.end = context.WithCancel(context.Background())
	w.running.Go(func() { w.run(ctx) })
	return w, nil
}

func (w *watch) stop() {
	w.end()
	w.running.Wait()
}

// run waits for entries until ctx or the session ends.
func (w *watch) run(ctx context.Context) {
	var next uint64
	var origin uint32
	for {
		open := store.Op{Kind: store.OpOpen, Name: w.name, Wait: wire.Forever}
		if err := w.session.Wait(ctx, &open); err != nil {
			return
		}
		if now, err := w.store.Stat(open.Object); err == nil && now.Origin != origin {
			next, origin = 0, now.Origin // another object of that name
		}
		if err := w.follow(ctx, open.Object, &next); !errors.Is(err, wire.ErrRemoved) {
			return
		}
	}
}

// follow tells of the entries of an object from next on, until an error.
func (w *watch) follow(ctx context.Context, object uint32, next *uint64) error {
	for {
		latest := store.Op{Kind: store.OpLatest, Object: object, Index: *next, Wait: wire.Forever}
		if err := w.session.Wait(ctx, &latest); err != nil {
			return err
		}
		index := latest.Views[0].Index
		release := store.Op{Kind: store.OpRelease, Claim: latest.Claim}
		if err := w.session.Wait(ctx, &release); err != nil {
			return err
		}
		*next = index + 1
		w.newest.Store(index)
		if !w.posted.Swap(true) {
			w.h.Receiver.Post(w.tell, hostabi.Message{})
		}
	}
}

// tell runs on the component's loop.
func (w *watch) tell(*hostabi.Message) {
	w.posted.Store(false)
	if err := w.changed.Emit(hostabi.Message{Inline: [2]uint64{w.newest.Load()}}); err != nil {
		w.h.Fail(err)
	}
}
