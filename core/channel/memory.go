package channel

import (
	"cmp"
	"container/list"
	"fmt"
	"sync"

	"github.com/rlhost/rlhost/core/internal/grow"
)

// Limits of a Memory.
type Limits struct {
	Items int   // most items of a key; 0 = any number
	Bytes int64 // most bytes of items, each with its key and ItemCost; 0 is 1 GiB
}

// Kind is what a Call does.
type Kind uint8

// Kinds of calls.
const (
	Put Kind = 1 + iota
	Get
	GetBatch
)

// Call is a put or a get under way. Its caller fills it in, gives it to Do, and reads it again once Done has been called.
type Call struct {
	Kind   Kind
	Key    string
	NoWait bool    // it ends at once
	Item   Item    // to put
	Weight float64 // see Batch
	Most   int     // see Batch

	Items []Item // that it got
	Roomy bool   // after a put: the channel has less than half of what it takes
	Err   error

	// Done is called once, perhaps before Do returns, on any goroutine. It may call the channel.
	Done func(c *Call)

	lane    *lane         // while it waits
	at      *list.Element // in its lane's list
	room    *list.Element // in the list of puts that wait for memory
	growing *list.Element // in the list of batches that have items
	taken   int           // of the lane's oldest items, which a batch that waits would get
	sum     float64       // of their weights
	next    *Call         // that is done after it
}

// lane is a key that has an item or a caller.
type lane struct {
	key    string
	items  grow.FIFO[Item]
	weight float64
	gets   list.List // *Call, the first to be served first
	puts   list.List // *Call, that wait for room
}

func (l *lane) idle() bool { return l.items.Len() == 0 && l.gets.Len() == 0 && l.puts.Len() == 0 }

// Memory is a channel in this process. It implements Channel; Do and Cancel are for callers that must not wait.
type Memory struct {
	limits Limits

	mu      sync.Mutex
	closed  bool
	lanes   map[string]*lane
	spare   []*lane   // empty ones
	rooms   list.List // *Call: puts that wait for memory alone and are next in their lane, the oldest first
	growing list.List // *Call: batches that are next in their lane and have items, in the order in which they got the first
	items   int
	bytes   int64
	gets    int     // that wait
	puts    int     // that wait
	touched []*lane // see settle
	stat    Stat
	first   *Call // of calls that are done, whose Done has to be called
	last    *Call
}

// maxSpare is how many lanes are kept for the next keys.
const maxSpare = 64

// NewMemory returns an empty one.
func NewMemory(l Limits) *Memory {
	l.Bytes = cmp.Or(l.Bytes, 1<<30)
	return &Memory{limits: l, lanes: map[string]*lane{}}
}

// Do begins a call.
func (m *Memory) Do(c *Call) {
	m.mu.Lock()
	if err := m.check(c); err != nil {
		m.finish(c, err)
	} else {
		m.begin(c)
	}
	m.unlock()
}

// unlock unlocks mu and calls Done of what is done.
func (m *Memory) unlock() {
	c := m.first
	m.first, m.last = nil, nil
	m.mu.Unlock()
	for c != nil {
		next := c.next
		c.next = nil
		c.Done(c)
		c = next
	}
}

// finish notes that a call is done.
func (m *Memory) finish(c *Call, err error) {
	c.Err = err
	if m.last == nil {
		m.first = c
	} else {
		m.last.next = c
	}
	m.last = c
}

func (m *Memory) check(c *Call) error {
	if err := checkKey(c.Key); err != nil {
		return err
	}
	if c.Kind != Put {
		return checkWeight("a batch of a weight", c.Weight)
	}
	if err := checkWeight("a weight", c.Item.Weight); err != nil {
		return err
	}
	switch {
	case m.closed:
		return ErrClosed
	case cost(c.Key, c.Item) > m.limits.Bytes:
		return fmt.Errorf("%w: it counts %d bytes, the channel takes %d", ErrTooLarge, cost(c.Key, c.Item), m.limits.Bytes)
	}
	return nil
}

// cost is what an item counts of the limit of bytes.
func cost(key string, i Item) int64 { return int64(len(i.Data)) + int64(len(key)) + ItemCost }

// begin starts a call that has been checked. Where it cannot end now it waits, or fails.
func (m *Memory) begin(c *Call) {
	l := m.lane(c.Key)
	if c.Kind == Put && m.rooms.Len() == 0 && m.hasPlace(l) && m.hasBytes(c) { // so none of its lane waits
		m.accept(l, c)
	} else if c.Kind == Put {
		c.lane, c.at = l, l.puts.PushBack(c)
		m.puts++
	} else {
		c.lane, c.at, c.taken, c.sum = l, l.gets.PushBack(c), 0, 0
		m.gets++
	}
	m.settle(l)
	if c.NoWait && c.lane != nil {
		m.leave(c)
		m.finish(c, c.unable())
		m.settle(l)
	}
	m.prune(l)
}

// unable is why a call whose time is over has nothing.
func (c *Call) unable() error {
	if c.Kind == Put {
		return ErrFull
	}
	return ErrEmpty
}

// lane returns the lane of a key, made if there is none.
func (m *Memory) lane(key string) *lane {
	if l := m.lanes[key]; l != nil {
		return l
	}
	l := &lane{}
	if n := len(m.spare); n > 0 {
		l, m.spare = m.spare[n-1], m.spare[:n-1]
	}
	l.key = key
	m.lanes[key] = l
	return l
}

// prune takes out a lane that nobody needs.
func (m *Memory) prune(l *lane) {
	if !l.idle() || m.lanes[l.key] != l {
		return
	}
	delete(m.lanes, l.key)
	l.weight = 0
	if len(m.spare) < maxSpare && l.items.Cap() <= maxSpare {
		m.spare = append(m.spare, l)
	}
}

// hasPlace reports whether a lane may have one more item.
func (m *Memory) hasPlace(l *lane) bool { return m.limits.Items == 0 || l.items.Len() < m.limits.Items }

// hasBytes reports whether there is memory for the item of a put.
func (m *Memory) hasBytes(c *Call) bool { return m.bytes+cost(c.Key, c.Item) <= m.limits.Bytes }

// accept adds the item of a put.
func (m *Memory) accept(l *lane, c *Call) {
	*l.items.Push() = c.Item
	m.hold(l, c.Item, 1)
	m.stat.Puts++
	c.Roomy = 2*m.bytes < m.limits.Bytes && (m.limits.Items == 0 || 2*l.items.Len() < m.limits.Items)
	m.finish(c, nil)
}

// hold counts an item that has come, or with -1 gone.
func (m *Memory) hold(l *lane, i Item, n int) {
	m.items += n
	m.bytes += int64(n) * cost(l.key, i)
	l.weight += float64(n) * i.Weight
}

// leave takes a call that waits out of all lists.
func (m *Memory) leave(c *Call) {
	if c.Kind == Put {
		c.lane.puts.Remove(c.at)
		m.puts--
		if c.room != nil {
			m.rooms.Remove(c.room)
		}
	} else {
		c.lane.gets.Remove(c.at)
		m.gets--
		m.shrunk(c)
	}
	c.lane, c.at, c.room = nil, nil, nil
}

// shrunk notes that a batch has no items.
func (m *Memory) shrunk(c *Call) {
	if c.growing != nil {
		m.growing.Remove(c.growing)
	}
	c.taken, c.sum, c.growing = 0, 0, nil
}

// settle ends all calls that can end after a change of a lane.
func (m *Memory) settle(l *lane) {
	m.touched = append(m.touched[:0], l)
	m.flow(l)
	for {
		if l = m.next(); l == nil {
			return
		}
		m.touched = append(m.touched, l)
		m.flow(l)
	}
}

// next makes the next change of a lane that another change has made possible, and returns the lane, or nil where there is none.
func (m *Memory) next() *lane {
	if m.rooms.Len() > 0 && m.hasBytes(m.rooms.Front().Value.(*Call)) {
		return m.admit(m.rooms.Front().Value.(*Call))
	}
	for len(m.touched) > 0 {
		l := m.touched[len(m.touched)-1]
		if l.gets.Len() > 0 && l.puts.Len() > 0 {
			return m.relieve(l)
		}
		m.touched = m.touched[:len(m.touched)-1]
	}
	if m.rooms.Len() > 0 && m.growing.Len() > 0 {
		return m.give(m.growing.Front().Value.(*Call)) // it cannot grow, because the channel is full
	}
	return nil
}

// flow ends the gets of a lane that are complete and lets in its puts, as far as there is room.
func (m *Memory) flow(l *lane) {
	for m.serve(l) && m.hasPlace(l) {
		c := l.puts.Front().Value.(*Call)
		if m.rooms.Len() > 0 || !m.hasBytes(c) {
			if c.room == nil {
				c.room = m.rooms.PushBack(c)
			}
			break
		}
		m.admit(c)
	}
	m.prune(l)
}

// serve ends the next gets of a lane that can end. It reports whether puts wait.
func (m *Memory) serve(l *lane) bool {
	for l.gets.Len() > 0 {
		c := l.gets.Front().Value.(*Call)
		switch {
		case m.complete(c):
			m.give(c)
		case m.closed:
			m.leave(c)
			m.finish(c, ErrClosed)
		default:
			return l.puts.Len() > 0
		}
	}
	return l.puts.Len() > 0
}

// relieve ends the next get of a lane whose next put waits: with the item of the put, which goes through and needs no room, where the get has
// none or that is its last one, else without it.
func (m *Memory) relieve(l *lane) *lane {
	c, p := l.gets.Front().Value.(*Call), l.puts.Front().Value.(*Call)
	if c.taken == 0 || c.wants(p.Item) {
		m.admit(p)
		m.complete(c)
	}
	return m.give(c)
}

// admit ends a put that has waited.
func (m *Memory) admit(c *Call) *lane {
	l := c.lane
	m.leave(c)
	m.accept(l, c)
	return l
}

// tolerance lets a sum of ten weights of 0.1 reach a weight of 1.
const tolerance = 1e-9

func (c *Call) reached(sum float64) bool { return sum >= c.Weight*(1-tolerance) }

func (c *Call) exceeded(sum float64) bool { return sum > c.Weight*(1+tolerance) }

// complete looks at the items of the next get of a lane and reports whether it can end.
func (m *Memory) complete(c *Call) bool {
	l := c.lane
	for c.taken < l.items.Len() {
		w := l.items.At(c.taken).Weight
		if c.taken > 0 && c.exceeded(c.sum+w) {
			return true
		}
		c.taken, c.sum = c.taken+1, c.sum+w
		if c.Kind == Get || c.reached(c.sum) || c.taken == c.Most {
			return true
		}
	}
	if c.taken > 0 && c.growing == nil {
		c.growing = m.growing.PushBack(c)
	}
	return c.taken > 0 && m.closed
}

// wants reports whether one more item, if it came now, would be the last of the next get of a lane.
func (c *Call) wants(i Item) bool {
	if c.taken > 0 && c.exceeded(c.sum+i.Weight) {
		return false
	}
	return c.Kind == Get || c.reached(c.sum+i.Weight) || c.taken+1 == c.Most
}

// give ends the next get of a lane with the items that it would get.
func (m *Memory) give(c *Call) *lane {
	l, n := c.lane, c.taken
	c.Items = c.Items[:0]
	for range n {
		at := l.items.Pop()
		m.hold(l, *at, -1)
		c.Items = append(c.Items, *at)
		*at = Item{} // the collector may have its data
	}
	m.stat.Gets += uint64(n)
	m.leave(c)
	m.finish(c, nil)
	return l
}

// Cancel ends a call with an error, if it waits. Its items stay.
func (m *Memory) Cancel(c *Call, why error) bool {
	return m.end(c, func() { m.leave(c); m.finish(c, why) })
}

// Expire ends a call whose time is over, if it waits: a batch that is next in its lane gets what there is, others fail with ErrFull or ErrEmpty.
func (m *Memory) Expire(c *Call) bool {
	return m.end(c, func() {
		if c.taken > 0 {
			m.give(c)
			return
		}
		m.leave(c)
		m.finish(c, c.unable())
	})
}

func (m *Memory) end(c *Call, how func()) bool {
	m.mu.Lock()
	defer m.unlock()
	l := c.lane
	if l == nil {
		return false
	}
	how()
	m.settle(l)
	return true
}

// Peeked calls fn with the oldest item of a key. It returns ErrEmpty if there is none. fn must not call the channel, and the item stays
// there at least until fn has returned.
func (m *Memory) Peeked(key string, fn func(Item)) error {
	if err := checkKey(key); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lanes[key]
	if l == nil || l.items.Len() == 0 {
		return ErrEmpty
	}
	fn(*l.items.At(0))
	return nil
}

// Restore puts items back; see Channel.PutBack.
func (m *Memory) Restore(key string, items ...Item) error {
	if err := checkKey(key); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.unlock()
	l := m.lane(key)
	if l.gets.Len() > 0 {
		m.shrunk(l.gets.Front().Value.(*Call)) // it counts from the first item again
	}
	for i := len(items) - 1; i >= 0; i-- {
		*l.items.Unpop() = items[i]
		m.hold(l, items[i], 1)
	}
	m.stat.Returned += uint64(len(items))
	m.settle(l)
	m.prune(l)
	return nil
}

// Lose counts items that a client held when it died.
func (m *Memory) Lose(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stat.Lost += uint64(n)
}

// Close closes the channel; see Channel.Stop. A second call does nothing.
func (m *Memory) Close() {
	m.mu.Lock()
	defer m.unlock()
	m.closed = true
	for _, l := range m.lanes {
		for l.puts.Len() > 0 {
			c := l.puts.Front().Value.(*Call)
			m.leave(c)
			m.finish(c, ErrClosed)
		}
		m.flow(l)
	}
}

// Now tells of the channel and of one key; "" is none.
func (m *Memory) Now(key string) Stat {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stat
	s.Items, s.Bytes, s.Keys, s.Closed = m.items, m.bytes, len(m.lanes), m.closed
	s.MaxItems, s.MaxBytes = m.limits.Items, m.limits.Bytes
	s.WaitingPuts, s.WaitingGets = m.puts, m.gets
	s.Key = KeyStat{Key: key}
	if l := m.lanes[key]; l != nil {
		s.Key.Items, s.Key.Weight = l.items.Len(), l.weight
	}
	return s
}

// Keys tells of the keys with items: up to most of them, in any order.
func (m *Memory) Keys(most int) (keys []KeyStat) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.lanes {
		if len(keys) == most {
			break
		}
		if l.items.Len() > 0 {
			keys = append(keys, KeyStat{l.key, l.items.Len(), l.weight})
		}
	}
	return keys
}
