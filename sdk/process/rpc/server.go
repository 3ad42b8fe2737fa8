package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
)

// Codes of gRPC that this package answers with itself.
const (
	codeUnknown       = 2
	codeInvalid       = 3
	codeExhausted     = 8
	codeUnimplemented = 12
)

// coreVersion is that of go-plugin's handshake.
const coreVersion = 1

// maxConns is how many connections are served at a time. A host makes one.
const maxConns = 8

// Error is what a call is refused with.
type Error struct {
	Code    int // of gRPC
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Config says what is served.
type Config struct {
	Dir     string // folder for the socket, which only the host and the plugin can enter
	Service string // the calls' service, such as "rlhost.plugin.v1.Plugin"
	MaxCall int    // bytes of a request, at most
	// Call answers a call of the service. It runs on a goroutine of its own; ctx ends when the host no longer waits
	// for the answer. An *Error is sent as it is, any other error with code 2.
	Call func(ctx context.Context, method string, request []byte) (reply []byte, err error)
}

// Server answers calls. Serve may be called once.
type Server struct {
	config   Config
	listener *net.UnixListener
	over     chan struct{} // closed when the host has asked for the end
	end      sync.Once

	mu     sync.Mutex
	conns  map[*conn]struct{}
	closed bool
	served sync.WaitGroup
}

// Listen makes the socket. Close the server if Serve is not called.
func Listen(c Config) (*Server, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(c.Dir, "plugin"), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return &Server{config: c, listener: l, over: make(chan struct{}), conns: map[*conn]struct{}{}}, nil
}

// Line returns the line that go-plugin's hosts wait for on standard output, for a version of the plugin's protocol.
func (s *Server) Line(version int) string {
	return fmt.Sprintf("%d|%d|unix|%s|grpc|", coreVersion, version, s.listener.Addr())
}

// Serve answers calls until the host shuts the server down, or until it cannot listen any more. It blocks; then the
// socket is gone, and so are the connections. It does not wait for calls that are still being answered.
func (s *Server) Serve() error {
	failed := make(chan error, 1)
	go func() { failed <- s.accept() }()
	var err error
	select {
	case <-s.over:
	case err = <-failed:
	}
	return errors.Join(err, s.Close())
}

// Close removes the socket and ends the connections.
func (s *Server) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	for c := range s.conns {
		_ = c.net.Close() // its goroutine sees that
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
		if !s.take(newConn(s, c)) {
			_ = c.Close()
		}
	}
}

// take serves a connection, if there are not too many.
func (s *Server) take(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.conns) == maxConns {
		return false
	}
	s.conns[c] = struct{}{}
	s.served.Go(func() {
		c.serve()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, c)
	})
	return true
}

// heldOpen reports whether a method is one of the two streams that go-plugin holds open from the start, for a plugin's
// output and for connections besides. Ours has neither.
func heldOpen(path string) bool {
	return path == "/plugin.GRPCStdio/StreamStdio" || path == "/plugin.GRPCBroker/StartStream"
}

// serving is grpc.health.v1.HealthCheckResponse with status 1.
var serving = []byte{0, 0, 0, 0, 2, 1 << 3, 1}

// answer returns the reply to a call as a gRPC message.
func (s *Server) answer(ctx context.Context, path string, message []byte) ([]byte, error) {
	switch path {
	case "/grpc.health.v1.Health/Check":
		return serving, nil
	case "/plugin.GRPCController/Shutdown":
		return wrap(nil), nil
	}
	method, ours := strings.CutPrefix(path, "/"+s.config.Service+"/")
	if !ours {
		return nil, &Error{Code: codeUnimplemented, Message: "unknown method " + path}
	}
	request, err := unwrap(message)
	if err != nil {
		return nil, &Error{Code: codeInvalid, Message: err.Error()}
	}
	reply, err := s.config.Call(ctx, method, request)
	if err != nil {
		return nil, err
	}
	return wrap(reply), nil
}

// answered notes that the reply to a call has been sent.
func (s *Server) answered(path string) {
	if path == "/plugin.GRPCController/Shutdown" {
		s.end.Do(func() { close(s.over) })
	}
}
