package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// shardWork is the least number of parameters times rows that is worth waking another goroutine for: some 60 µs.
const shardWork = 1 << 20

// team computes the gradient of a minibatch with several shards. How rows are divided depends on their number, the
// network and the number of shards alone, and gradients are added in the order of shards, so results repeat in
// every bit.
type team struct {
	shards []*shard
	work   []chan span // to shard i+1
	ready  chan struct{}
}

// start makes n shards. Every one but the first, which is the caller's, gets a goroutine that lives until stop.
func (t *team) start(n int, shard func() *shard) {
	t.ready = make(chan struct{}, n)
	for i := range n {
		s := shard()
		t.shards = append(t.shards, s)
		if i == 0 {
			continue
		}
		work := make(chan span)
		t.work = append(t.work, work)
		go func() {
			for rows := range work {
				s.rows(rows.lo, rows.hi)
				t.ready <- struct{}{}
			}
			t.ready <- struct{}{}
		}()
	}
}

// stop ends the goroutines and waits for them. It may be called again.
func (t *team) stop() {
	for _, work := range t.work {
		close(work)
		<-t.ready
	}
	t.work = nil
}

// gradient computes the gradient of the minibatch's rows and the sums of its loss. The gradient is valid until the
// next call.
func (t *team) gradient(c *ppo.Config, r ppo.Rates, rows int) ([]float32, ppo.LossSums) {
	first := t.shards[0]
	count := min(len(t.shards), max(1, rows*first.size/shardWork))
	for _, s := range t.shards[:count] {
		s.prepare(c, r, rows)
	}
	cuts := first.batch.order.cuts
	if first.kept > 0 {
		count = min(count, len(cuts)-1)
	}
	bound := func(i int) int {
		if first.kept > 0 {
			return cuts[(len(cuts)-1)*i/count]
		}
		return (rows*i/count + kern.Lanes - 1) / kern.Lanes * kern.Lanes
	}
	for i := 1; i < count; i++ {
		t.work[i-1] <- span{bound(i), min(bound(i+1), rows)}
	}
	first.rows(0, min(bound(1), rows))
	for range count - 1 {
		<-t.ready
	}
	sums := first.dist.sums()
	for _, s := range t.shards[1:count] {
		add := kern.ColumnSums{Rows: 1, N: len(s.grad), X: s.grad, XRow: len(s.grad), Out: first.grad}
		first.set.ColumnSums(&add)
		sums.Add(s.dist.sums())
	}
	return first.grad, sums
}
