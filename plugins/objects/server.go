package objects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/ipc"
	"github.com/rlhost/rlhost/core/objects/wire"
	"github.com/rlhost/rlhost/core/registry"
	"github.com/rlhost/rlhost/core/registry/remote"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/plugins/objects/store"
)

// Options are the settings of a server.
type Options struct {
	Path     string       // of the socket; default wire.NamedPath, or wire.DefaultPath without a name
	Name     string       // under which other programs find it; default none
	Store    *store.Store // the caller's; default: a store of the server's own
	Limits   store.Limits // of the server's own store
	Sessions int          // most clients at a time; default 1024
	Log      *slog.Logger // default slog.Default
}

// Server serves a store until Close.
type Server struct {
	*ipc.Server
	options Options
	own     bool // the store is the server's
	unname  context.CancelFunc
	named   sync.WaitGroup
}

// Serve serves objects until ctx ends. It returns ipc.ErrInUse if another process does so at that path.
func Serve(ctx context.Context, o Options) error {
	s, err := Start(o)
	if err != nil {
		return err
	}
	<-ctx.Done()
	return s.Close()
}

// Start serves in the background. The server must be closed.
func Start(o Options) (*Server, error) {
	s := &Server{own: o.Store == nil}
	if o.Name != "" {
		path, err := wire.NamedPath(o.Name)
		if err != nil {
			return nil, err
		}
		o.Path = cmp.Or(o.Path, path)
	}
	o.Path = cmp.Or(o.Path, wire.DefaultPath())
	o.Sessions = cmp.Or(o.Sessions, 1024)
	o.Log = cmp.Or(o.Log, slog.Default())
	if s.own {
		o.Store = store.NewStore(o.Limits)
	}
	s.options = o
	var err error
	s.Server, err = ipc.Listen(ipc.Config{
		Name: "objects", Path: o.Path, Network: shm.Network, Clients: o.Sessions, Ended: wire.ErrClosed, Log: o.Log,
		Serve: s.serve, Refuse: s.refuse,
	})
	if err != nil {
		return nil, fmt.Errorf("serve objects: %w", err)
	}
	s.announce()
	return s, nil
}

// announce keeps the store's name, if it has one, among the user's names until Close.
func (s *Server) announce() {
	var ctx context.Context
	ctx, s.unname = context.WithCancel(context.Background())
	if s.options.Name == "" {
		return
	}
	name := map[string]string{remote.Stores + s.options.Name: s.Path()}
	s.named.Go(func() { remote.Announce(ctx, registry.Options{}, func() map[string]string { return name }) })
}

// Store returns the served store.
func (s *Server) Store() *store.Store { return s.options.Store }

// Close disconnects all clients, releases their claims, and closes the store if it is the server's own. The
// socket's path is gone when it returns. A second Close returns net.ErrClosed.
func (s *Server) Close() error {
	s.unname()
	s.named.Wait()
	err := s.Server.Close()
	if s.own && !errors.Is(err, net.ErrClosed) {
		err = errors.Join(err, s.options.Store.Close())
	}
	return err
}

// serve answers one client until it disconnects.
func (s *Server) serve(_ context.Context, conn *ipc.Conn) {
	session, err := s.options.Store.Session("client")
	if err != nil {
		s.refuse(conn, err)
		return
	}
	defer func() {
		_ = conn.Close()    // it may be closed
		_ = session.Close() // so may the store, with all its sessions
	}()
	socket, err := shm.SocketOf(conn.UnixConn)
	if err != nil {
		s.options.Log.Warn("objects: client lost", "err", err)
		return
	}
	socket.SetSendTimeout(0) // a client that does not read its answers must not delay others
	c := &client{store: s.options.Store, socket: socket, session: session, waiting: map[uint32]*call{}}
	if err := c.serve(); !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		s.options.Log.Warn("objects: client disconnected", "err", err)
	}
}

// refuse tells a client why it is not served, after its hello: a client whose hello fails does not read an answer.
func (s *Server) refuse(conn *ipc.Conn, why error) {
	socket, err := shm.SocketOf(conn.UnixConn)
	if err != nil {
		return // the client is gone
	}
	switch {
	case errors.Is(why, ipc.ErrFull):
		why = fmt.Errorf("%w: %d clients are connected", wire.ErrLimit, s.options.Sessions)
	case conn.Peer.UID != os.Geteuid():
		why = fmt.Errorf("these objects are another user's: %w", why)
	}
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
