package loop

import "github.com/rlhost/rlhost/core/internal/grow"

// backlog holds items in order, bounded by the depths of the connections that fill it.
type backlog struct{ grow.FIFO[item] }

func (b *backlog) drop() {
	for b.Len() > 0 {
		it := b.Pop()
		it.t.Drop(&it.m)
	}
	*b = backlog{}
}

// takeOut moves the items that match to the end of list, in order. It leaves the ring itself alone, because it may
// hold the message being handled.
func (b *backlog) takeOut(list []item, match func(Target) bool) []item {
	old := *b
	*b = backlog{}
	for old.Len() > 0 {
		it := old.Pop()
		if match(it.t) {
			list = append(list, *it)
			continue
		}
		*b.Push() = *it
	}
	return list
}
