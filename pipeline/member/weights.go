package member

import (
	"context"
	"sync"
)

// shelf keeps the newest weights that a joined host has got, by the instances that publish them: all parts of a run there use one copy of each
// version. The zero value is ready. Any goroutine.
type shelf struct {
	mu   sync.Mutex
	list map[string]*newest
}

// newest is the newest version of one policy on a host. Who holds turn reads and writes the other fields.
type newest struct {
	turn    chan struct{} // holds one
	weights               // no bytes before the first version; nobody writes into them
}

// atLeast returns a version from that number on, which get gets unless it is here. Of several callers one gets it, and the others wait for that.
func (s *shelf) atLeast(ctx context.Context, publisher string, number uint64, get func() (weights, error)) (weights, error) {
	n := s.of(publisher)
	select {
	case n.turn <- struct{}{}:
	case <-ctx.Done():
		return weights{}, ctx.Err()
	}
	defer func() { <-n.turn }()
	if n.bytes == nil || n.number < number {
		got, err := get()
		if err != nil {
			return weights{}, err
		}
		n.weights = got
	}
	return n.weights, nil
}

func (s *shelf) of(publisher string) *newest {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.list[publisher]
	if n == nil {
		if s.list == nil {
			s.list = map[string]*newest{}
		}
		n = &newest{turn: make(chan struct{}, 1)}
		s.list[publisher] = n
	}
	return n
}
