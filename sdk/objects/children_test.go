package objects

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/rlhost/rlhost/core/objects/wire"
)

// Parts of child processes.

// hold claims "x" in every possible way, prints a word, and waits to be killed.
func hold(ctx context.Context, s *Store) error {
	now := NoWait(ctx)
	_, err := s.New(now, "x", wire.ValueOf(wire.Bytes, 8))
	_, pushErr := s.PushBytes(now, "x", []byte("spare"))
	_, readErr := s.Read(now, "x", 0)
	_, popErr := s.Pop(now, "x")
	if err := errors.Join(err, pushErr, readErr, popErr); err != nil {
		return err
	}
	fmt.Println("holding")
	select {}
}

// pushForEver pushes to "x" until killed.
func pushForEver(ctx context.Context, s *Store) error {
	for n := uint64(os.Getpid()) << 32; ; n++ {
		w, err := s.New(ctx, "x", wire.ValueOf(wire.Bytes, 4096))
		if err != nil {
			return err
		}
		stamp(w.Bytes(0), n)
		if _, err := w.Commit(ctx); err != nil {
			return err
		}
		if n&0xff == 0 {
			fmt.Println("more")
		}
	}
}

// churn pushes, reads and pops a few times, and ends without claims.
func churn(ctx context.Context, s *Store) error {
	data := make([]byte, 4096)
	for n := range 20 {
		stamp(data, uint64(os.Getpid())<<32+uint64(n))
		if _, err := s.PushBytes(ctx, "x", data); err != nil {
			return err
		}
		for _, read := range []func() (*Entry, error){
			func() (*Entry, error) { return s.ReadLatest(NoWait(ctx), "x", 0) },
			func() (*Entry, error) { return s.Pop(ctx, "x") },
		} {
			e, err := read()
			if errors.Is(err, ErrEmpty) {
				continue // another process popped it
			}
			if err != nil {
				return err
			}
			if err := errors.Join(torn(e.Bytes(0)), e.Release()); err != nil {
				return err
			}
		}
	}
	return nil
}

// play is a writer in the race between read_latest and push.
func play(ctx context.Context, s *Store) error {
	data := make([]byte, 4096)
	for n := range 400 {
		stamp(data, uint64(os.Getpid())<<32+uint64(n))
		if _, err := s.PushBytes(ctx, "x", data); err != nil {
			return err
		}
		e, err := s.ReadLatest(NoWait(ctx), "x", 0)
		if errors.Is(err, ErrEmpty) {
			continue // other processes popped them all
		}
		if err != nil {
			return err
		}
		index := e.Index()
		if err := torn(e.Bytes(0)); err != nil {
			return err
		}
		if index > 0 && n%2 == 0 { // make room: other processes still read the entry
			if err := s.Delete(ctx, "x", index-1, true); err != nil && !errors.Is(err, ErrNoEntry) {
				return err
			}
		}
		if p, err := s.Pop(NoWait(ctx), "x"); err == nil {
			err = errors.Join(torn(p.Bytes(0)), p.Release())
			if err != nil {
				return err
			}
		} else if !errors.Is(err, ErrEmpty) {
			return err
		}
		if err := errors.Join(torn(e.Bytes(0)), e.Release()); err != nil {
			return err
		}
	}
	return nil
}

// integrity reads batches of 128 of 16 objects, whose entry i holds the stamp i.
func integrity(ctx context.Context, s *Store) error {
	indices := make([]uint64, 128)
	for range 4 {
		for o := range 16 {
			for i := range indices {
				indices[i] = rand.Uint64N(256)
			}
			b, err := s.BatchRead(ctx, fmt.Sprintf("o%d", o), indices)
			if err != nil {
				return err
			}
			for i, index := range indices {
				view, err := View[uint64](b.Entry(i), 0)
				if err := errors.Join(err, torn(b.Entry(i).Bytes(0))); err != nil {
					return err
				}
				if want := index + uint64(o)<<32; view[0] != want || b.Entry(i).Index() != index {
					return fmt.Errorf("object %d entry %d holds %d, want %d", o, index, view[0], want)
				}
			}
			if err := b.Release(); err != nil {
				return err
			}
		}
	}
	return nil
}

// halfWrite locks entry 0 of "x", writes half of it, prints a word, and waits to be killed.
func halfWrite(ctx context.Context, s *Store) error {
	e, err := s.Read(ctx, "x", 0)
	if err != nil {
		return err
	}
	l, err := e.Lock(ctx)
	if err != nil {
		return err
	}
	a, err := Slice[int64](l, 0)
	if err != nil {
		return err
	}
	for i := range a[:len(a)/2] {
		a[i]++
	}
	fmt.Println("locked")
	select {}
}

// scribble adds to all numbers of entry 1 of "x", one after another under its lock, until killed.
func scribble(ctx context.Context, s *Store) error {
	e, err := s.Read(ctx, "x", 1)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		l, err := e.Lock(ctx)
		if err != nil {
			return err
		}
		a, err := Slice[int64](l, 0)
		if err != nil {
			return err
		}
		for range 2000 { // so that most of its time is under the lock
			for i := range a {
				a[i]++
			}
		}
		if err := l.Unlock(); err != nil {
			return err
		}
		if n%16 == 0 {
			fmt.Println("more")
		}
	}
}
