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

// refuse sends a client the reason why it is not served.
func refuse(c *ipc.Conn, clients int, err error) {
	why := Errorf(CodeForbidden, "this job is another user's: %v", err)
	switch {
	case errors.Is(err, ipc.ErrFull):
		why = Errorf(CodeBusy, "%d requests are under way in this job", clients)
	case errors.Is(err, errClosing):
		why = Errorf(CodeEnded, "%v", errClosing)
	}
	refuseWith(c, why)
}

func refuseWith(c *ipc.Conn, why *Error) {
	for _, v := range []any{hello{Protocol}, answer{Error: why}} {
		frame, err := encodeFrame(v)
		if err != nil || writeFrame(c, frame) != nil {
			return // a fresh socket has room for both: this one is broken
		}
	}
}

// serve returns when the client has disconnected, is silent for too long or sends malformed frames, or the server is
// closed.
func (s *session) serve() {
	defer s.conn.Close() // the client may have closed it first
	if err := s.greet(); err != nil {
		s.complain(err)
		return
	}
	for {
		q, err := s.next(idleTime)
		if err != nil {
			s.complain(err)
			return
		}
		if !s.occupy(true) {
			s.complain(Errorf(CodeEnded, "%v", errClosing))
			return
		}
		err = s.handle(q)
		if !s.occupy(false) || err != nil {
			s.complain(err)
			return
		}
	}
}

// greet exchanges hellos.
func (s *session) greet() error {
	if err := s.send(hello{Protocol}); err != nil {
		return err
	}
	frame, err := s.frame(frameTime)
	if err != nil {
		return err
	}
	return checkHello(frame, "client", "job")
}

// frame reads one frame. It may take wait to begin.
func (s *session) frame(wait time.Duration) ([]byte, error) {
	if err := s.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return nil, err
	}
	if _, err := s.in.Peek(1); err != nil {
		return nil, err
	}
	if err := s.conn.SetReadDeadline(time.Now().Add(frameTime)); err != nil {
		return nil, err
	}
	return readFrame(s.in)
}

// next reads one request.
func (s *session) next(wait time.Duration) (q ask, err error) {
	frame, err := s.frame(wait)
	if err != nil {
		return q, err
	}
	return q, decode(frame, &q)
}

// handle answers one request. It returns an error when the connection is unusable.
func (s *session) handle(q ask) error {
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	unwatch := s.watch(cancel)
	reply, err := s.call(ctx, q, s.notice(ctx, cancel))
	cancel(nil) // a notice that comes after the answer is refused
	if gone := unwatch(); gone != nil {
		return gone
	}
	if err != nil {
		return s.send(answer{Error: asError(ctx, err)})
	}
	data, err := json.Marshal(reply)
	if err == nil {
		err = s.send(answer{Reply: data})
	}
	if errors.Is(err, errUnsent) || data == nil {
		return s.send(answer{Error: Errorf(CodeFailed, "the answer to %q cannot be sent: %v", q.Verb, err)})
	}
	return err
}

// watch ends the request when the client disconnects or sends before it was answered. The returned function ends the
// watch and returns an error if that has happened.
func (s *session) watch(cancel context.CancelCauseFunc) (unwatch func() error) {
	if err := s.conn.SetReadDeadline(time.Time{}); err != nil {
		cancel(errGone)
		return func() error { return errGone }
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.in.Peek(1)
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
		_ = s.conn.SetReadDeadline(time.Unix(1, 0)) // a closed connection has woken it
		return <-ended
	}
}

// notice returns the function that sends the request's notices. A failed send ends the request.
func (s *session) notice(ctx context.Context, cancel context.CancelCauseFunc) Notice {
	return func(v any) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		data, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if err = s.send(answer{Notice: data}); err != nil && !errors.Is(err, errUnsent) {
			cancel(errGone)
		}
		return err
	}
}

// errUnsent: the value cannot be encoded as a frame, so nothing was sent.
var errUnsent = errors.New("unsent")

// send writes a frame. After an error, perhaps in the middle of a frame, it sends nothing more.
func (s *session) send(v any) error {
	frame, err := encodeFrame(v)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnsent, err)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.broken {
		return errGone
	}
	err = writeFrame(s.conn, frame)
	s.broken = err != nil
	return err
}

// complain sends the client the reason why the connection ends, if it can do something about it.
func (s *session) complain(err error) {
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
		s.log.Debug("control: client lost", "err", err)
		return
	}
	_ = s.send(answer{Error: e}) // it may have gone
}

// asError returns the error that the client gets.
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
