package channel

import (
	"context"
	"time"
)

var _ Channel = (*Memory)(nil)

// wait does a call and waits until it is done, or ctx ends.
func (m *Memory) wait(ctx context.Context, c *Call, limit time.Duration) error {
	done := make(chan struct{})
	c.Done = func(*Call) { close(done) }
	m.Do(c)
	select {
	case <-done:
		return c.Err
	default:
	}
	if limit > 0 {
		timer := time.AfterFunc(limit, func() { m.Expire(c) })
		defer timer.Stop()
	}
	select {
	case <-done:
		return c.Err
	case <-ctx.Done():
		m.Cancel(c, context.Cause(ctx))
		<-done
		return c.Err
	}
}

// Put adds an item. See Channel.
func (m *Memory) Put(ctx context.Context, key string, i Item) error {
	return m.wait(ctx, &Call{Kind: Put, Key: key, Item: i}, 0)
}

// TryPut adds an item if there is room. See Channel.
func (m *Memory) TryPut(ctx context.Context, key string, i Item) error {
	return m.wait(ctx, &Call{Kind: Put, Key: key, Item: i, NoWait: true}, 0)
}

// Get takes an item. See Channel.
func (m *Memory) Get(ctx context.Context, key string) (Item, error) {
	return m.one(ctx, &Call{Kind: Get, Key: key})
}

// TryGet takes an item if there is one. See Channel.
func (m *Memory) TryGet(ctx context.Context, key string) (Item, error) {
	return m.one(ctx, &Call{Kind: Get, Key: key, NoWait: true})
}

func (m *Memory) one(ctx context.Context, c *Call) (Item, error) {
	if err := m.wait(ctx, c, 0); err != nil {
		return Item{}, err
	}
	return c.Items[0], nil
}

// GetBatch takes a batch. See Channel.
func (m *Memory) GetBatch(ctx context.Context, key string, b Batch) ([]Item, error) {
	c := &Call{Kind: GetBatch, Key: key, Weight: b.Weight, Most: b.Most}
	err := m.wait(ctx, c, b.Wait)
	return c.Items, err
}

// Peek returns an item that stays. See Channel.
func (m *Memory) Peek(_ context.Context, key string) (item Item, err error) {
	err = m.Peeked(key, func(i Item) { item = i })
	return item, err
}

// PutBack puts items back. See Channel.
func (m *Memory) PutBack(_ context.Context, key string, items ...Item) error {
	return m.Restore(key, items...)
}

// Stat tells of the channel. See Channel.
func (m *Memory) Stat(_ context.Context, key string) (Stat, error) { return m.Now(key), nil }

// Stop closes the channel. See Channel.
func (m *Memory) Stop(context.Context) error {
	m.Close()
	return nil
}
