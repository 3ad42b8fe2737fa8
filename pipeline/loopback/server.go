package loopback

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

// Bounds on what strangers can hold of this process.
const (
	maxConnections = 512
	headerBytes    = 16 << 10
	readTime       = 10 * time.Second
	writeTime      = 30 * time.Second
	idleTime       = time.Minute
)

// Server answers requests of this machine that know its token.
type Server struct {
	token string
	http  http.Server
}

// New returns a server of a handler's pages. command has printed the address, for messages.
func New(command string, handler http.Handler, log *slog.Logger) *Server {
	s := &Server{token: newToken()}
	s.http = http.Server{
		Handler:           &guard{command, s.token, http.NewCrossOriginProtection().Handler(handler)},
		ReadHeaderTimeout: readTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return s
}

// Listen opens an address of this machine, such as 127.0.0.1:0, for 512 connections at a time; an address that others reach is an error.
func Listen(address string) (net.Listener, error) {
	if !isLoopback(address) {
		return nil, fmt.Errorf("%s is not an address of this machine alone", address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return netutil.LimitListener(l, maxConnections), nil
}

// URL is the address of the first page, with the token.
func (s *Server) URL(l net.Listener) string {
	return "http://" + l.Addr().String() + "/" + s.token + "/"
}

// Serve answers until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	stop := context.AfterFunc(ctx, func() { _ = s.http.Close() })
	defer stop()
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Extend lets an answer take so much longer than usual.
func Extend(w http.ResponseWriter, by time.Duration) error {
	err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(by))
	if errors.Is(err, http.ErrNotSupported) {
		return nil // a recorder of tests has none
	}
	return err
}
