package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Codes of gRPC that this package itself returns.
const (
	codeUnknown       = 2
	codeInvalid       = 3
	codeExhausted     = 8
	codeUnimplemented = 12
)

// coreVersion is the version of go-plugin's handshake.
const coreVersion = 1

// Limits for a host.
const (
	maxConns   = 8         // connections at a time; a host makes one
	maxStreams = 64        // calls at a time
	maxHeaders = 64 << 10  // bytes of a call's headers
	window     = 4<<20 - 1 // bytes that a host may send before they are read: the most that net/http takes
)

// drainTime is how long pending answers may take at the end.
const drainTime = 100 * time.Millisecond

// Error is the refusal of a call.
type Error struct {
	Code    int // of gRPC
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Config is the configuration of a server.
type Config struct {
	Dir     string // folder for the socket, which only the host and the plugin can enter
	Service string // the calls' service, such as "rlhost.plugin.v1.Plugin"
	MaxCall int    // bytes of a request, at most
	// Call answers a call of the service. It runs on its own goroutine; ctx ends when the host no longer waits for the
	// answer. An *Error is sent unchanged, any other error with code 2.
	Call func(ctx context.Context, method string, request []byte) (reply []byte, err error)
}

// Server answers calls. Serve may be called once.
type Server struct {
	config   Config
	listener *net.UnixListener
	http     http.Server
	over     chan struct{} // closed when the host has asked for the end
	end      sync.Once
	conns    atomic.Int32
}

// Listen makes the socket. Close the server if Serve is not called.
func Listen(c Config) (*Server, error) {
	s := &Server{config: c, over: make(chan struct{})}
	s.http = http.Server{
		Handler: s, MaxHeaderBytes: maxHeaders, ErrorLog: log.New(io.Discard, "", 0), ConnState: s.count,
		Protocols: new(http.Protocols),
		HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerConnection: window, MaxReceiveBufferPerStream: window},
	}
	s.http.Protocols.SetUnencryptedHTTP2(true)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(c.Dir, "plugin"), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	s.listener = l
	return s, nil
}

// Line returns the handshake line that go-plugin's hosts expect on standard output, for a version of the plugin's
// protocol.
func (s *Server) Line(version int) string {
	return fmt.Sprintf("%d|%d|unix|%s|grpc|", coreVersion, version, s.listener.Addr())
}

// Serve answers calls until the host shuts the server down, or until it cannot listen any more. It blocks; when it
// returns the socket and the connections are closed. It waits a moment for pending calls.
func (s *Server) Serve() error {
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(s.listener) }()
	var err error
	select {
	case <-s.over:
		s.drain()
	case err = <-failed:
		if errors.Is(err, http.ErrServerClosed) {
			err = net.ErrClosed
		}
		err = fmt.Errorf("control socket: %w", err)
	}
	return errors.Join(err, s.Close())
}

// drain waits for pending answers.
func (s *Server) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	_ = s.http.Shutdown(ctx) // Close ends what is left
}

// Close removes the socket and ends the connections.
func (s *Server) Close() error {
	err := s.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil // Serve has closed it
	}
	ended := s.http.Close()
	if errors.Is(ended, net.ErrClosed) {
		ended = nil // the same listener, unless Serve has let go of it by now
	}
	return errors.Join(err, ended)
}

// count closes a connection that is one too many.
func (s *Server) count(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if s.conns.Add(1) > maxConns {
			_ = c.Close() // its goroutine notices
		}
	case http.StateClosed, http.StateHijacked:
		s.conns.Add(-1)
	}
}
