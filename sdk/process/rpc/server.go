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
	"time"

	"golang.org/x/net/http2"
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
	maxConns     = 8        // connections at a time; a host makes one
	maxStreams   = 64       // calls at a time
	maxHeaders   = 64 << 10 // bytes of a call's headers
	streamWindow = 1 << 16  // room of a call beyond the longest request
	maxWindow    = 1<<31 - 1
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
	http     http.Server // gives http2 its limits and shutdown
	http2    http2.Server
	over     chan struct{} // closed when the host has asked for the end
	end      sync.Once

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
	served sync.WaitGroup
}

// Listen makes the socket. Close the server if Serve is not called.
func Listen(c Config) (*Server, error) {
	s := &Server{config: c, over: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	s.http = http.Server{MaxHeaderBytes: maxHeaders, ErrorLog: log.New(io.Discard, "", 0)}
	s.http2 = http2.Server{MaxConcurrentStreams: maxStreams, MaxUploadBufferPerConnection: maxWindow,
		MaxUploadBufferPerStream: int32(min(c.MaxCall+streamWindow, maxWindow))}
	if err := http2.ConfigureServer(&s.http, &s.http2); err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
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
	go func() { failed <- s.accept() }()
	var err error
	select {
	case <-s.over:
		s.drain()
	case err = <-failed:
	}
	return errors.Join(err, s.Close())
}

// drain waits for pending answers.
func (s *Server) drain() {
	_ = s.http.Shutdown(context.Background()) // it has no connections itself, but tells HTTP/2's
	served := make(chan struct{})
	go func() {
		s.served.Wait()
		close(served)
	}()
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-served:
	case <-timer.C:
	}
}

// Close removes the socket and ends the connections.
func (s *Server) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	for c := range s.conns {
		_ = c.Close() // its goroutine notices
	}
	s.mu.Unlock()
	if closed {
		return nil
	}
	err := s.listener.Close()
	s.served.Wait()
	return err
}

func (s *Server) accept() error {
	for {
		c, err := s.listener.AcceptUnix()
		if err != nil {
			return fmt.Errorf("control socket: %w", err)
		}
		if !s.take(c) {
			_ = c.Close()
		}
	}
}

// take serves a connection, unless there are too many.
func (s *Server) take(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.conns) == maxConns {
		return false
	}
	s.conns[c] = struct{}{}
	s.served.Go(func() {
		s.serve(c)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, c)
	})
	return true
}

// serve serves a connection until its end.
func (s *Server) serve(c net.Conn) {
	s.http2.ServeConn(c, &http2.ServeConnOpts{BaseConfig: &s.http, Handler: s})
}
