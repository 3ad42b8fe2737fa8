package rpc

import (
	"context"
	"errors"
	"fmt"
)

// begin begins a stream, or ends one: those are the two for which there are headers.
func (c *conn) begin(id uint32, whole bool) error {
	c.mu.Lock()
	if id <= c.newest {
		s := c.streams[id]
		c.mu.Unlock()
		if s != nil && whole {
			return c.request(s, nil, true)
		}
		return nil
	}
	if id%2 == 0 {
		c.mu.Unlock()
		return fmt.Errorf("%w: stream %d", errFrame, id)
	}
	c.newest = id
	if len(c.streams) == maxStreams {
		c.mu.Unlock()
		return c.write(appendNumber(nil, frameReset, id, codeRefused))
	}
	s := &stream{id: id, path: c.path, window: c.initial}
	s.ctx, s.cancel = context.WithCancel(c.ctx)
	c.streams[id] = s
	c.mu.Unlock()
	if heldOpen(s.path) {
		s.busy = true
		return c.write(appendHeaders(nil, id, 0, responseHeaders))
	}
	return c.request(s, nil, whole)
}

// data takes a part of a request.
func (c *conn) data(f *frame) error {
	b, err := f.body()
	if err != nil {
		return err
	}
	if c.owed += uint32(len(f.payload)); c.owed >= creditEvery {
		if err := c.write(appendNumber(nil, frameWindow, 0, c.owed)); err != nil {
			return err
		}
		c.owed = 0
	}
	c.mu.Lock()
	s := c.streams[f.stream]
	c.mu.Unlock()
	if s == nil {
		return nil // it was reset or answered
	}
	return c.request(s, b, f.has(flagEndStream))
}

// request takes a part of a request, and answers it once it is whole, or known to be wrong.
func (c *conn) request(s *stream, part []byte, whole bool) error {
	if s.busy {
		return nil
	}
	s.body = append(s.body, part...)
	refusal := tooLong(s.body, c.server.config.MaxCall)
	if refusal == nil && !whole {
		return nil
	}
	s.busy = true
	body := s.body
	s.body = nil
	go func() {
		if refusal != nil {
			c.reply(s, nil, refusal, whole)
			return
		}
		message, err := c.server.answer(s.ctx, s.path, body)
		c.reply(s, message, err, true)
	}()
	return nil
}

// reply sends the answer to a call. whole: the request has come to its end.
func (c *conn) reply(s *stream, message []byte, err error, whole bool) {
	if err != nil {
		e := &Error{Code: codeUnknown, Message: err.Error()}
		errors.As(err, &e)
		fields := statusFields(append([]byte{}, responseHeaders...), e.Code, e.Message)
		c.finish(s, appendHeaders(nil, s.id, flagEndStream, fields), whole)
		return
	}
	frames := appendHeaders(nil, s.id, 0, responseHeaders)
	for len(message) > 0 {
		n, ok := c.room(s, min(len(message), maxFrame))
		if !ok {
			return
		}
		frames = appendFrame(frames, frameData, 0, s.id, message[:n]...)
		if message = message[n:]; len(message) > 0 {
			if c.write(frames) != nil {
				return
			}
			frames = frames[:0]
		}
	}
	c.finish(s, appendHeaders(frames, s.id, flagEndStream, statusFields(nil, 0, "")), whole)
}

// finish sends the last frames of a stream.
func (c *conn) finish(s *stream, frames []byte, whole bool) {
	if !whole {
		frames = appendNumber(frames, frameReset, s.id, codeNone)
	}
	c.mu.Lock()
	gone := s.reset
	delete(c.streams, s.id)
	c.mu.Unlock()
	s.cancel()
	if !gone && c.write(frames) == nil {
		c.server.answered(s.path)
	}
}

// room waits until some of n bytes may be sent on a stream, and takes that. ok is false if nobody waits for them.
func (c *conn) room(s *stream, n int) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if c.ended || s.reset {
			return 0, false
		}
		if may := min(c.window, s.window, int64(n)); may > 0 {
			c.window -= may
			s.window -= may
			return int(may), true
		}
		c.changed.Wait()
	}
}
