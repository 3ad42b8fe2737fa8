package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rlhost/rlhost/core/channel"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/ipc"
	"github.com/rlhost/rlhost/core/registry"
	names "github.com/rlhost/rlhost/core/registry/remote"
	"github.com/rlhost/rlhost/core/shm"
)

// Options of a server.
type Options struct {
	Name    string // of the channel; see SocketPath
	Limits  channel.Limits
	Clients int // most at a time; 0 is 1024
	Log     *slog.Logger
}

// Server serves a channel until Close.
type Server struct {
	*ipc.Server
	options Options
	memory  *channel.Memory
	regions *regions
	held    atomic.Int64 // bytes of items in regions that clients have
	unname  context.CancelFunc
	named   sync.WaitGroup
}

const (
	socketPrefix = "channel-"
	socketSuffix = ".sock"
)

var nameRule = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// SocketPath is where the channel of a name is served: this user's alone. A name has up to 64 letters, digits and . _ - in it.
func SocketPath(name string) (string, error) {
	if !nameRule.MatchString(name) {
		return "", fmt.Errorf("%w: a channel called %.80q: want up to 64 letters, digits and . _ -", channel.ErrInvalid, name)
	}
	return control.ServicePath(socketPrefix + name + socketSuffix), nil
}

// List returns the names of this user's channels that are served, sorted.
func List() []string {
	paths, _ := filepath.Glob(control.ServicePath(socketPrefix + "*" + socketSuffix)) // the pattern is well-formed
	names := []string{}
	for _, path := range paths {
		conn, err := net.Dial(shm.Network, path)
		if err != nil {
			continue // a killed server has left it
		}
		_ = conn.Close() // dialing was the whole test
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), socketPrefix), socketSuffix))
	}
	sort.Strings(names)
	return names
}

var errEnded = errors.New("the channel's server ends")

// Serve serves a new channel, on new goroutines. The error is ipc.ErrInUse where there is a channel of that name.
func Serve(o Options) (*Server, error) {
	path, err := SocketPath(o.Name)
	if err != nil {
		return nil, coded(err)
	}
	o.Clients, o.Log = cmp.Or(o.Clients, 1024), cmp.Or(o.Log, slog.Default())
	o.Limits.Bytes = cmp.Or(o.Limits.Bytes, 1<<30)
	if o.Limits.Items < 0 || o.Limits.Bytes < 0 || o.Clients < 0 {
		return nil, fmt.Errorf("%w: %d items, %d bytes, %d clients", channel.ErrInvalid, o.Limits.Items, o.Limits.Bytes, o.Clients)
	}
	s := &Server{options: o, memory: channel.NewMemory(o.Limits), regions: newRegions(o.Name, o.Limits.Bytes/2)}
	s.Server, err = ipc.Listen(ipc.Config{
		Name: "channel " + o.Name, Path: path, Network: shm.Network, Sweep: socketPrefix + "*" + socketSuffix, Clients: o.Clients, Ended: errEnded, Log: o.Log,
		Serve: s.serve, Refuse: s.refuse,
	})
	if err != nil {
		return nil, fmt.Errorf("serve channel %q: %w", o.Name, err)
	}
	ctx, unname := context.WithCancel(context.Background())
	s.unname = unname
	name := map[string]string{names.Channels + o.Name: path}
	s.named.Go(func() { names.Announce(ctx, registry.Options{}, func() map[string]string { return name }) })
	return s, nil
}

// Channel returns the channel that is served, for this process's own use.
func (s *Server) Channel() *channel.Memory { return s.memory }

// Release ends the use of an item that this process has got from Channel: its data is not valid any more.
func (s *Server) Release(i channel.Item) {
	if i.Region != 0 {
		s.regions.drop(i.Region, 1)
	}
}

// Close closes the channel and disconnects its clients. Items that are left are lost, and their number is in the log.
func (s *Server) Close() error {
	s.unname()
	s.named.Wait()
	s.memory.Close()
	if n := s.memory.Now("").Items; n > 0 {
		s.options.Log.Warn("channel: items were left", "channel", s.options.Name, "items", n)
	}
	return errors.Join(s.Server.Close(), s.regions.close())
}

// serve answers one client until it disconnects.
func (s *Server) serve(_ context.Context, conn *ipc.Conn) {
	socket, err := shm.SocketOf(conn.UnixConn)
	if err != nil {
		return // the client is gone
	}
	socket.SetSendTimeout(0) // frames that it does not read in time wait in a list
	c := newSession(s, socket, conn)
	err = c.serve()
	c.end()
	if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, syscall.ECONNRESET) {
		s.options.Log.Warn("channel: client disconnected", "channel", s.options.Name, "err", err)
	}
}

// refuse tells a client why it is not served, after its hello.
func (s *Server) refuse(conn *ipc.Conn, why error) {
	socket, err := shm.SocketOf(conn.UnixConn)
	if err != nil {
		return // the client is gone
	}
	switch {
	case errors.Is(why, ipc.ErrFull):
		why = fmt.Errorf("%d clients are connected, which is the most: rlhost channel serve --clients", s.options.Clients)
	case conn.Peer.UID != os.Geteuid():
		why = fmt.Errorf("the channel is another user's: %w", why)
	}
	refuseClient(socket, why)
}

// refuseClient answers a client's hello with the reason why it is not served.
func refuseClient(socket *shm.Socket, why error) {
	socket.SetSendTimeout(0)
	if err := socket.SetReceiveDeadline(time.Now().Add(time.Second)); err != nil {
		return
	}
	buf := make([]byte, maxRequest)
	n, files, err := socket.Receive(buf)
	for _, f := range files {
		_ = f.Close() // no request has one
	}
	var r request
	if err == nil && r.parse(buf[:n]) == nil {
		_ = socket.Send(refusedHello(r.seq, why)) // it may have gone
	}
}
