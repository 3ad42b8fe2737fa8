package wrap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/rlhost/rlhost/core/env"
)

// A wrapper's state is a record of each environment, all of one length. In a snapshot the records follow the inner
// environments' state; in the state of one environment a tail says whose record it is. A layer without a state adds nothing.

// tailBytes is the length of the tail: the length of the record, and a sum of the wrapper's name and values.
const tailBytes = 8

var (
	_ env.Stater    = (*wrapped)(nil)
	_ env.Copier    = (*wrapped)(nil)
	_ env.Successor = (*wrapped)(nil)
	_ env.EnvProber = (*wrapped)(nil)
)

// recordBytes is the length of a record; 0 = there is no state.
func (w *wrapped) recordBytes() int {
	if n := w.layer.bytes(); n > 0 || w.steps != nil { // whose state depends on ended episodes
		return w.ends.bytes() + n
	}
	return 0
}

// put writes the record of an environment.
func (w *wrapped) put(index int, dst []byte) {
	w.ends.save(index, dst)
	w.layer.save(index, dst[w.ends.bytes():])
}

// take reads it.
func (w *wrapped) take(index int, src []byte) {
	w.ends.load(index, src)
	w.layer.load(index, src[w.ends.bytes():])
}

// Snapshot returns the state of the batch; see env.Env.
func (w *wrapped) Snapshot() ([]byte, error) {
	if err := w.usable(); err != nil {
		return nil, err
	}
	all, err := w.inner.Snapshot()
	return append(all, w.records()...), err
}

// records returns the records of all environments.
func (w *wrapped) records() []byte {
	n := w.recordBytes()
	if n == 0 {
		return nil
	}
	list := make([]byte, n*w.o.Envs)
	for index := range w.o.Envs {
		w.put(index, list[index*n:][:n])
	}
	return list
}

func (w *wrapped) takeRecords(list []byte) {
	n := w.recordBytes()
	for index := range len(list) / max(n, 1) {
		w.take(index, list[index*n:][:n])
	}
	w.rows = 0
}

// Restore replaces the state by a snapshot.
func (w *wrapped) Restore(snapshot []byte) error {
	own := w.recordBytes() * w.o.Envs
	if len(snapshot) < own {
		return fmt.Errorf("%w: %s: a snapshot of %d bytes, of which %s alone has %d", env.ErrUnsupported, w.o.Name, len(snapshot), w.plugin.text, own)
	}
	at := len(snapshot) - own
	if err := w.inner.Restore(snapshot[:at]); err != nil {
		return err
	}
	w.takeRecords(snapshot[at:])
	w.broken = false
	return nil
}

// CopyFrom is Restore of the other's Snapshot; see env.Copier. A wrapper that differs from the other batch's at its place starts
// from scratch in the running episodes, whose environments it gets.
func (w *wrapped) CopyFrom(from env.Env) error { return w.continueFrom(from, w.copyInner) }

// TakeOver is CopyFrom where the inner environments are taken over; see env.Successor.
func (w *wrapped) TakeOver(from env.Env) error { return w.continueFrom(from, w.takeInner) }

func (w *wrapped) continueFrom(from env.Env, inner func(env.Env) error) error {
	other, ok := from.(*wrapped)
	if !ok || other.o.Envs != w.o.Envs || other.ends.bytes() != w.ends.bytes() {
		return w.unsupported("copy the state of these environments")
	}
	if err := errors.Join(w.usable(), other.usable()); err != nil {
		return err
	}
	same := other.plugin.text == w.plugin.text
	if !same && !w.mayFollow(other.layer) {
		return w.unsupported("continue after a time limit that has just ended an episode")
	}
	if err := inner(other.inner); err != nil {
		return err
	}
	if same {
		w.takeRecords(other.records())
	} else {
		w.follow(other)
	}
	w.rows = 0
	return nil
}

// copyInner gives the inner batch the state of another one.
func (p *passing) copyInner(from env.Env) error {
	if c, ok := p.inner.(env.Copier); ok {
		return c.CopyFrom(from)
	}
	state, err := from.Snapshot()
	if err != nil {
		return err
	}
	return p.inner.Restore(state)
}

// mayFollow reports whether the layer can replace another between two steps. An episode that a limit has ended continues in the
// environment until the limit has reset it, where the reset takes a separate step.
func (w *wrapped) mayFollow(previous layer) bool {
	l, ok := previous.(*limitLayer)
	if _, limits := w.layer.(*limitLayer); !ok || limits {
		return true
	}
	return !slices.Contains(l.due, 1)
}

// follow begins in the running episodes of another batch.
func (w *wrapped) follow(other *wrapped) {
	ends := make([]byte, w.ends.bytes())
	for index := range w.o.Envs {
		other.ends.save(index, ends)
		w.ends.load(index, ends)
		w.layer.begin(index, 0, false)
	}
	if l, ok := w.layer.(*limitLayer); ok {
		if previous, ok := other.layer.(*limitLayer); ok {
			copy(l.due, previous.due)
		}
	}
}

// SaveEnv appends the state of one environment; see env.Stater.
func (w *wrapped) SaveEnv(index int, dst []byte) ([]byte, error) {
	if err := w.usable(); err != nil {
		return dst, err
	}
	inner, ok := w.inner.(env.Stater)
	if !ok {
		return dst, w.unsupported("save one environment")
	}
	dst, err := inner.SaveEnv(index, dst)
	n := w.recordBytes()
	if err != nil || n == 0 {
		return dst, err
	}
	at := len(dst)
	for range n {
		dst = append(dst, 0)
	}
	w.put(index, dst[at:])
	dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	return binary.LittleEndian.AppendUint32(dst, w.plugin.sum), nil
}

// LoadEnv replaces the state of one environment.
func (w *wrapped) LoadEnv(index int, state []byte) error {
	if err := w.usable(); err != nil {
		return err
	}
	inner, ok := w.inner.(env.Stater)
	if !ok {
		return w.unsupported("load one environment")
	}
	n := w.recordBytes()
	if n == 0 {
		return inner.LoadEnv(index, state)
	}
	at := len(state) - tailBytes - n
	if at < 0 || binary.LittleEndian.Uint32(state[at+n:]) != uint32(n) || binary.LittleEndian.Uint32(state[at+n+4:]) != w.plugin.sum {
		return fmt.Errorf("%w: %s: the saved state of an environment without %s around it", env.ErrUnsupported, w.o.Name, w.plugin.text)
	}
	if err := inner.LoadEnv(index, state[:at]); err != nil {
		return err
	}
	w.take(index, state[at:])
	return nil
}

// union returns the spans of two lists of spans in ascending order, which may overlap.
func union(a, b []env.Span) (list []env.Span) {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y env.Span) int { return x.First - y.First })
	for _, s := range all {
		if n := len(list); n > 0 && s.First <= list[n-1].First+list[n-1].Count {
			last := &list[n-1]
			last.Count = max(last.Count, s.First+s.Count-last.First)
			continue
		}
		list = append(list, s)
	}
	return list
}

// sumOf identifies a wrapper by its table.
func sumOf(text string) uint32 { return crc32.ChecksumIEEE([]byte(text)) }

// MapAhead shows the inner batch the blocks to come; see env.BlockMapper.
func (w *wrapped) MapAhead(blocks []env.Block) error {
	if err := w.usable(); err != nil {
		return err
	}
	inner, ok := w.inner.(env.BlockMapper)
	if !ok {
		return nil
	}
	own := make([]env.Block, len(blocks))
	for i, b := range blocks {
		schema, err := w.schemaFor(b.Schema)
		if err != nil {
			return errors.Join(env.ErrUnsupported, err)
		}
		b.Schema = schema
		own[i] = b
	}
	w.rows = 0
	return inner.MapAhead(own)
}

// bothLost joins two errors of one call, each of which may say that environments are lost.
func bothLost(a, b error) error {
	if a == nil {
		return b
	}
	first, second := env.Lost(a), env.Lost(b)
	if first == nil || second == nil {
		if b != nil {
			return b
		}
		return a
	}
	var f *env.Fault
	errors.As(a, &f)
	both := *f
	both.Lost = union(first, second)
	return &both
}
