package member

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// Parts that follow the same versions, each at its own pace, get each version once, and never an older one than they ask for.
func TestWeights_AreGotOnce(t *testing.T) {
	const parts, versions = 4, 500
	var s shelf
	var gets, newest atomic.Uint64
	var all sync.WaitGroup
	for range parts {
		all.Go(func() {
			for told := uint64(1); told <= versions; told++ {
				for now := newest.Load(); now < told && !newest.CompareAndSwap(now, told); now = newest.Load() {
				}
				w, err := s.atLeast(t.Context(), "learner", told, func() (weights, error) {
					gets.Add(1)
					n := newest.Load()
					return weights{n, []byte{byte(n), byte(n >> 8)}}, nil
				})
				if err != nil || w.number < told || uint64(w.bytes[0])|uint64(w.bytes[1])<<8 != w.number {
					t.Errorf("of version %d or later: %d, %v: %v", told, w.number, w.bytes, err)
					return
				}
			}
		})
	}
	all.Wait()
	if n := gets.Load(); n > versions {
		t.Errorf("%d versions were got %d times", versions, n)
	}
	if w, err := s.atLeast(t.Context(), "rival", 0, func() (weights, error) { return weights{3, []byte{3}}, nil }); w.number != 3 || err != nil {
		t.Errorf("of another publisher: version %d, %v", w.number, err)
	}
}

// A part that cannot get a version leaves that to the next one, and a part that ends does not wait for another.
func TestWeights_OutliveAFailure(t *testing.T) {
	var s shelf
	lost := errors.New("the way to the run is cut")
	getting, fail := make(chan struct{}), make(chan struct{})
	first, over := make(chan error), make(chan error)
	go func() {
		_, err := s.atLeast(t.Context(), "learner", 7, func() (weights, error) {
			close(getting)
			<-fail
			return weights{}, lost
		})
		first <- err
	}()
	<-getting
	ctx, end := context.WithCancel(t.Context())
	go func() {
		_, err := s.atLeast(ctx, "learner", 7, func() (weights, error) { return weights{}, errors.New("nobody else is to get it now") })
		over <- err
	}()
	end()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("a part that has ended: %v", err)
	}
	close(fail)
	if err := <-first; !errors.Is(err, lost) {
		t.Errorf("a part whose way is cut: %v", err)
	}
	w, err := s.atLeast(t.Context(), "learner", 7, func() (weights, error) { return weights{8, []byte{8}}, nil })
	if w.number != 8 || err != nil {
		t.Errorf("the next part: version %d, %v", w.number, err)
	}
}
