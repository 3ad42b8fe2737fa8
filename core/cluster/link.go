package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrConnect is wrapped by errors of connecting.
var ErrConnect = errors.New("cannot connect")

// LinkOptions are what a Link is made with: one of the two.
type LinkOptions struct {
	Server *Server // in this process
	URL    string  // elsewhere
}

// Link is a connection to a server. It connects again whenever it must. Its methods may be called from any goroutine.
type Link struct {
	conn *nats.Conn
	js   jetstream.JetStream

	mu    sync.Mutex
	again chan struct{} // closed when the link has connected again
}

// Connect connects to a server.
func Connect(ctx context.Context, o LinkOptions) (*Link, error) {
	l := &Link{again: make(chan struct{})}
	options := []nats.Option{
		// What cannot be sent at once is lost: nobody would know whether its receiver is there when it is sent.
		nats.ReconnectBufSize(-1), nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectHandler(func(*nats.Conn) { l.connectedAgain() }),
		// The library prints errors of subscriptions if nobody takes them.
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}
	if end, ok := ctx.Deadline(); ok {
		options = append(options, nats.Timeout(max(time.Until(end), time.Millisecond)))
	}
	url := o.URL
	if o.Server != nil {
		url, options = "", append(options, nats.InProcessServer(o.Server.nats))
	}
	var err error
	if l.conn, err = nats.Connect(url, options...); err != nil {
		return nil, fmt.Errorf("%w to %s: %w", ErrConnect, url, err)
	}
	if l.js, err = jetstream.New(l.conn); err != nil {
		l.conn.Close()
		return nil, fmt.Errorf("%w to %s: %w", ErrConnect, url, err)
	}
	return l, nil
}

// Close ends the connection. What waits for an answer gets an error.
func (l *Link) Close() { l.conn.Close() }

func (l *Link) connectedAgain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.again)
	l.again = make(chan struct{})
}

// connects returns a channel that is closed when the link connects again.
func (l *Link) connects() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.again
}
