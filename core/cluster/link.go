package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// ErrConnect is wrapped by errors of connecting.
var ErrConnect = errors.New("cannot connect")

// ErrKey is wrapped where a server does not know the key.
var ErrKey = errors.New("the server does not admit this key")

// LinkOptions are what a Link is made with: Server, URL, External or Token.
type LinkOptions struct {
	Server   *Server   // in this process
	URL      string    // elsewhere, where everybody may connect
	External *External // a cluster that somebody else runs
	Prefix   string    // with External: all subjects begin with it
	Token    Token     // of a server that asks for keys; its address and certificate
	Identity *Identity // with Token: the key that this host has made, once it is admitted; nil: the token's, which may ask
}

// Link is a connection to a server. It connects again whenever it must. Its methods may be called from any goroutine.
type Link struct {
	conn   *nats.Conn
	js     jetstream.JetStream
	prefix string      // of all subjects
	other  atomic.Bool // another server is in the place of its own

	mu    sync.Mutex
	again chan struct{} // closed when the link has connected again
}

// Connect connects to a server.
func Connect(ctx context.Context, o LinkOptions) (*Link, error) {
	l := &Link{again: make(chan struct{}), prefix: o.Prefix}
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
	url, more, err := o.where(func() { l.other.Store(true) })
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConnect, err)
	}
	if l.conn, err = nats.Connect(url, append(options, more...)...); err != nil {
		return nil, o.refused(url, reason(err))
	}
	if o.External != nil {
		if err := o.External.fits(l.conn); err != nil {
			l.conn.Close()
			return nil, err
		}
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

func (o *LinkOptions) refused(url string, err error) error {
	if o.External != nil {
		return fmt.Errorf("%w: %s: %w", ErrExternal, url, err)
	}
	return fmt.Errorf("%w to %s: %w", ErrConnect, url, err)
}

// where returns the address of a server and how to be let in. It calls other where a server shows another certificate than the token's.
func (o *LinkOptions) where(other func()) (url string, options []nats.Option, err error) {
	switch {
	case o.Server != nil:
		options = append(options, nats.InProcessServer(o.Server.nats))
		if o.Server.owner != nil {
			options = append(options, nats.Nkey(o.Server.owner.Key(), o.Server.owner.pair.Sign))
		}
		return "", options, nil
	case o.External != nil:
		return strings.Join(o.External.Servers, ","), o.External.options(o.Prefix), nil
	case o.URL != "":
		return o.URL, nil, nil
	}
	identity, inbox := o.Identity, askInbox
	if identity != nil {
		inbox = inPrefix + identity.Key()
	} else {
		pair, err := nkeys.FromSeed([]byte(o.Token.Seed))
		if err != nil {
			return "", nil, fmt.Errorf("%w: %w", ErrToken, err)
		}
		if identity, err = identityOf(pair); err != nil {
			return "", nil, fmt.Errorf("%w: %w", ErrToken, err)
		}
	}
	return "tls://" + o.Token.Address, []nats.Option{
		nats.Secure(pinned(o.Token.Fingerprint, other)), nats.TLSHandshakeFirst(), nats.Nkey(identity.Key(), identity.pair.Sign), nats.CustomInboxPrefix(inbox),
	}, nil
}

// reason says what a refusal of the server means.
func reason(err error) error {
	if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) {
		return ErrKey
	}
	return err
}

// ErrNobody is wrapped where nobody answers requests on a subject.
var ErrNobody = errors.New("nobody answers")

// Ask sends a request and returns its answer.
func (l *Link) Ask(ctx context.Context, subject string, data []byte) ([]byte, error) {
	m, err := l.conn.RequestWithContext(ctx, l.prefix+subject, data)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, ErrNobody
	case err != nil:
		return nil, err
	}
	return m.Data, nil
}

// Answer calls answer for each request on a subject, one at a time, until the link is closed. What answer returns is sent back, unless it is nil.
func (l *Link) Answer(subject string, answer func(subject string, data []byte) []byte) error {
	_, err := l.conn.Subscribe(l.prefix+subject, func(m *nats.Msg) {
		if back := answer(strings.TrimPrefix(m.Subject, l.prefix), m.Data); back != nil && m.Reply != "" {
			_ = m.Respond(back) // one that cannot be sent is asked for again
		}
	})
	return err
}

// Over reports whether the link is of no more use: it is closed, or when it connected again the server has refused its key, or another server was there.
func (l *Link) Over() bool { return l.conn.IsClosed() || l.other.Load() }

// Tell sends a message to all who listen to a subject, and returns once the server has it.
func (l *Link) Tell(ctx context.Context, subject string, data []byte) error {
	if err := l.conn.Publish(l.prefix+subject, data); err != nil {
		return err
	}
	return l.Pulse(ctx)
}

// Say is Tell without waiting: what cannot be sent at once is lost.
func (l *Link) Say(subject string, data []byte) { _ = l.conn.Publish(l.prefix+subject, data) }

// answerTime is how long a server is waited for where the caller says nothing.
const answerTime = 5 * time.Second

// Pulse asks the server whether it is awake and returns when it has answered.
func (l *Link) Pulse(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, answerTime)
	defer stop()
	return l.conn.FlushWithContext(ctx)
}
