package testkit

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Cable carries connections to an address, until it is cut.
type Cable struct {
	listener net.Listener
	to       string
	back     atomic.Int64 // bytes from there

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

// NewCable lays a cable, which ends with the test.
func NewCable(t testing.TB, to string) *Cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cable{listener: l, to: to}
	t.Cleanup(func() { c.Cut(); _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			c.join(near)
		}
	}()
	return c
}

// Address is this end of the cable.
func (c *Cable) Address() string { return c.listener.Addr().String() }

// Back returns how many bytes have come from the address.
func (c *Cable) Back() int64 { return c.back.Load() }

// join carries one connection, unless the cable is cut.
func (c *Cable) join(near net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	far, err := net.Dial("tcp", c.to)
	if err != nil {
		_ = near.Close()
		return
	}
	if c.cut {
		_, _ = near.Close(), far.Close()
		return
	}
	c.conns = append(c.conns, near, far)
	go func() { _, _ = io.Copy(near, io.TeeReader(far, counter{&c.back})); _ = near.Close() }()
	go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
}

// counter counts the bytes that are written to it.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return len(b), nil
}

// Cut ends all connections, with what is in them, and refuses new ones until Mend.
func (c *Cable) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

// Mend takes connections again.
func (c *Cable) Mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = false
}
