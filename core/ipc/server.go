package ipc

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// ErrFull says that the most clients allowed are connected.
var ErrFull = errors.New("no room for another client")

// maxRefusals is how many clients may get the reason for a refusal at a time; more are disconnected without one.
const maxRefusals = 64

// Config says where a server listens and how it serves its clients.
type Config struct {
	Name    string // of the service, in the log
	Path    string // of the socket; its folder is made if it is not there, and must belong to this user alone
	Network string // "unix" or "unixpacket"
	Sweep   string // pattern of names: the sockets of killed processes that match it are removed from the folder; "" = none

	Clients  int   // most at a time
	MakeRoom bool  // one more replaces the least recently used
	Ended    error // the cause that the contexts of connections end with when the server is closed
	Log      *slog.Logger

	// Serve serves a client, on a new goroutine, until it returns. ctx ends when the server is closed.
	Serve func(ctx context.Context, c *Conn)
	// Refuse tells a client why it is not served: ErrFull, Ended, or the error of CheckPeer. It runs on a new goroutine.
	Refuse func(c *Conn, why error)
}

// Conn is a connection with a client. The server closes it once Serve or Refuse has returned.
type Conn struct {
	*net.UnixConn
	Peer Peer

	server *Server
	busy   bool      // under the server's mutex: it does something that should not be interrupted
	since  time.Time // under the server's mutex: when busy last changed
}

// Server listens at a path until Close.
type Server struct {
	config   Config
	listener *net.UnixListener
	lock     *lock
	ctx      context.Context // of all connections
	cancel   context.CancelCauseFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	served  map[*Conn]struct{}
	refused map[*Conn]struct{}
}

// Listen makes the socket and accepts clients, on new goroutines, until Close. A socket that a killed process left
// is replaced; a socket in use is ErrInUse.
func Listen(c Config) (*Server, error) {
	listener, lock, err := take(c)
	if err != nil {
		return nil, err
	}
	s := &Server{config: c, listener: listener, lock: lock, served: map[*Conn]struct{}{}, refused: map[*Conn]struct{}{}}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.running.Go(s.accept)
	return s, nil
}

// Path returns where the server listens.
func (s *Server) Path() string { return s.config.Path }

// Clients returns how many are served.
func (s *Server) Clients() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.served)
}

// Close accepts no more clients, disconnects idle ones, ends the contexts of all, waits until Serve has returned
// for each, and removes the socket. Serve must not call it. A second Close returns net.ErrClosed.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return net.ErrClosed
	}
	s.closed = true
	for c := range s.served {
		if !c.busy {
			_ = c.Close() // ends its Serve
		}
	}
	for c := range s.refused {
		_ = c.Close() // ends its Refuse
	}
	s.mu.Unlock()
	err := errors.Join(s.listener.Close(), s.lock.remove())
	s.cancel(s.config.Ended)
	s.running.Wait()
	return err
}

// accept accepts clients until the listener is closed.
func (s *Server) accept() {
	for {
		conn, err := s.listener.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			// Too many open files, most likely: connected clients continue, and a client that leaves makes room.
			s.config.Log.Warn(s.config.Name+": a client could not connect", "err", err)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-s.ctx.Done():
				return
			}
		default:
			s.admit(&Conn{UnixConn: conn, server: s, since: time.Now()})
		}
	}
}

// admit starts serving a client, or says why not.
func (s *Server) admit(c *Conn) {
	var err error
	if c.Peer, err = CheckPeer(c.UnixConn); err == nil {
		err = s.add(c)
	}
	if err == nil {
		s.running.Go(func() {
			defer s.remove(s.served, c)
			s.config.Serve(s.ctx, c)
		})
		return
	}
	s.config.Log.Warn(s.config.Name+": client refused", "err", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.refused) >= maxRefusals {
		_ = c.Close() // nothing was promised
		return
	}
	s.refused[c] = struct{}{}
	s.running.Go(func() {
		defer s.remove(s.refused, c)
		s.config.Refuse(c, err)
	})
}

// add registers a client, if there is room.
func (s *Server) add(c *Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.config.Ended
	}
	if len(s.served) >= s.config.Clients {
		oldest := s.leastRecentlyUsed()
		if !s.config.MakeRoom || oldest == nil {
			return ErrFull
		}
		_ = oldest.Close() // ends its Serve
		delete(s.served, oldest)
	}
	s.served[c] = struct{}{}
	return nil
}

func (s *Server) leastRecentlyUsed() (found *Conn) {
	for c := range s.served {
		if !c.busy && (found == nil || c.since.Before(found.since)) {
			found = c
		}
	}
	return found
}

func (s *Server) remove(from map[*Conn]struct{}, c *Conn) {
	_ = c.Close() // the client, or the server making room, may have closed it first
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(from, c)
}

// Occupy notes that a request of the client is under way, which Close waits for, or no longer. It returns false if the
// server is closing, or if the client had to make room for another.
func (c *Conn) Occupy(busy bool) bool {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	c.busy, c.since = busy, time.Now()
	_, served := s.served[c]
	return served && !s.closed
}
