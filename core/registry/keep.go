package registry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Kept is a name that is renewed until it is closed or lost.
type Kept struct {
	Name string // as it was added

	names Names
	lease Lease
	stop  context.CancelFunc
	ended sync.WaitGroup
	lost  chan struct{}
	err   error // once lost is closed
}

// Keep adds a name with a TTL and renews it three times as often as it would end, on a goroutine, until Close. The end of ctx ends Keep alone.
func Keep(ctx context.Context, n Names, name, value string, o Options) (*Kept, error) {
	if o.TTL <= 0 {
		return nil, fmt.Errorf("%w: a kept name with a TTL of %v", ErrInvalid, o.TTL)
	}
	lease, err := n.Add(ctx, name, value, o)
	if err != nil {
		return nil, err
	}
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	k := &Kept{Name: name, names: n, lease: lease, stop: stop, lost: make(chan struct{})}
	k.ended.Go(func() { k.renew(renewing, o.TTL) })
	return k, nil
}

// renew returns when ctx ends or the name is lost. A renewal that fails is tried again until the name's time is over.
func (k *Kept) renew(ctx context.Context, ttl time.Duration) {
	ticker := time.NewTicker(max(ttl/3, 1))
	defer ticker.Stop()
	renewed := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		began := time.Now()
		err := k.names.Renew(ctx, k.Name, k.lease, ttl)
		switch {
		case err == nil:
			renewed = began
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrLost) || time.Since(renewed) > ttl:
			k.err = err
			close(k.lost)
			return
		}
	}
}

// Lost returns a channel that is closed when the name is not this one's any more: replaced, deleted, or not renewed in time. See Err.
func (k *Kept) Lost() <-chan struct{} { return k.lost }

// Err returns why the name was lost, nil if it was not.
func (k *Kept) Err() error {
	select {
	case <-k.lost:
		return k.err
	default:
		return nil
	}
}

// Close stops renewing and deletes the name, if it is still this one's.
func (k *Kept) Close(ctx context.Context) error {
	k.stop()
	k.ended.Wait()
	if err := k.names.Delete(ctx, k.Name, k.lease); err != nil && !errors.Is(err, ErrLost) {
		return err
	}
	return nil
}
