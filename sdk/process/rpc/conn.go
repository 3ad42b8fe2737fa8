package rpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"golang.org/x/net/http2/hpack"
)

const (
	maxStreams   = 64       // calls at a time
	maxBlock     = 64 << 10 // bytes of a call's headers
	creditEvery  = 1 << 20  // bytes after which the connection's window is filled up again
	streamWindow = 1 << 16  // room of a stream beyond the longest request
)

// conn is one connection. The goroutine of serve reads; each call is answered on one of its own.
type conn struct {
	server *Server
	net    net.Conn
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc

	// Of the goroutine of serve.
	in      *bufio.Reader
	decoder *hpack.Decoder
	path    string // of the block of headers that is being decoded
	owed    uint32 // bytes of the connection's window that were used up

	sending sync.Mutex // one write at a time

	mu      sync.Mutex
	changed *sync.Cond         // windows, resets, the end
	streams map[uint32]*stream // guarded by mu: that are not answered
	newest  uint32             // guarded by mu: stream
	initial int64              // guarded by mu: window of new streams
	window  int64              // guarded by mu: bytes that may be sent
	ended   bool               // guarded by mu
}

// stream is one call.
type stream struct {
	id     uint32
	path   string
	ctx    context.Context // ends when nobody waits for the answer
	cancel context.CancelFunc
	body   []byte // of the goroutine of serve, until the call is answered
	busy   bool   // the same: it is being answered
	window int64  // guarded by conn.mu: bytes that may be sent
	reset  bool   // guarded by conn.mu: nobody waits
}

func newConn(s *Server, n net.Conn) *conn {
	c := &conn{
		server: s, net: n, in: bufio.NewReaderSize(n, maxFrame), streams: map[uint32]*stream{},
		initial: defaultWindow, window: defaultWindow,
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.changed = sync.NewCond(&c.mu)
	c.decoder = hpack.NewDecoder(4096, func(f hpack.HeaderField) {
		if f.Name == ":path" {
			c.path = f.Value
		}
	})
	c.decoder.SetMaxStringLength(maxBlock)
	return c
}

// serve reads until the end of the connection.
func (c *conn) serve() {
	defer c.end()
	settings := appendSettings(nil, settingMaxStreams, maxStreams, settingMaxHeaderList, maxBlock,
		settingInitialWindow, uint32(min(c.server.config.MaxCall+streamWindow, maxWindow)))
	settings = appendNumber(settings, frameWindow, 0, maxWindow-defaultWindow)
	if c.write(settings) != nil {
		return
	}
	hello := make([]byte, len(preface))
	if _, err := io.ReadFull(c.in, hello); err != nil || string(hello) != preface {
		return
	}
	buf := make([]byte, maxFrame)
	for {
		f, err := readFrame(c.in, buf)
		if err == nil {
			err = c.take(&f, buf)
		}
		if errors.Is(err, errFrame) {
			var goodbye [8]byte
			binary.BigEndian.PutUint32(goodbye[4:], codeProtocol)
			_ = c.write(appendFrame(nil, frameGoAway, 0, 0, goodbye[:]...)) // it ends anyway
		}
		if err != nil {
			return
		}
	}
}

// end lets everybody know that the connection has ended.
func (c *conn) end() {
	_ = c.net.Close()
	c.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.changed.Broadcast()
}

// write sends frames, whole. After an error the connection is closed.
func (c *conn) write(frames []byte) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	_, err := c.net.Write(frames)
	if err != nil {
		_ = c.net.Close()
	}
	return err
}

// take handles a frame. An error ends the connection.
func (c *conn) take(f *frame, buf []byte) error {
	switch f.kind {
	case frameData:
		return c.data(f)
	case frameHeaders:
		return c.headers(*f, buf)
	case frameReset:
		c.forget(f.stream)
	case frameSettings:
		return c.settings(f)
	case framePing:
		if len(f.payload) != 8 {
			return fmt.Errorf("%w: PING", errFrame)
		}
		if !f.has(flagAck) {
			return c.write(appendFrame(nil, framePing, flagAck, 0, f.payload...))
		}
	case frameWindow:
		return c.widen(f)
	case frameContinuation:
		return fmt.Errorf("%w: CONTINUATION of nothing", errFrame)
	}
	return nil // of a later version, or none of ours
}

// settings takes the host's settings, of which the window of new streams is the one that matters here.
func (c *conn) settings(f *frame) error {
	if len(f.payload)%6 != 0 || f.stream != 0 {
		return fmt.Errorf("%w: SETTINGS", errFrame)
	}
	if f.has(flagAck) {
		return nil
	}
	c.mu.Lock()
	for b := f.payload; len(b) > 0; b = b[6:] {
		if binary.BigEndian.Uint16(b) != settingInitialWindow {
			continue
		}
		initial := int64(binary.BigEndian.Uint32(b[2:]) & maxWindow)
		for _, s := range c.streams {
			s.window += initial - c.initial
		}
		c.initial = initial
	}
	c.changed.Broadcast()
	c.mu.Unlock()
	return c.write(appendFrame(nil, frameSettings, flagAck, 0))
}

// widen takes more room for sending.
func (c *conn) widen(f *frame) error {
	n, err := f.number()
	if err != nil {
		return err
	}
	more := int64(n & maxWindow)
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.stream == 0 {
		c.window = min(c.window+more, maxWindow)
	} else if s := c.streams[f.stream]; s != nil {
		s.window = min(s.window+more, maxWindow)
	}
	c.changed.Broadcast()
	return nil
}

// forget ends a stream that nobody waits for any more.
func (c *conn) forget(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[id]
	if s == nil {
		return
	}
	s.reset = true
	s.cancel()
	delete(c.streams, id)
	c.changed.Broadcast()
}

// headers begins a call. All blocks of headers are decoded, for the table that they share.
func (c *conn) headers(f frame, buf []byte) error {
	block, err := f.body()
	if err == nil && !f.has(flagEndHeaders) {
		block, err = c.continued(f.stream, bytes.Clone(block), buf)
	}
	if err != nil {
		return err
	}
	c.path = ""
	if _, err := c.decoder.Write(block); err != nil {
		return fmt.Errorf("%w: %w", errFrame, err)
	}
	if err := c.decoder.Close(); err != nil {
		return fmt.Errorf("%w: %w", errFrame, err)
	}
	return c.begin(f.stream, f.has(flagEndStream))
}

// continued reads the rest of a block of headers, which nothing comes between.
func (c *conn) continued(stream uint32, block, buf []byte) ([]byte, error) {
	for {
		f, err := readFrame(c.in, buf)
		if err != nil {
			return nil, err
		}
		if f.kind != frameContinuation || f.stream != stream || len(block)+len(f.payload) > maxBlock {
			return nil, fmt.Errorf("%w: headers", errFrame)
		}
		block = append(block, f.payload...)
		if f.has(flagEndHeaders) {
			return block, nil
		}
	}
}
