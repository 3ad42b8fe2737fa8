package registry

import (
	"cmp"
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
	leases  Lease // given so far
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
	end   *time.Timer // nil: it lasts
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
	if err := CheckEntry(name, value, o); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.add(name, value, o)
}

// add adds a name that has been checked, with mu held.
func (m *Memory) add(name, value string, o Options) (Lease, error) {
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
	old.stay()
	n := m.make(name)
	n.entry = e
	m.endAfter(n, o.TTL)
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
		if err := CheckEntry(child, value, o); err != nil {
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
	if err := cmp.Or(CheckName(name), CheckTTL(ttl)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	if n == nil || n.entry == nil || n.entry.lease != l {
		return fmt.Errorf("%w: %s", ErrLost, name)
	}
	n.entry.stay()
	m.endAfter(n, ttl)
	return nil
}

// endAfter sets when the entry of a node ends, with mu held.
func (m *Memory) endAfter(n *node, ttl time.Duration) {
	if ttl == 0 {
		return
	}
	e := n.entry
	var end *time.Timer
	end = time.AfterFunc(ttl, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if n.entry == e && e.end == end {
			m.drop(n)
		}
	})
	e.end = end
}

// stay lets an entry last until it is deleted.
func (e *entry) stay() {
	if e.end != nil {
		e.end.Stop() // if it is too late, the timer finds that it is not the entry's any more
		e.end = nil
	}
}

// drop deletes the entry of a node, with mu held.
func (m *Memory) drop(n *node) {
	e := n.entry
	e.stay()
	m.entries--
	m.bytes -= e.size()
	n.entry = nil
	n.tell(Event{Deleted, Entry{Name: e.name}})
	prune(n)
}

// Get returns a name's value. See Names.
func (m *Memory) Get(_ context.Context, name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.find(name); n != nil && n.entry != nil {
		return n.entry.value, nil
	}
	return "", fmt.Errorf("%w: %s", ErrUnknown, name)
}

// List returns a name and all below it. See Names.
func (m *Memory) List(_ context.Context, root string) ([]Entry, error) {
	if err := CheckRoot(root); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
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
	if err := CheckName(name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
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
	if err := CheckRoot(root); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.find(root).visit(func(at *node) {
		m.drop(at)
		n++
	})
	return n, nil
}

// Watch tells what there is, then changes. See Names.
func (m *Memory) Watch(ctx context.Context, root string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := CheckRoot(root); err != nil {
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
