package cluster

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Limits of a Server.
const (
	maxPayload = 8 << 20   // of one message; larger blocks are cut
	maxPending = 64 << 20  // to one connection, above the sum of the windows to it
	maxMemory  = 256 << 20 // of all names
	startTime  = 10 * time.Second
)

// ErrAddress is wrapped by errors of an address at which a server cannot listen.
var ErrAddress = errors.New("cannot listen")

// ServerOptions are what a Server is made with.
type ServerOptions struct {
	Address string // host:port, of this machine alone; port 0 is any free one
	Folder  string // of the run; the server may write there
}

// Server is a server of NATS in this process.
type Server struct {
	nats *server.Server
}

// Serve starts a server. It listens on the loopback interface alone, because a program that can connect may do everything.
func Serve(o ServerOptions) (*Server, error) {
	host, text, err := net.SplitHostPort(o.Address)
	if err != nil {
		return nil, fmt.Errorf("%w at %q: %w", ErrAddress, o.Address, err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("%w at %s: it is no address of the loopback interface", ErrAddress, o.Address)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%w at %s: the port is a number up to 65535", ErrAddress, o.Address)
	}
	// The server would try again for as long as it is waited for.
	free, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w", ErrAddress, o.Address, err)
	}
	if err := free.Close(); err != nil {
		return nil, fmt.Errorf("%w at %s: %w", ErrAddress, o.Address, err)
	}
	s, err := server.NewServer(options(host, int(port), o.Folder))
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w", ErrAddress, o.Address, err)
	}
	s.Start()
	if !s.ReadyForConnections(startTime) {
		s.Shutdown()
		return nil, fmt.Errorf("%w at %s: the server has not started within %v", ErrAddress, o.Address, startTime)
	}
	return &Server{s}, nil
}

func options(host string, port int, folder string) *server.Options {
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return &server.Options{
		Host: host, Port: port, NoSigs: true, NoLog: true,
		MaxPayload: maxPayload, MaxPending: maxPending, WriteDeadline: 10 * time.Second, PingInterval: 20 * time.Second,
		JetStream: true, JetStreamMaxMemory: maxMemory, JetStreamMaxStore: -1, DisableJetStreamBanner: true,
		StoreDir: folder, // without one all servers of a machine would share a folder
	}
}

// Address returns where the server listens.
func (s *Server) Address() string { return s.nats.Addr().String() }

// Close ends the server and waits until it has ended.
func (s *Server) Close() {
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
}
