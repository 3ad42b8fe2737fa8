package registry

import (
	"cmp"
	"container/heap"
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of a Memory.
type Limits struct {
	Entries int // names with a value; 0 is 1<<20
	Bytes   int // of all names and values together; 0 is 64 MiB
}

// Memory keeps names in this process.
type Memory struct {
	limits Limits

	mu      sync.Mutex
	root    node
	entries int
	bytes   int
	leases  Lease     // given so far
	ends    deadlines // of names with a TTL
	timer   *time.Timer
}

// NewMemory returns an empty one.
func NewMemory(l Limits) *Memory {
	l.Entries, l.Bytes = cmp.Or(l.Entries, 1<<20), cmp.Or(l.Bytes, 64<<20)
	return &Memory{limits: l}
}

// node is a place in the tree. It exists while it has an entry, a node below or a watch.
type node struct {
	parent  *node
	part    string
	below   map[string]*node
	entry   *entry
	watches map[*watch]struct{}
}

type entry struct {
	name  string
	value string
	lease Lease
	ends  time.Time // zero: never
	place int       // in deadlines
}

// size is what an entry counts of Limits.Bytes.
func (e *entry) size() int { return len(e.name) + len(e.value) }

// find returns the node of a name, nil if there is none.
func (m *Memory) find(name string) *node {
	n := &m.root
	if name == "" {
		return n
	}
	for part := range strings.SplitSeq(name, "/") {
		if n = n.below[part]; n == nil {
			return nil
		}
	}
	return n
}

// make returns the node of a name, made if there is none.
func (m *Memory) make(name string) *node {
	n := &m.root
	if name == "" {
		return n
	}
	for part := range strings.SplitSeq(name, "/") {
		next := n.below[part]
		if next == nil {
			next = &node{parent: n, part: part}
			if n.below == nil {
				n.below = map[string]*node{}
			}
			n.below[part] = next
		}
		n = next
	}
	return n
}

// prune takes out nodes that nothing needs, from n up.
func prune(n *node) {
	for n.parent != nil && n.entry == nil && len(n.below) == 0 && len(n.watches) == 0 {
		delete(n.parent.below, n.part)
		n = n.parent
	}
}

// tell tells everybody who watches n or what is above it.
func (n *node) tell(e Event) {
	for ; n != nil; n = n.parent {
		for w := range n.watches {
			w.add(e)
		}
	}
}

// Add gives a name a value. See Names.
func (m *Memory) Add(_ context.Context, name, value string, o Options) (Lease, error) {
	if err := checkEntry(name, value, o); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.add(name, value, o)
}

// add adds a name that has been checked, with mu held.
func (m *Memory) add(name, value string, o Options) (Lease, error) {
	m.expire(time.Now())
	old := &entry{}
	if n := m.find(name); n != nil && n.entry != nil {
		if !o.Replace {
			return 0, fmt.Errorf("%w: %s", ErrExists, name)
		}
		old = n.entry
	}
	e := &entry{name: name, value: value, lease: m.leases + 1}
	bytes, entries := m.bytes+e.size()-old.size(), m.entries
	if old.lease == 0 {
		entries++
	}
	if bytes > m.limits.Bytes || entries > m.limits.Entries {
		return 0, fmt.Errorf("%w: %d names of %d bytes, at most %d and %d", ErrFull, m.entries, m.bytes, m.limits.Entries, m.limits.Bytes)
	}
	m.leases, m.bytes, m.entries = e.lease, bytes, entries
	m.ends.remove(old)
	n := m.make(name)
	n.entry = e
	m.last(e, o.TTL)
	n.tell(Event{Set, Entry{name, value}})
	return e.lease, nil
}

// AddChild adds a name below another. See Names.
func (m *Memory) AddChild(_ context.Context, name, value string, o Options) (string, Lease, error) {
	o.Replace = false
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		child := name + "/" + strings.ToLower(rand.Text()[:8])
		if err := checkEntry(child, value, o); err != nil {
			return "", 0, err
		}
		if n := m.find(child); n != nil && n.entry != nil {
			continue
		}
		l, err := m.add(child, value, o)
		return child, l, err
	}
}

// Renew lets a name last longer. See Names.
func (m *Memory) Renew(_ context.Context, name string, l Lease, ttl time.Duration) error {
	if err := cmp.Or(check(name), checkTTL(ttl)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire(time.Now())
	n := m.find(name)
	if n == nil || n.entry == nil || n.entry.lease != l {
		return fmt.Errorf("%w: %s", ErrLost, name)
	}
	m.ends.remove(n.entry)
	m.last(n.entry, ttl)
	return nil
}

// last sets when an entry ends, with mu held.
func (m *Memory) last(e *entry, ttl time.Duration) {
	if ttl == 0 {
		return
	}
	e.ends = time.Now().Add(ttl)
	heap.Push(&m.ends, e)
	m.wake()
}

// wake sets the timer to the next end, with mu held.
func (m *Memory) wake() {
	if len(m.ends) == 0 {
		return
	}
	wait := time.Until(m.ends[0].ends)
	if m.timer == nil {
		m.timer = time.AfterFunc(wait, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.expire(time.Now())
			m.wake()
		})
		return
	}
	m.timer.Reset(wait)
}

// expire deletes the names whose time is over, with mu held.
func (m *Memory) expire(now time.Time) {
	for len(m.ends) > 0 && !m.ends[0].ends.After(now) {
		m.drop(m.find(m.ends[0].name))
	}
}

// drop deletes the entry of a node, with mu held.
func (m *Memory) drop(n *node) {
	e := n.entry
	m.ends.remove(e)
	m.entries--
	m.bytes -= e.size()
	n.entry = nil
	n.tell(Event{Deleted, Entry{Name: e.name}})
	prune(n)
}

// Get returns a name's value. See Names.
func (m *Memory) Get(_ context.Context, name string) (string, error) {
	if err := check(name); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire(time.Now())
	if n := m.find(name); n != nil && n.entry != nil {
		return n.entry.value, nil
	}
	return "", fmt.Errorf("%w: %s", ErrUnknown, name)
}

// List returns a name and all below it. See Names.
func (m *Memory) List(_ context.Context, root string) ([]Entry, error) {
	if err := checkRoot(root); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire(time.Now())
	return list(m.find(root)), nil
}

// list returns the entries of a node and of all below it, sorted.
func list(n *node) (entries []Entry) {
	n.visit(func(n *node) { entries = append(entries, Entry{n.entry.name, n.entry.value}) })
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries
}

// visit calls fn for a node and all below it that have entries. fn may drop them.
func (n *node) visit(fn func(*node)) {
	if n == nil {
		return
	}
	for _, b := range n.below {
		b.visit(fn)
	}
	if n.entry != nil {
		fn(n)
	}
}

// Delete deletes one name. See Names.
func (m *Memory) Delete(_ context.Context, name string, l Lease) error {
	if err := check(name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire(time.Now())
	n := m.find(name)
	switch {
	case l != 0 && (n == nil || n.entry == nil || n.entry.lease != l):
		return fmt.Errorf("%w: %s", ErrLost, name)
	case n == nil || n.entry == nil:
		return fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	m.drop(n)
	return nil
}

// Clear deletes a name and all below it. See Names.
func (m *Memory) Clear(_ context.Context, root string) (n int, err error) {
	if err := checkRoot(root); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire(time.Now())
	m.find(root).visit(func(at *node) {
		m.drop(at)
		n++
	})
	return n, nil
}

// Watch tells what there is, then changes. See Names.
func (m *Memory) Watch(ctx context.Context, root string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := checkRoot(root); err != nil {
			yield(Event{}, err)
			return
		}
		w, n := m.watch(root)
		defer m.unwatch(w, n)
		for {
			for _, e := range w.take() {
				if !yield(e, nil) {
					return
				}
			}
			select {
			case <-ctx.Done():
				yield(Event{}, context.Cause(ctx))
				return
			case <-w.news:
			}
		}
	}
}

func (m *Memory) watch(root string) (*watch, *node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire(time.Now())
	n := m.make(root)
	w := &watch{news: make(chan struct{}, 1)}
	for _, e := range list(n) {
		w.add(Event{Set, e})
	}
	w.add(Event{Kind: Listed})
	if n.watches == nil {
		n.watches = map[*watch]struct{}{}
	}
	n.watches[w] = struct{}{}
	return w, n
}

func (m *Memory) unwatch(w *watch, n *node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(n.watches, w)
	prune(n)
}

// watch has the events that a watch has not told yet, the newest of each name: however slow its reader is, they are not more than names.
type watch struct {
	news chan struct{}

	mu     sync.Mutex
	events []Event
	place  map[string]int // of a name's event in events
}

func (w *watch) add(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.place[e.Name]; ok {
		w.events[at] = e
		return
	}
	if w.place == nil {
		w.place = map[string]int{}
	}
	w.place[e.Name] = len(w.events)
	w.events = append(w.events, e)
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// take returns the events since it was last called.
func (w *watch) take() []Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.events
	w.events, w.place = nil, nil
	return events
}

// deadlines is a heap of entries, the next end first.
type deadlines []*entry

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].ends.Before(d[j].ends) }
func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].place, d[j].place = i, j
}

// Push adds an entry, for package heap.
func (d *deadlines) Push(x any) {
	e := x.(*entry)
	e.place = len(*d)
	*d = append(*d, e)
}

// Pop takes the last entry, for package heap.
func (d *deadlines) Pop() any {
	e := (*d)[len(*d)-1]
	(*d)[len(*d)-1] = nil
	*d = (*d)[:len(*d)-1]
	return e
}

// remove takes an entry out, if it ends at all.
func (d *deadlines) remove(e *entry) {
	if e.ends.IsZero() {
		return
	}
	heap.Remove(d, e.place)
	e.ends = time.Time{}
}
