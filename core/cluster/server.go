package cluster

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// Limits of a Server.
const (
	maxPayload = 8 << 20   // of one message; larger blocks are cut
	maxPending = 256 << 20 // to one connection, above the sum of what may be on its way to it
	maxMemory  = 256 << 20 // of all names
	startTime  = 10 * time.Second
)

// ErrAddress is wrapped by errors of an address at which a server cannot listen.
var ErrAddress = errors.New("cannot listen")

// ServerOptions are what a Server is made with.
type ServerOptions struct {
	Address string // host:port where it listens; port 0 is any free one
	Folder  string // of the run; the server may write there
	Run     string // name of the run, for its token

	// Admits says which hosts may connect, by their public keys. It is called by any goroutine. Without it everybody may, and the address must
	// be of the loopback interface.
	Admits func(key string) bool
	Hosts  int // at most, where Admits is there

	// Certificate is what the server shows, where Admits is there; nil: one that it makes.
	Certificate *tls.Certificate
}

// Server is a server of NATS in this process.
type Server struct {
	nats  *server.Server
	owner *Identity // nil where nobody is asked for a key
	door  *guard    // the same
	token Token     // without a secret
}

// Serve starts a server. With Admits all speak TLS with it, by a certificate that is known by its fingerprint, and have a key each.
func Serve(o ServerOptions) (*Server, error) {
	s := &Server{}
	settings, err := s.settings(o)
	if err != nil {
		return nil, fmt.Errorf("%w at %q: %w", ErrAddress, o.Address, err)
	}
	// The server would try again for as long as it is waited for.
	free, err := net.Listen("tcp", o.Address)
	if err == nil {
		err = free.Close()
	}
	if err == nil {
		s.nats, err = server.NewServer(settings)
	}
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w", ErrAddress, o.Address, err)
	}
	s.nats.Start()
	if !s.nats.ReadyForConnections(startTime) {
		s.Close()
		return nil, fmt.Errorf("%w at %s: the server has not started within %v", ErrAddress, o.Address, startTime)
	}
	if s.door != nil {
		s.door.account.Store(s.nats.GlobalAccount())
	}
	s.token.Address = s.Address()
	return s, nil
}

// settings are the server's, and make its keys and its certificate.
func (s *Server) settings(o ServerOptions) (*server.Options, error) {
	host, text, err := net.SplitHostPort(o.Address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, errors.New("the port is a number up to 65535")
	}
	settings := options(host, int(port), o.Folder)
	if o.Admits == nil {
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
			return nil, errors.New("it is no address of the loopback interface")
		}
		return settings, nil
	}
	return settings, s.guard(settings, o)
}

func (s *Server) guard(settings *server.Options, o ServerOptions) error {
	var err error
	if s.owner, err = NewIdentity(); err != nil {
		return err
	}
	certificate := o.Certificate
	if certificate == nil {
		made, err := newCertificate(time.Now())
		if err != nil {
			return err
		}
		certificate = &made
	}
	s.token = Token{Run: o.Run, Fingerprint: fingerprint(certificate.Certificate[0])}
	settings.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS13}
	s.door = &guard{owner: s.owner.Key(), admits: o.Admits}
	s.door.guarded(settings, o.Hosts)
	return nil
}

// NewToken makes another token, with which hosts may ask this server, at the address at which it listens. All tokens last as long as the server:
// the owner judges them by their keys. It fails where everybody may connect.
func (s *Server) NewToken() (Token, error) {
	if s.door == nil {
		return Token{}, errors.New("this server asks nobody for a key")
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return Token{}, err
	}
	key, err := pair.PublicKey()
	if err != nil {
		return Token{}, err
	}
	seed, err := pair.Seed()
	if err != nil {
		return Token{}, err
	}
	s.door.tokens.Store(key, true)
	token := s.token
	token.Seed = string(seed)
	return token, nil
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
