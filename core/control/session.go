package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/ipc"
)

// errGone ends a request whose client has gone.
var errGone = errors.New("the client has gone")

// session serves one client: hello, then one request after the other.
type session struct {
	ctx    context.Context // of all requests
	verbs  Verbs
	log    *slog.Logger
	conn   net.Conn
	in     *bufio.Reader
	occupy func(busy bool) bool // see ipc.Conn.Occupy

	writing sync.Mutex
	broken  bool // under writing: the client does not read
}

func newSession(ctx context.Context, verbs Verbs, log *slog.Logger, conn net.Conn, occupy func(bool) bool) *session {
	return &session{ctx: ctx, verbs: verbs, log: log, conn: conn, in: bufio.NewReader(conn), occupy: occupy}
}

// refuse tells a client why it is not served.
func refuse(c *ipc.Conn, err error) {
	why := Errorf(CodeForbidden, "this job is another user's: %v", err)
	switch {
	case errors.Is(err, ipc.ErrFull):
		why = Errorf(CodeBusy, "%d requests are under way in this job", maxClients)
	case errors.Is(err, errClosing):
		why = Errorf(CodeEnded, "%v", errClosing)
	}
	for _, v := range []any{hello{Protocol}, answer{Error: why}} {
		frame, err := encodeFrame(v)
		if err != nil || writeFrame(c, frame) != nil {
			return // a fresh socket has room for both: this one is broken
		}
	}
}

// serve returns when the client has disconnected, is silent for too long or sends malformed frames, or the server is
// closed.
func (c *session) serve() {
	defer c.conn.Close() // the client may have closed it first
	if err := c.greet(); err != nil {
		c.complain(err)
		return
	}
	for {
		q, err := c.next(idleTime)
		if err != nil {
			c.complain(err)
			return
		}
		if !c.occupy(true) {
			c.complain(Errorf(CodeEnded, "%v", errClosing))
			return
		}
		err = c.handle(q)
		if !c.occupy(false) || err != nil {
			c.complain(err)
			return
		}
	}
}

// greet exchanges hellos.
func (c *session) greet() error {
	if err := c.send(hello{Protocol}); err != nil {
		return err
	}
	frame, err := c.frame(frameTime)
	if err != nil {
		return err
	}
	return checkHello(frame, "client", "job")
}

// frame reads one frame. It may take wait to begin.
func (c *session) frame(wait time.Duration) ([]byte, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return nil, err
	}
	if _, err := c.in.Peek(1); err != nil {
		return nil, err
	}
	if err := c.conn.SetReadDeadline(time.Now().Add(frameTime)); err != nil {
		return nil, err
	}
	return readFrame(c.in)
}

// next reads one request.
func (c *session) next(wait time.Duration) (q ask, err error) {
	frame, err := c.frame(wait)
	if err != nil {
		return q, err
	}
	return q, decode(frame, &q)
}

// handle answers one request. It returns an error when the connection is unusable.
func (c *session) handle(q ask) error {
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	unwatch := c.watch(cancel)
	reply, err := c.call(ctx, q, c.notice(ctx, cancel))
	cancel(nil) // a notice that comes after the answer is refused
	if gone := unwatch(); gone != nil {
		return gone
	}
	if err != nil {
		return c.send(answer{Error: asError(ctx, err)})
	}
	data, err := json.Marshal(reply)
	if err == nil {
		err = c.send(answer{Reply: data})
	}
	if errors.Is(err, errUnsent) || data == nil {
		return c.send(answer{Error: Errorf(CodeFailed, "the answer to %q cannot be sent: %v", q.Verb, err)})
	}
	return err
}

// watch ends the request when the client disconnects or sends before it was answered. The returned function ends the
// watch and returns an error if that has happened.
func (c *session) watch(cancel context.CancelCauseFunc) (unwatch func() error) {
	if err := c.conn.SetReadDeadline(time.Time{}); err != nil {
		cancel(errGone)
		return func() error { return errGone }
	}
	ended := make(chan error, 1)
	go func() {
		_, err := c.in.Peek(1)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = nil
		case err == nil:
			err = fmt.Errorf("%w: a request before the last one was answered", ErrFrame)
			cancel(err)
		default:
			err = errGone
			cancel(err)
		}
		ended <- err
	}()
	return func() error {
		_ = c.conn.SetReadDeadline(time.Unix(1, 0)) // a closed connection has woken it
		return <-ended
	}
}

// notice returns the function that sends the request's notices. A failed send ends the request.
func (c *session) notice(ctx context.Context, cancel context.CancelCauseFunc) Notice {
	return func(v any) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		data, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if err = c.send(answer{Notice: data}); err != nil && !errors.Is(err, errUnsent) {
			cancel(errGone)
		}
		return err
	}
}

// errUnsent: the value cannot be encoded as a frame, so nothing was sent.
var errUnsent = errors.New("unsent")

// send writes a frame. After an error, perhaps in the middle of a frame, it sends nothing more.
func (c *session) send(v any) error {
	frame, err := encodeFrame(v)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnsent, err)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.broken {
		return errGone
	}
	err = writeFrame(c.conn, frame)
	c.broken = err != nil
	return err
}

// complain tells the client why the connection ends, if there is a reason that it can do something about.
func (c *session) complain(err error) {
	var e *Error
	switch {
	case errors.As(err, &e):
	case errors.Is(err, ErrFrame):
		e = Errorf(CodeBad, "%v", err)
	case err == nil, errors.Is(err, errGone), errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return
	case errors.Is(err, os.ErrDeadlineExceeded):
		e = Errorf(CodeLate, "the client has been silent for too long")
	default:
		c.log.Debug("control: client lost", "err", err)
		return
	}
	_ = c.send(answer{Error: e}) // it may have gone
}

// asError returns what the client is told.
func asError(ctx context.Context, err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	if errors.Is(context.Cause(ctx), errClosing) {
		return Errorf(CodeEnded, "%v", errClosing)
	}
	return Errorf(CodeFailed, "%v", err)
}
