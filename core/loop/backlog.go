package loop

// backlog is a FIFO of items that grows; bounded by the depths of the connections that fill it.
type backlog struct {
	items   []item
	head, n int
}

func (b *backlog) push(it *item) {
	if b.n == len(b.items) {
		b.grow()
	}
	b.items[(b.head+b.n)&(len(b.items)-1)] = *it
	b.n++
}

// pop removes the oldest item. The pointer is valid until the next push.
func (b *backlog) pop() *item {
	it := &b.items[b.head]
	b.head = (b.head + 1) & (len(b.items) - 1)
	b.n--
	return it
}

// oldest returns the item that pop would remove, of a backlog that is not empty.
func (b *backlog) oldest() *item { return &b.items[b.head] }

func (b *backlog) grow() {
	items := make([]item, max(16, 2*len(b.items)))
	k := copy(items, b.items[b.head:])
	copy(items[k:], b.items[:b.head])
	b.items, b.head = items, 0
}

func (b *backlog) drop() {
	for b.n > 0 {
		it := b.pop()
		it.t.Drop(&it.m)
	}
	b.items = nil
}

// takeOut moves the items that match to the end of list, in order. It leaves the ring itself alone, because it may
// hold the message being handled.
func (b *backlog) takeOut(list []item, match func(Target) bool) []item {
	old := *b
	*b = backlog{}
	for old.n > 0 {
		it := old.pop()
		if match(it.t) {
			list = append(list, *it)
			continue
		}
		b.push(it)
	}
	return list
}
