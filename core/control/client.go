package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/rlhost/rlhost/core/ipc"
)

// Client asks one job. Use Dial. All methods may be called from any goroutine; a request waits for the previous one.
type Client struct {
	conn *net.UnixConn
	in   *bufio.Reader

	mu   sync.Mutex
	dead error // under mu: why the connection can no longer be used
}

// Dial connects to the job that listens at path. It returns an *Error with CodeNoJob if none does, CodeForbidden if it
// is another user's, CodeProtocol if it speaks another version.
func Dial(ctx context.Context, path string) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, frameTime)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, dialError(path, err)
	}
	c := &Client{conn: conn.(*net.UnixConn), in: bufio.NewReader(conn)}
	if err := c.greet(ctx); err != nil {
		_ = c.conn.Close() // the error that matters is the first
		return nil, err
	}
	return c, nil
}

func dialError(path string, err error) error {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		e := Errorf(CodeNoJob, "no job runs there")
		e.Help = "rlhost train starts one, rlhost train --resume goes on with one that has ended"
		return e
	case errors.Is(err, fs.ErrPermission):
		return Errorf(CodeForbidden, "the job is another user's: %v", err)
	}
	return Errorf(CodeNoJob, "the job at %s cannot be reached: %v", path, err)
}

// greet exchanges hellos. A job of another version, or that refuses this client, says so.
func (c *Client) greet(ctx context.Context) error {
	if _, err := ipc.CheckPeer(c.conn); err != nil {
		return Errorf(CodeForbidden, "the job is another user's: %v", err)
	}
	defer c.closeWith(ctx)()
	frame, err := readFrame(c.in)
	if err != nil {
		return c.lost(ctx, err)
	}
	if err := checkHello(frame, "job", "rlhost"); err != nil {
		var e *Error
		if errors.As(err, &e) {
			return e
		}
		return Errorf(CodeProtocol, "%v", err)
	}
	if frame, err = encodeFrame(hello{Protocol}); err != nil {
		return err
	}
	_ = writeFrame(c.conn, frame) // a job that refuses this client sends the reason as its answer
	return nil
}

// closeWith closes the connection when ctx ends, until the function that it returns is called.
func (c *Client) closeWith(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.conn.Close() }) // the reader gets the error
}

// Close ends the connection, and with it a request under way.
func (c *Client) Close() error { return c.conn.Close() }

// Do makes one request and waits for its answer, which it stores in reply; nil forgets it. Notices are given to notice
// as they come, on the caller's goroutine; nil forgets them. Anything but a reply is an *Error, and so is a job that
// ends meanwhile (CodeEnded). The end of ctx cancels the request and closes the connection; Do then returns ctx's
// cause.
func (c *Client) Do(ctx context.Context, verb Verb, request, reply any, notice func(json.RawMessage)) error {
	data, err := json.Marshal(request)
	if err != nil {
		return Errorf(CodeBad, "the request %q: %v", verb, err)
	}
	frame, err := encodeFrame(ask{verb, data})
	if err != nil {
		return Errorf(CodeBad, "the request %q: %v", verb, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead != nil {
		return c.dead
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	stop := c.closeWith(ctx)
	sent := writeFrame(c.conn, frame)
	a, err := c.answer(notice) // also if it could not be sent: a job that hangs up says why first
	if !stop() {
		c.dead = context.Cause(ctx) // for the next request: this one may have its answer
	}
	if err != nil {
		if sent != nil && !errors.Is(err, ErrFrame) {
			err = sent
		}
		c.dead = c.lost(ctx, err)
		return c.dead
	}
	if a.Error != nil {
		return a.Error
	}
	if reply == nil {
		return nil
	}
	return asAnswer(verb, decode(a.Reply, reply))
}

func asAnswer(verb Verb, err error) error {
	if err == nil {
		return nil
	}
	return Errorf(CodeProtocol, "the job's answer to %q: %v", verb, err)
}

// answer reads until the request has ended, and hands notices on.
func (c *Client) answer(notice func(json.RawMessage)) (a answer, err error) {
	for {
		if _, err := c.in.Peek(1); err != nil {
			return a, err
		}
		if err := c.conn.SetReadDeadline(time.Now().Add(frameTime)); err != nil {
			return a, err
		}
		frame, err := readFrame(c.in)
		if err != nil {
			return a, err
		}
		if err := c.conn.SetReadDeadline(time.Time{}); err != nil {
			return a, err
		}
		a = answer{}
		if err := decode(frame, &a); err != nil {
			return a, err
		}
		if a.Error != nil || a.Reply != nil {
			return a, nil
		}
		if a.Notice == nil {
			return a, fmt.Errorf("%w: an answer that says nothing", ErrFrame)
		}
		if notice != nil {
			notice(a.Notice)
		}
	}
}

// lost returns the error for a connection that ended before it should.
func (c *Client) lost(ctx context.Context, err error) error {
	_ = c.conn.Close() // it can no longer be used
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, ErrFrame) {
		return Errorf(CodeProtocol, "what the job says makes no sense: %v", err)
	}
	return Errorf(CodeEnded, "the job ended before it answered: %v", err)
}
