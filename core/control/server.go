package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// maxClients is how many may be connected. One more takes the place of the one that has been idle longest.
const maxClients = 64

// errClosing ends the requests that are under way when the server is closed.
var errClosing = errors.New("the run has ended")

// Server answers the requests of this user's clients until Close.
type Server struct {
	path    string
	verbs   Verbs
	log     *slog.Logger
	place   *place
	ctx     context.Context // of all requests
	cancel  context.CancelCauseFunc
	running sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	clients map[*session]struct{}
}

// Listen makes a socket at path and answers there, on goroutines of its own, until Close. A socket that a killed job
// left behind is replaced; one in use is ErrInUse. The socket's folder is made if it is not there, and must belong to
// this user alone. verbs must not be changed any more. log nil is slog.Default.
func Listen(path string, verbs Verbs, log *slog.Logger) (*Server, error) {
	p, err := take(path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	s := &Server{path: path, verbs: verbs, log: cmp.Or(log, slog.Default()), place: p, clients: map[*session]struct{}{}}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.running.Go(s.accept)
	return s, nil
}

// Path returns where the server listens.
func (s *Server) Path() string { return s.path }

// Close refuses new requests, ends the contexts of those under way, waits for their answers and removes the socket. It
// must not be called by what answers a request. A second Close returns net.ErrClosed.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return net.ErrClosed
	}
	s.closed = true
	for c := range s.clients {
		if !c.busy {
			_ = c.conn.Close() // its goroutine ends
		}
	}
	s.mu.Unlock()
	err := s.place.close()
	s.cancel(errClosing)
	s.running.Wait()
	return err
}

// accept takes clients in until the listener is closed.
func (s *Server) accept() {
	for {
		conn, err := s.place.listener.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			// Too many open files, most likely: one that is closed makes room.
			s.log.Warn("control: a client could not connect", "err", err)
			if !s.pause(100 * time.Millisecond) {
				return
			}
		default:
			s.admit(conn)
		}
	}
}

// pause waits, and tells whether the server still runs.
func (s *Server) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// admit starts serving a client that is who it should be.
func (s *Server) admit(conn *net.UnixConn) {
	c := newSession(s, conn)
	if err := mine(conn); err != nil {
		s.log.Warn("control: client refused", "err", err)
		c.refuse(Errorf(CodeForbidden, "this job is another user's: %v", err))
		return
	}
	if err := s.add(c); err != nil {
		c.refuse(err)
		return
	}
	s.running.Go(c.serve)
}

// mine returns an error unless the other end of a connection is this user. Being root makes no difference: a job is
// asked by who started it.
func mine(conn *net.UnixConn) error {
	peer, err := peerOf(conn)
	if err != nil {
		return err
	}
	if peer.UID != os.Geteuid() {
		return fmt.Errorf("user %d is at this end, user %d at the other", os.Geteuid(), peer.UID)
	}
	return nil
}

// add counts a client among those that are served. Where there is no room it closes the one that has been without a
// request longest.
func (s *Server) add(c *session) *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return Errorf(CodeEnded, "%v", errClosing)
	}
	if len(s.clients) >= maxClients {
		idlest := s.idlest()
		if idlest == nil {
			return Errorf(CodeBusy, "%d requests are under way in this job", len(s.clients))
		}
		_ = idlest.conn.Close() // its goroutine ends
		delete(s.clients, idlest)
	}
	s.clients[c] = struct{}{}
	return nil
}

func (s *Server) idlest() (found *session) {
	for c := range s.clients {
		if !c.busy && (found == nil || c.since.Before(found.since)) {
			found = c
		}
	}
	return found
}

func (s *Server) remove(c *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
}

// occupy notes that a client's request is under way, or no longer; false means that the server is closing, or that the
// client has been closed to make room.
func (s *Server) occupy(c *session, busy bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.busy, c.since = busy, time.Now()
	_, served := s.clients[c]
	return served && !s.closed
}
