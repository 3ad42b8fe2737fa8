package channel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
)

// spec is what a channel does, said as plainly as possible: lists that are searched again after each operation.
type spec struct {
	items, bytes int
	closed       bool
	held         map[string][]Item
	gets         []*wish // all that wait, the oldest first
	puts         []*wish
	partial      []*wish // batches that are next and have items, in the order in which they got the first
	memory       []*wish // puts that wait for memory alone and are next, in the order in which they began to
	done         []*wish
}

type wish struct {
	id   int
	call Call
}

// of returns the wishes for a key, in their order.
func of(list []*wish, key string) (found []*wish) {
	for _, w := range list {
		if w.call.Key == key {
			found = append(found, w)
		}
	}
	return found
}

func without(list []*wish, w *wish) []*wish {
	return slices.DeleteFunc(slices.Clone(list), func(x *wish) bool { return x == w })
}

func (s *spec) used() (bytes int) {
	for key, items := range s.held {
		for _, i := range items {
			bytes += int(cost(key, i))
		}
	}
	return bytes
}

func (s *spec) count() (n int) {
	for _, items := range s.held {
		n += len(items)
	}
	return n
}

func (s *spec) place(w *wish) bool { return s.items == 0 || len(s.held[w.call.Key]) < s.items }

func (s *spec) fits(w *wish) bool { return s.used()+int(cost(w.call.Key, w.call.Item)) <= s.bytes }

// prefix is how many of the items a get would take, and whether that is all it wants.
func prefix(c *Call, items []Item) (n int, whole bool) {
	sum := 0.0
	for n < len(items) {
		w := items[n].Weight
		if n > 0 && sum+w > c.Weight {
			return n, true
		}
		n, sum = n+1, sum+w
		if c.Kind == Get || sum >= c.Weight || n == c.Most {
			return n, true
		}
	}
	return n, false
}

func (s *spec) finish(w *wish, err error, items ...Item) {
	w.call.Err, w.call.Items = err, items
	s.done = append(s.done, w)
	s.gets, s.puts, s.partial, s.memory = without(s.gets, w), without(s.puts, w), without(s.partial, w), without(s.memory, w)
}

func (s *spec) give(w *wish, n int) {
	items := s.held[w.call.Key]
	s.held[w.call.Key] = items[n:]
	s.finish(w, nil, items[:n:n]...)
}

func (s *spec) accept(w *wish) {
	s.held[w.call.Key] = append(slices.Clone(s.held[w.call.Key]), w.call.Item)
	s.finish(w, nil)
}

// flow does what a key allows by itself.
func (s *spec) flow(key string) {
	for {
		if gets := of(s.gets, key); len(gets) > 0 {
			n, whole := prefix(&gets[0].call, s.held[key])
			if whole || n > 0 && s.closed {
				s.give(gets[0], n)
				continue
			}
			if s.closed {
				s.finish(gets[0], ErrClosed)
				continue
			}
			if n > 0 && !slices.Contains(s.partial, gets[0]) {
				s.partial = append(s.partial, gets[0])
			}
		}
		puts := of(s.puts, key)
		if len(puts) == 0 || !s.place(puts[0]) {
			return
		}
		if len(s.memory) > 0 || !s.fits(puts[0]) {
			if !slices.Contains(s.memory, puts[0]) {
				s.memory = append(s.memory, puts[0])
			}
			return
		}
		s.accept(puts[0])
	}
}

func (s *spec) settle(key string) {
	s.flow(key)
	for {
		switch changed := s.stuck(); {
		case len(s.memory) > 0 && s.fits(s.memory[0]):
			key = s.memory[0].call.Key
			s.accept(s.memory[0])
		case changed != "":
			key = changed
			next, p := of(s.gets, key)[0], of(s.puts, key)[0]
			n, _ := prefix(&next.call, s.held[key])
			all := append(slices.Clone(s.held[key]), p.call.Item)
			if with, whole := prefix(&next.call, all); n == 0 || whole && with == len(all) {
				s.accept(p)
				n = with
			}
			s.give(next, n)
		case len(s.memory) > 0 && len(s.partial) > 0:
			w := s.partial[0]
			key = w.call.Key
			n, _ := prefix(&w.call, s.held[key])
			s.give(w, n)
		default:
			return
		}
		s.flow(key)
	}
}

// stuck returns a key for which a get and a put wait.
func (s *spec) stuck() string {
	for _, w := range s.gets {
		if len(of(s.puts, w.call.Key)) > 0 {
			return w.call.Key
		}
	}
	return ""
}

func (s *spec) do(w *wish) {
	c := &w.call
	switch {
	case c.Kind == Put && s.closed:
		s.finish(w, ErrClosed)
	case c.Kind == Put && int(cost(c.Key, c.Item)) > s.bytes:
		s.finish(w, ErrTooLarge)
	default:
		if c.Kind == Put {
			s.puts = append(s.puts, w)
		} else {
			s.gets = append(s.gets, w)
		}
		s.settle(c.Key)
		if c.NoWait && !slices.Contains(s.done, w) {
			s.finish(w, c.unable())
			s.settle(c.Key)
		}
	}
}

func (s *spec) expire(w *wish) {
	if gets := of(s.gets, w.call.Key); len(gets) > 0 && gets[0] == w {
		if n, _ := prefix(&w.call, s.held[w.call.Key]); n > 0 {
			s.give(w, n)
			s.settle(w.call.Key)
			return
		}
	}
	s.finish(w, w.call.unable())
	s.settle(w.call.Key)
}

func (s *spec) cancel(w *wish) {
	s.finish(w, ErrCanceled)
	s.settle(w.call.Key)
}

func (s *spec) restore(key string, items []Item) {
	if gets := of(s.gets, key); len(gets) > 0 {
		s.partial = without(s.partial, gets[0])
	}
	s.held[key] = append(slices.Clone(items), s.held[key]...)
	s.settle(key)
}

func (s *spec) close() {
	s.closed = true
	for len(s.puts) > 0 {
		s.finish(s.puts[0], ErrClosed)
	}
	for _, key := range modelKeys {
		s.flow(key)
	}
}

var modelKeys = []string{"a", "b", "c", "default"}

// both are a channel and its specification, which are given the same operations.
type both struct {
	t    *testing.T
	r    *rand.Rand
	m    *Memory
	s    *spec
	next int
	real map[int]*Call
	wait map[int]*wish
	done []int // of the channel
	mine []Item
	key  string // of mine
}

func newBoth(t *testing.T, r *rand.Rand) *both {
	l := Limits{Items: []int{0, 1, 3, 20}[r.IntN(4)], Bytes: int64([]int{500, 3000, 1 << 20}[r.IntN(3)])}
	return &both{t: t, r: r, m: NewMemory(l), s: &spec{items: l.Items, bytes: int(l.Bytes), held: map[string][]Item{}}, real: map[int]*Call{}, wait: map[int]*wish{}}
}

// call draws a call, of weights that add up exactly.
func (b *both) call() Call {
	r := b.r
	c := Call{Kind: Kind(1 + r.IntN(3)), Key: modelKeys[r.IntN(1+r.IntN(len(modelKeys)))], NoWait: r.IntN(4) == 0}
	switch c.Kind {
	case Put:
		data := binary.LittleEndian.AppendUint64(make([]byte, 0, 8), uint64(b.next))
		c.Item = Item{Weight: float64(r.IntN(5)) / 2, Data: append(data, make([]byte, r.IntN(200)*r.IntN(3))...)}
	case GetBatch:
		c.Weight = float64(r.IntN(14)) / 2
		c.Most = r.IntN(2) * r.IntN(6)
	}
	return c
}

func (b *both) step() {
	b.next++
	switch n := b.r.IntN(20); {
	case n < 13:
		c := b.call()
		id, real := b.next, c
		real.Done = func(*Call) { b.done = append(b.done, id) }
		b.real[id] = &real
		w := &wish{id: id, call: c}
		b.wait[id] = w
		b.m.Do(&real)
		b.s.do(w)
	case n < 17 && len(b.wait) > 0:
		b.stop(n < 15)
	case n < 19 && len(b.mine) > 0:
		if err := b.m.Restore(b.key, b.mine...); err != nil {
			b.t.Fatal(err)
		}
		b.s.restore(b.key, b.mine)
		b.mine = nil
	case n == 19 && b.r.IntN(200) == 0:
		b.m.Close()
		b.s.close()
	}
}

// stop ends one of the calls that wait.
func (b *both) stop(cancel bool) {
	ids := make([]int, 0, len(b.wait))
	for id := range b.wait {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	id := ids[b.r.IntN(len(ids))]
	if cancel {
		b.m.Cancel(b.real[id], ErrCanceled)
		b.s.cancel(b.wait[id])
	} else {
		b.m.Expire(b.real[id])
		b.s.expire(b.wait[id])
	}
}

// check compares what is done, and what is left.
func (b *both) check() error {
	var want []int
	for _, w := range b.s.done {
		want = append(want, w.id)
	}
	slices.Sort(want)
	slices.Sort(b.done)
	if !slices.Equal(want, b.done) {
		return fmt.Errorf("done are %v, want %v", b.done, want)
	}
	for _, w := range b.s.done {
		c := b.real[w.id]
		if !errors.Is(c.Err, w.call.Err) || w.call.Err == nil && c.Err != nil {
			return fmt.Errorf("call %d ended with %v, want %v", w.id, c.Err, w.call.Err)
		}
		if len(c.Items)+len(w.call.Items) > 0 && !reflect.DeepEqual(c.Items, w.call.Items) {
			return fmt.Errorf("call %d got %d items, want %d others", w.id, len(c.Items), len(w.call.Items))
		}
		if len(c.Items) > 0 && b.mine == nil && b.r.IntN(3) == 0 {
			b.mine, b.key = slices.Clone(c.Items), c.Key
		}
		delete(b.real, w.id)
		delete(b.wait, w.id)
	}
	b.s.done, b.done = nil, nil
	got, key := b.m.Now("a"), b.s.held["a"]
	if got.Items != b.s.count() || got.Bytes != int64(b.s.used()) || got.WaitingPuts != len(b.s.puts) || got.WaitingGets != len(b.s.gets) || got.Key.Items != len(key) {
		return fmt.Errorf("%+v; want %d items, %d bytes, %d puts and %d gets that wait, %d items of a", got, b.s.count(), b.s.used(), len(b.s.puts), len(b.s.gets), len(key))
	}
	if got.Items == 0 && got.WaitingPuts == 0 && got.WaitingGets == 0 && got.Keys != 0 {
		return fmt.Errorf("%d keys of an idle channel", got.Keys)
	}
	return b.inside()
}

// inside checks what no caller sees.
func (b *both) inside() error {
	if b.m.growing.Len() != len(b.s.partial) {
		return fmt.Errorf("%d batches have items, want %d", b.m.growing.Len(), len(b.s.partial))
	}
	if len(b.s.memory) > 0 && len(b.s.partial) > 0 {
		return errors.New("a put waits for memory beside a batch that cannot grow")
	}
	for _, key := range modelKeys {
		gets, puts := of(b.s.gets, key), of(b.s.puts, key)
		if len(gets) > 0 && len(puts) > 0 {
			return fmt.Errorf("a put and a get of %s wait for each other", key)
		}
		if len(puts) > 0 && b.s.place(puts[0]) && b.s.fits(puts[0]) && len(b.s.memory) == 0 {
			return fmt.Errorf("a put of %s waits although there is room", key)
		}
	}
	return nil
}

// TestMemory_DoesWhatTheSpecificationSays: a million random operations, on channels of all bounds.
func TestMemory_DoesWhatTheSpecificationSays(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	operations := 1_000_000
	if testing.Short() {
		operations = 100_000
	}
	r := rand.New(rand.NewPCG(seed, 0))
	for done := 0; done < operations; {
		b := newBoth(t, r)
		for range 200 + r.IntN(3000) {
			b.step()
			if err := b.check(); err != nil {
				t.Fatalf("seed %d, operation %d of a channel of %+v: %v", seed, b.next, b.m.limits, err)
			}
			if len(b.wait) > 40 {
				b.stop(true) // the specification is slow
				if err := b.check(); err != nil {
					t.Fatalf("seed %d, operation %d, stopped: %v", seed, b.next, err)
				}
			}
			done++
		}
	}
	t.Log("seed " + strconv.FormatUint(seed, 10))
}
