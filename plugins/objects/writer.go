package objects

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/objects/wire"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/items"
	"github.com/rlhost/rlhost/plugins/objects/store"
)

// writer makes entries of messages.
type writer struct {
	h       *component.Host
	config  config
	store   *store.Store
	session *store.Session
	dropped *stat.Counter
	object  uint32 // 0: not known
	bytes   int    // of its blocks
}

func newWriter(h *component.Host, s *store.Store, c config) (*writer, error) {
	session, err := s.Session("component " + h.Name)
	if err != nil {
		return nil, err
	}
	w := &writer{h: h, config: c, store: s, session: session, dropped: h.Stats.Counter("objects/dropped_entries")}
	h.Slot("put", func(m *hostabi.Message) { w.take(m, true) })
	h.Slot("push", func(m *hostabi.Message) { w.take(m, false) })
	return w, nil
}

// take makes an entry of a message. Slots do not wait: one for which there is no room is dropped, and counted.
func (w *writer) take(m *hostabi.Message, replace bool) {
	data, err := w.encode(m)
	if err == nil {
		err = w.write(data, replace)
	}
	switch {
	case errors.Is(err, wire.ErrFull), errors.Is(err, wire.ErrBusy):
		w.dropped.Add(1)
	case err != nil:
		w.h.Fail(fmt.Errorf("%s %v: %w", w.config.Takes, m.Handle, err))
	}
}

// encode returns what rlhost.objects in Python reads as a dict.
func (w *writer) encode(m *hostabi.Message) ([]byte, error) {
	if w.config.Takes == component.PayloadEpisode {
		return items.OfEpisode(m).AppendPlain(nil), nil
	}
	t, lease, err := trajectory.Lease(w.h.Arenas, m.Handle)
	if err != nil {
		return nil, err
	}
	return items.PlainBlock(t), lease.Release()
}

// write makes an entry. A program may have removed the object, or made it larger, which ends in one more try.
func (w *writer) write(data []byte, replace bool) error {
	for range 2 {
		if err := w.ensure(len(data)); err != nil {
			return err
		}
		err := w.commit(data, replace)
		if !errors.Is(err, wire.ErrRemoved) {
			return err
		}
		w.object = 0
	}
	return fmt.Errorf("object %q: %w again and again", w.config.Object, wire.ErrBusy)
}

// ensure makes the object, or makes it larger, where an entry does not fit.
func (w *writer) ensure(bytes int) error {
	if w.object != 0 && bytes <= w.bytes {
		return nil
	}
	id, err := w.store.Grow(w.config.Object, wire.Config{Capacity: w.config.Capacity, Tracks: []wire.Track{{Bytes: bytes}}})
	if err != nil {
		return err
	}
	layout, err := w.store.Layout(id)
	if err != nil {
		return err
	}
	w.object, w.bytes = id, layout.Columns[0].Track.Bytes
	return nil
}

func (w *writer) commit(data []byte, replace bool) error {
	begin, err := w.do(store.Op{Kind: store.OpNew, Object: w.object})
	if errors.Is(err, wire.ErrFull) && replace {
		if err := w.drop(); err != nil {
			return err
		}
		begin, err = w.do(store.Op{Kind: store.OpNew, Object: w.object})
	}
	if err != nil {
		return err
	}
	memory, err := w.session.Memory(begin.Claim, 0)
	if err == nil {
		copy(memory, data)
		_, err = w.do(store.Op{Kind: store.OpCommit, Claim: begin.Claim, Values: []wire.Value{wire.ValueOf(wire.Plain, len(data))}})
	}
	if err != nil && !errors.Is(err, wire.ErrRemoved) {
		_, abortErr := w.do(store.Op{Kind: store.OpAbort, Claim: begin.Claim})
		err = errors.Join(err, abortErr)
	}
	return err
}

// drop takes the oldest entry out of the object. Its readers keep it, on a spare block if there is one.
func (w *writer) drop() error {
	oldest, err := w.do(store.Op{Kind: store.OpPop, Object: w.object, Lend: true})
	if errors.Is(err, wire.ErrEmpty) {
		return nil // all room is readers'
	}
	if err != nil {
		return err
	}
	_, err = w.do(store.Op{Kind: store.OpRelease, Claim: oldest.Claim})
	return err
}

// do does an operation that does not wait.
func (w *writer) do(op store.Op) (*store.Op, error) {
	op.Done = func(*store.Op) {}
	w.session.Do(&op)
	return &op, op.Err
}
