package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/registry"
)

// Client reaches the names that another process serves. It implements registry.Names: errors wrap that package's, or are *control.Error.
type Client struct {
	path string

	mu     sync.Mutex
	closed bool
	idle   []connection // the newest last
}

type connection struct {
	*control.Client
	since time.Time // that it is idle
}

// maxIdle is how long a connection is kept for the next request. The server closes one that is silent for a minute.
const maxIdle = 20 * time.Second

var errClosed = errors.New("the client of names is closed")

// NewClient returns a client of the names served at path. It connects with the first request.
func NewClient(path string) *Client { return &Client{path: path} }

// Close ends the connections that do nothing; requests and watches under way end with their own contexts.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	var errs []error
	for _, x := range c.idle {
		errs = append(errs, x.Close())
	}
	c.idle = nil
	return errors.Join(errs...)
}

// connect returns a connection of its own for one request.
func (c *Client) connect(ctx context.Context) (*control.Client, error) {
	x, err := c.idling()
	if x != nil || err != nil {
		return x, err
	}
	return control.Dial(ctx, c.path)
}

// idling takes out a connection that was kept, nil if there is none. It closes the older ones, which the server may have closed.
func (c *Client) idling() (*control.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	for len(c.idle) > 0 {
		x := c.idle[len(c.idle)-1]
		c.idle = c.idle[:len(c.idle)-1]
		if time.Since(x.since) < maxIdle {
			return x.Client, nil
		}
		_ = x.Close() // nothing is under way on it
	}
	return nil, nil
}

// keep keeps a connection for the next request.
func (c *Client) keep(x *control.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = x.Close() // nothing is under way on it
		return
	}
	c.idle = append(c.idle, connection{x, time.Now()})
}

// about makes one request about a name. A name that is none is refused here: on its way, bytes that are no UTF-8 would become others.
func (c *Client) about(ctx context.Context, name string, verb control.Verb, request, reply any, notice func(json.RawMessage)) error {
	if err := registry.CheckRoot(name); err != nil {
		return refused(err)
	}
	return c.do(ctx, verb, request, reply, notice)
}

// do makes one request.
func (c *Client) do(ctx context.Context, verb control.Verb, request, reply any, notice func(json.RawMessage)) error {
	x, err := c.connect(ctx)
	if err != nil {
		return err
	}
	err = uncoded(x.Do(ctx, verb, request, reply, notice))
	if err == nil || isNames(err) {
		c.keep(x)
	} else {
		_ = x.Close() // it may be unusable
	}
	return err
}

func isNames(err error) bool {
	for _, is := range codes {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// uncoded returns the error of a registry that was sent as a code.
func uncoded(err error) error {
	var e *control.Error
	if errors.As(err, &e) && codes[e.Code] != nil {
		return &remoteError{e, codes[e.Code]}
	}
	return err
}

// remoteError is an error of a registry in another process: the code and the words from there, and this process's error of that kind.
type remoteError struct {
	said *control.Error
	is   error
}

// refused returns an error of this process as the registry would have sent it.
func refused(err error) error {
	return &remoteError{control.Errorf(CodeInvalid, "%v", err), registry.ErrInvalid}
}

// Error returns the reason from there.
func (e *remoteError) Error() string { return e.said.Reason }

// Unwrap returns both.
func (e *remoteError) Unwrap() []error { return []error{e.said, e.is} }

// Add gives a name a value. See registry.Names.
func (c *Client) Add(ctx context.Context, name, value string, o registry.Options) (registry.Lease, error) {
	if err := registry.CheckEntry(name, value, o); err != nil {
		return 0, refused(err)
	}
	var r addReply
	err := c.do(ctx, verbAdd, addRequest{Name: name, Value: value, TTL: o.TTL, Replace: o.Replace}, &r, nil)
	return r.Lease, err
}

// AddChild adds a name below another. See registry.Names.
func (c *Client) AddChild(ctx context.Context, name, value string, o registry.Options) (string, registry.Lease, error) {
	if err := registry.CheckEntry(name, value, o); err != nil {
		return "", 0, refused(err)
	}
	var r addReply
	err := c.do(ctx, verbAdd, addRequest{Name: name, Value: value, TTL: o.TTL, Child: true}, &r, nil)
	return r.Name, r.Lease, err
}

// Renew lets a name last longer. See registry.Names.
func (c *Client) Renew(ctx context.Context, name string, l registry.Lease, ttl time.Duration) error {
	return c.about(ctx, name, verbRenew, leaseRequest{name, l, ttl}, &none{}, nil)
}

// Get returns a name's value. See registry.Names.
func (c *Client) Get(ctx context.Context, name string) (string, error) {
	var r valueReply
	err := c.about(ctx, name, verbGet, nameRequest{name}, &r, nil)
	return r.Value, err
}

// List returns a name and all below it. See registry.Names.
func (c *Client) List(ctx context.Context, root string) ([]registry.Entry, error) {
	var r listReply
	err := c.about(ctx, root, verbList, nameRequest{root}, &r, nil)
	return r.Entries, err
}

// Delete deletes one name. See registry.Names.
func (c *Client) Delete(ctx context.Context, name string, l registry.Lease) error {
	return c.about(ctx, name, verbDelete, leaseRequest{Name: name, Lease: l}, &none{}, nil)
}

// Clear deletes a name and all below it. See registry.Names.
func (c *Client) Clear(ctx context.Context, root string) (int, error) {
	var r clearReply
	err := c.about(ctx, root, verbClear, nameRequest{root}, &r, nil)
	return r.Cleared, err
}

// errLeft ends a watch whose loop was left.
var errLeft = errors.New("the watch is over")

// Watch tells what there is, then changes. See registry.Names. It has a connection of its own.
func (c *Client) Watch(ctx context.Context, root string) iter.Seq2[registry.Event, error] {
	return func(yield func(registry.Event, error) bool) {
		watching, leave := context.WithCancelCause(ctx)
		defer leave(nil)
		left := false
		err := c.about(watching, root, verbWatch, nameRequest{root}, &none{}, func(data json.RawMessage) {
			var e registry.Event
			if left {
				return
			}
			if err := json.Unmarshal(data, &e); err != nil {
				left = true
				leave(fmt.Errorf("names: an event: %w", err))
				return
			}
			if left = !yield(e, nil); left {
				leave(errLeft)
			}
		})
		if !errors.Is(err, errLeft) {
			yield(registry.Event{}, err)
		}
	}
}
