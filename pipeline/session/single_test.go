package session

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

// A flood of requests is one piece of work at a time, whose result all get; the first who goes takes nothing from the others.
func TestSingle_OneDoesTheWorkOfAll(t *testing.T) {
	t.Parallel()
	var s single[int]
	var made, waiting atomic.Int64
	begun, release := make(chan struct{}), make(chan struct{})
	first, leave := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := s.do(first, func(ctx context.Context) (int, error) {
			close(begun)
			<-ctx.Done()
			return 0, ctx.Err()
		})
		gone <- err
	}()
	<-begun
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			waiting.Add(1)
			got, err := s.do(t.Context(), func(context.Context) (int, error) {
				<-release
				return int(made.Add(1)), nil
			})
			if got < 1 || err != nil {
				t.Errorf("%d, %v", got, err)
			}
		})
	}
	testkit.Until(t, "all have come", func() bool { return waiting.Load() == 50 })
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.do(late, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("who does not wait: %v", err)
	}
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the first: %v", err)
	}
	testkit.Until(t, "another does it", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.doing != nil })
	close(release)
	all.Wait()
	if n := made.Load(); n > 25 { // a later caller does it again
		t.Errorf("%d pieces of work for 50 who asked at once", n)
	}
}
