package objects

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/objects/wire"
	"github.com/rlhost/rlhost/core/shm"
)

// grace is the time beyond the deadline of an answer after which the host counts as lost.
const grace = 5 * time.Second

// connection pairs replies with requests.
type connection struct {
	path       string
	socket     *shm.Socket
	over       sync.WaitGroup // the receiving goroutine
	seq        atomic.Uint32
	roundTrips atomic.Uint64

	mu      sync.Mutex
	lost    error               // why the connection ended
	waiting map[uint32]*pending // requests without a reply
}

// pending is a request without a reply yet.
type pending struct {
	reply wire.Reply
	files []*os.File
	err   error
	over  chan struct{}
}

func (c *connection) init(path string, socket *shm.Socket) {
	c.path, c.socket, c.waiting = path, socket, map[uint32]*pending{}
}

// end closes the connection; it returns false if the user had already closed it.
func (c *connection) end() bool {
	c.mu.Lock()
	first := !errors.Is(c.lost, ErrClosed)
	c.lost = ErrClosed
	c.mu.Unlock()
	if first {
		_ = c.socket.Close() // a lost host has closed it already
		c.over.Wait()
	}
	return first
}

// receive hands out replies until the connection ends.
func (c *connection) receive() {
	buf := make([]byte, wire.MaxFrame)
	for {
		n, files, err := c.socket.Receive(buf)
		if err == nil {
			err = c.deliver(buf[:n], files)
		}
		if err != nil {
			c.lose(err)
			return
		}
	}
}

func (c *connection) deliver(frame []byte, files []*os.File) error {
	p := &pending{}
	err := wire.ParseReply(&p.reply, frame)
	c.mu.Lock()
	waits := c.waiting[p.reply.Seq]
	delete(c.waiting, p.reply.Seq)
	c.mu.Unlock()
	if err != nil || waits == nil {
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
		if err == nil && p.reply.Op == wire.OpHello {
			err = p.reply.Err() // the refusal of a connection answers no request
		}
		return err
	}
	waits.reply, waits.files = p.reply, files
	close(waits.over)
	return nil
}

// lose ends all requests.
func (c *connection) lose(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost == nil {
		c.lost = fmt.Errorf("%s: %w: %w", c.path, ErrLost, err)
	}
	for seq, p := range c.waiting {
		p.err = c.lost
		delete(c.waiting, seq)
		close(p.over)
	}
}

// call sends a request and waits for its reply; it returns the host's error as an error.
func (c *connection) call(ctx context.Context, r *wire.Request) (*wire.Reply, error) {
	p, err := c.exchange(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, f := range p.files {
		_ = f.Close() // none was requested
	}
	return &p.reply, nil
}

func (c *connection) exchange(ctx context.Context, r *wire.Request) (*pending, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.Wait = waitOf(ctx)
	p := &pending{over: make(chan struct{})}
	if err := c.start(r, p); err != nil {
		return nil, err
	}
	select {
	case <-p.over:
	case <-ctx.Done():
		c.hurry(ctx, r.Seq, p)
	}
	if p.err != nil {
		return nil, p.err
	}
	c.roundTrips.Add(1)
	if err := p.reply.Err(); err != nil {
		return nil, ended(ctx, err)
	}
	return p, nil
}

// ended adds the reason of ctx to the error of a request that ctx ended.
func ended(ctx context.Context, err error) error {
	if errors.Is(err, wire.ErrCanceled) {
		return fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return fmt.Errorf("%w: %w", err, context.DeadlineExceeded)
	}
	return err
}

// waitOf returns how long the host should wait on behalf of ctx.
func waitOf(ctx context.Context) time.Duration {
	if ctx.Value(noWait{}) != nil {
		return 0
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return wire.Forever
	}
	return max(time.Until(deadline), 1)
}

// start sends a request whose reply goes to p.
func (c *connection) start(r *wire.Request, p *pending) error {
	r.Seq = c.seq.Add(1)
	frame, err := wire.AppendRequest(nil, r)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLimit, err)
	}
	c.mu.Lock()
	err = c.lost
	if err == nil {
		c.waiting[r.Seq] = p
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if err := c.socket.Send(frame); err != nil {
		c.lose(err)
		return p.err // set by lose; nil if no reply is due
	}
	return nil
}

// hurry waits for the reply to a request after its deadline. The host knows the deadline, but not that a context was
// cancelled, so hurry tells it. A host that does not answer even then is lost.
func (c *connection) hurry(ctx context.Context, seq uint32, p *pending) {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		c.post(&wire.Request{Op: wire.OpCancel, Index: uint64(seq)})
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.over:
	case <-timer.C:
		c.lose(errors.New("it does not answer"))
		_ = c.socket.Close() // later replies come too late
		<-p.over
	}
}

// post sends a request without a reply. If the host is gone, so is the claim that the request ends.
func (c *connection) post(r *wire.Request) {
	frame, err := wire.AppendRequest(nil, r)
	if err != nil {
		panic(fmt.Sprintf("objects: %v", err)) // its size is fixed
	}
	if err := c.socket.Send(frame); err != nil {
		c.lose(err)
	}
}
