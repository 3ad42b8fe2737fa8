package bus_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
)

// claims is a Retainer that knows who holds what.
type claims struct {
	mu       sync.Mutex
	held     map[hostabi.Handle]int
	refuse   map[hostabi.Handle]bool // Retain fails
	mistakes int                     // releases of blocks that were not held
	retains  int
}

func newClaims() *claims {
	return &claims{held: make(map[hostabi.Handle]int), refuse: make(map[hostabi.Handle]bool)}
}

func (c *claims) Retain(h hostabi.Handle) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse[h] {
		return errStale
	}
	c.held[h]++
	c.retains++
	return nil
}

func (c *claims) Release(h hostabi.Handle) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[h] == 0 {
		c.mistakes++
		return fmt.Errorf("release of %v, which is not held", h)
	}
	if c.held[h]--; c.held[h] == 0 {
		delete(c.held, h)
	}
	return nil
}

// of returns how often h is held.
func (c *claims) of(h hostabi.Handle) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[h]
}

// total returns how many claims there are.
func (c *claims) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, k := range c.held {
		n += k
	}
	return n
}

func (c *claims) expectBalance(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.held) != 0 || c.mistakes != 0 {
		t.Errorf("after the end %d blocks are held and %d were released too often", len(c.held), c.mistakes)
	}
}

var errStale = errors.New("stale handle")
