package objects

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

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/plugins/objects/store"
	"github.com/rlhost/rlhost/plugins/objects/wire"
)

// Options says what to serve, and where.
type Options struct {
	Path     string       // of the socket; default wire.DefaultPath
	Store    *store.Store // what to serve; it stays the caller's. Default a store of the server's own
	Limits   store.Limits // of the server's own store
	Sessions int          // most clients at a time; default 1024
	Log      *slog.Logger // default slog.Default
}

// Server serves a store until Close.
type Server struct {
	options Options
	own     bool // the store is the server's
	place   *place
	running sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	clients map[*client]struct{}
}

// Serve serves objects until ctx ends. It returns ErrServed if another process does so at that path.
func Serve(ctx context.Context, o Options) error {
	s, err := Start(o)
	if err != nil {
		return err
	}
	<-ctx.Done()
	return s.Close()
}

// Start begins to serve, on goroutines of its own. The server must be closed.
func Start(o Options) (*Server, error) {
	s := &Server{own: o.Store == nil, clients: map[*client]struct{}{}}
	o.Path = cmp.Or(o.Path, wire.DefaultPath())
	o.Sessions = cmp.Or(o.Sessions, 1024)
	o.Log = cmp.Or(o.Log, slog.Default())
	if s.own {
		o.Store = store.NewStore(o.Limits)
	}
	s.options = o
	p, err := listen(o.Path)
	if err != nil {
		return nil, fmt.Errorf("serve objects: %w", err)
	}
	s.place = p
	s.running.Go(s.accept)
	return s, nil
}

// Path returns where the server listens.
func (s *Server) Path() string { return s.options.Path }

// Store returns what is served.
func (s *Server) Store() *store.Store { return s.options.Store }

// Clients returns how many clients are connected.
func (s *Server) Clients() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.clients)
}

// Close disconnects all clients, gives back what they held, and withdraws the store if it is the server's own. The
// socket's path is gone when it returns. A second Close returns net.ErrClosed.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return net.ErrClosed
	}
	s.closed = true
	for c := range s.clients {
		_ = c.socket.Close() // its goroutine ends the session
	}
	s.mu.Unlock()
	err := s.place.close()
	s.running.Wait()
	if s.own {
		err = errors.Join(err, s.options.Store.Close())
	}
	return err
}

// accept takes clients in until the listener is closed.
func (s *Server) accept() {
	for {
		socket, err := s.place.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			// Too many open files, most likely: clients that are here go on, and one that leaves makes room.
			s.options.Log.Warn("objects: a client could not connect", "err", err)
			if !s.pause(100 * time.Millisecond) {
				return
			}
		default:
			s.admit(socket)
		}
	}
}

// pause waits, and tells whether the server still runs.
func (s *Server) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed
}

// admit starts serving a client that is who it should be.
func (s *Server) admit(socket *shm.Socket) {
	c, err := s.newClient(socket)
	if err != nil {
		s.options.Log.Warn("objects: client refused", "err", err)
		s.running.Go(func() { refuse(socket, err) })
		return
	}
	s.running.Go(c.serve)
}

// refuse says why a client is not served. It lets the client say hello first: one that finds the connection closed
// when it speaks does not look for an answer.
func refuse(socket *shm.Socket, why error) {
	defer socket.Close() // nothing was promised
	socket.SetSendTimeout(0)
	var seq uint32
	if err := socket.SetReceiveDeadline(time.Now().Add(time.Second)); err == nil {
		buf := make([]byte, wire.MaxFrame)
		n, files, err := socket.Receive(buf)
		for _, f := range files {
			_ = f.Close() // no request has one
		}
		var hello wire.Request
		if err == nil && wire.ParseRequest(&hello, buf[:n]) == nil {
			seq = hello.Seq
		}
	}
	refusal := wire.Reply{Op: wire.OpHello, Seq: seq, Status: wire.StatusOf(why), Text: why.Error()}
	if frame, err := wire.AppendReply(nil, &refusal); err == nil {
		_ = socket.Send(frame) // it may have gone
	}
}

func (s *Server) newClient(socket *shm.Socket) (*client, error) {
	uid, err := socket.PeerUID()
	if err != nil {
		return nil, err
	}
	if int64(uid) != int64(os.Geteuid()) {
		return nil, fmt.Errorf("objects of user %d are not served to user %d", os.Geteuid(), uid)
	}
	session, err := s.options.Store.Session("client")
	if err != nil {
		return nil, err
	}
	c := &client{server: s, socket: socket, session: session, waiting: map[uint32]*call{}}
	if err := s.add(c); err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return c, nil
}

// add counts a client among those that are served.
func (s *Server) add(c *client) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	if len(s.clients) >= s.options.Sessions {
		return fmt.Errorf("%w: %d clients are connected", store.ErrLimit, len(s.clients))
	}
	c.socket.SetSendTimeout(0) // a client that asks without reading the answers must not hold up others
	s.clients[c] = struct{}{}
	return nil
}
