package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"github.com/rlhost/rlhost/core/ipc"
)

const defaultClients = 64

// ListenOptions of a server.
type ListenOptions struct {
	Clients int          // how many may be connected; one more replaces the least recently used. 0 is 64
	Log     *slog.Logger // nil is slog.Default
}

// errClosing ends the requests that are under way when the server is closed.
var errClosing = errors.New("the run has ended")

// Names of sockets.
const (
	jobPrefix = "job-"
	jobSuffix = ".sock"
)

// maxPath is the longest path of a Unix socket on all systems.
const maxPath = 103

// SocketPath returns where the job with that run folder listens: see ServicePath. It is short, whatever the run folder is called, and the
// same for all paths of one folder.
func SocketPath(runDir string) string {
	if abs, err := filepath.Abs(runDir); err == nil {
		runDir = abs
	}
	if real, err := filepath.EvalSymlinks(runDir); err == nil {
		runDir = real
	}
	sum := sha256.Sum256([]byte(runDir))
	return ServicePath(jobPrefix + hex.EncodeToString(sum[:8]) + jobSuffix)
}

// ServerPath returns where a server of that name listens, of rlhost.Server in Python: see ServicePath. A run of another machine, which this one has
// joined, listens there by its ID.
func ServerPath(name string) string {
	sum := sha256.Sum256([]byte(name))
	return ServicePath("server-" + hex.EncodeToString(sum[:8]) + ".sock")
}

// ServicePath returns the path of a socket with that name in the user's runtime folder, else in a folder of the user's own in /tmp.
func ServicePath(name string) string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		if path := filepath.Join(dir, "rlhost", name); len(path) <= maxPath {
			return path
		}
	}
	return filepath.Join("/tmp", "rlhost-"+strconv.Itoa(os.Geteuid()), name)
}

// Server answers the requests of this user's clients until Close.
type Server = ipc.Server

// Listen makes a socket at path and serves it, on new goroutines, until Close, which ends the contexts of running requests and waits
// for their answers. A socket that a killed job left is replaced; a socket in use is ipc.ErrInUse. The socket's folder is made if it
// does not exist, and must belong to this user alone. verbs must not be changed afterwards.
func Listen(path string, verbs Verbs, o ListenOptions) (*Server, error) {
	log, clients := cmp.Or(o.Log, slog.Default()), cmp.Or(o.Clients, defaultClients)
	s, err := ipc.Listen(ipc.Config{
		Name: "control", Path: path, Network: "unix", Sweep: jobPrefix + "*" + jobSuffix,
		Clients: clients, MakeRoom: true, Ended: errClosing, Log: log,
		Serve: func(ctx context.Context, c *ipc.Conn) {
			newSession(context.WithValue(ctx, peerKey{}, c.Peer), verbs, log, c, c.Occupy).serve()
		},
		Refuse: func(c *ipc.Conn, err error) { refuse(c, clients, err) },
	})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return s, nil
}

type peerKey struct{}

// PeerOf returns the peer that made ctx's request. ok is false for another context.
func PeerOf(ctx context.Context) (p ipc.Peer, ok bool) {
	p, ok = ctx.Value(peerKey{}).(ipc.Peer)
	return p, ok
}
