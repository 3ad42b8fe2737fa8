package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/cluster"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/members"
)

// Times of leases.
const (
	leaseTime  = 3 * time.Second
	renewEvery = time.Second
	joinTime   = 10 * time.Second
	pulseEvery = 100 * time.Millisecond
	pulseGap   = 400 * time.Millisecond
	partTime   = time.Second // to tell others of an end
)

// ServiceOptions are what a Service is made with.
type ServiceOptions struct {
	Address string // host:port where it listens
	Run     string // the run's name
	Dir     string // the run's folder
	Version string // of rlhost
	Hosts   int    // at most
	Log     *slog.Logger
}

// Service lets hosts join a run. Its methods may be called from any goroutine.
type Service struct {
	o      ServiceOptions
	server *cluster.Server
	link   *cluster.Link
	token  cluster.Token
	begun  time.Time
	stop   context.CancelFunc
	pulses sync.WaitGroup

	mu    sync.Mutex
	table *members.Owner
}

// Serve begins to listen, and writes the token with which hosts join into the run's folder.
func Serve(o ServiceOptions) (*Service, error) {
	s := &Service{o: o, begun: time.Now()}
	folder := filepath.Join(o.Dir, "hosts")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	epoch, err := nextEpoch(filepath.Join(folder, "epoch"))
	if err != nil {
		return nil, err
	}
	s.table = members.NewOwner(members.Options{Epoch: epoch, Version: o.Version, Most: o.Hosts, TTL: leaseTime, Join: joinTime, Gap: pulseGap})
	s.server, err = cluster.Serve(cluster.ServerOptions{Address: o.Address, Folder: folder, Run: o.Run, Hosts: o.Hosts, Admits: s.admits})
	if err != nil {
		e := control.Errorf(CodeListen, "%v", err)
		e.Help = "--listen takes HOST:PORT of this machine, such as 0.0.0.0:4222, and a port that no other program has; port 0 is any free one"
		return nil, e
	}
	if err := s.begin(); err != nil {
		s.server.Close()
		return nil, err
	}
	return s, nil
}

// begin connects the owner, and lets hosts in once it answers them.
func (s *Service) begin() (err error) {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	if s.link, err = cluster.Connect(ctx, cluster.LinkOptions{Server: s.server}); err != nil {
		stop()
		return err
	}
	for subject, answer := range map[string]func(string, []byte) []byte{
		cluster.SubjectAsk:                s.ask,
		cluster.SubjectUp("*", verbRenew): s.renew,
		cluster.SubjectUp("*", verbLeave): s.leave,
	} {
		err = errors.Join(err, s.link.Answer(subject, answer))
	}
	s.token = s.server.Token()
	s.token.Address = reachable(s.token.Address)
	err = errors.Join(err, s.link.Pulse(ctx), os.WriteFile(s.TokenFile(), []byte(s.token.String()+"\n"), 0o600))
	if err != nil {
		stop()
		s.link.Close()
		return err
	}
	s.pulses.Go(func() { s.pulse(ctx) })
	return nil
}

// Address returns where hosts reach this service.
func (s *Service) Address() string { return s.token.Address }

// TokenFile returns the file of the token. It is this user's alone, and gone when the service ends.
func (s *Service) TokenFile() string { return filepath.Join(s.o.Dir, "join.token") }

// Hosts returns the hosts that have joined, also lost ones and ones that have left, sorted by name. No service has none.
func (s *Service) Hosts() []control.HostStatus {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []control.HostStatus
	for _, h := range s.table.Hosts() {
		if h.State != members.Admitted {
			list = append(list, control.HostStatus{Name: h.Grant.Name, State: h.State.String(), Version: h.Version, Cores: h.Cores, Memory: h.Memory})
		}
	}
	return list
}

// Close tells the hosts that the run is over and ends the service. Closing none does nothing.
func (s *Service) Close() error {
	if s == nil {
		return nil
	}
	ctx, done := context.WithTimeout(context.Background(), partTime)
	defer done()
	_ = s.link.Tell(ctx, cluster.SubjectAll, []byte(tellOver)) // a host that does not hear it finds out by itself
	s.stop()
	s.pulses.Wait()
	s.link.Close()
	s.server.Close()
	if err := os.Remove(s.TokenFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// pulse judges leases until ctx ends.
func (s *Service) pulse(ctx context.Context) {
	ticker := time.NewTicker(pulseEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if s.link.Pulse(ctx) != nil {
			continue
		}
		s.mu.Lock()
		lost := s.table.Pulse(time.Since(s.begun))
		s.mu.Unlock()
		for _, h := range lost {
			s.o.Log.Warn("a host is lost", "host", h.Grant.Name)
		}
	}
}

func (s *Service) admits(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Admits(key)
}

func (s *Service) ask(_ string, data []byte) []byte {
	var r members.Request
	if err := json.Unmarshal(data, &r); err != nil {
		return encode(askReply{Refused: refusal(fmt.Errorf("%w: %w", members.ErrInvalid, err))})
	}
	s.mu.Lock()
	g, err := s.table.Ask(r)
	s.mu.Unlock()
	if err == nil {
		return encode(askReply{Grant: &g})
	}
	refused := refusal(err)
	if refused == nil {
		return nil
	}
	s.o.Log.Warn("a host may not join", "code", string(refused.Code), "why", refused.Reason)
	return encode(askReply{Refused: refused})
}

// lease calls fn for the host that speaks, by the subject: the server lets no other host use it.
func (s *Service) lease(subject string, data []byte, fn func(key string, incarnation uint64) error) []byte {
	var r leaseRequest
	key := cluster.KeyOf(subject)
	if err := json.Unmarshal(data, &r); err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return encode(leaseReply{Stranger: fn(key, r.Incarnation) != nil})
}

func (s *Service) renew(subject string, data []byte) []byte {
	return s.lease(subject, data, func(key string, incarnation uint64) error {
		first, err := s.table.Renew(key, incarnation)
		if first {
			s.o.Log.Info("a host has joined", "host", s.nameOf(key))
		}
		return err
	})
}

func (s *Service) leave(subject string, data []byte) []byte {
	return s.lease(subject, data, func(key string, incarnation uint64) error {
		err := s.table.Leave(key, incarnation)
		if err == nil {
			s.o.Log.Info("a host has left", "host", s.nameOf(key))
		}
		return err
	})
}

// nameOf returns a host's name, with mu held.
func (s *Service) nameOf(key string) string {
	for _, h := range s.table.Hosts() {
		if h.Key == key {
			return h.Grant.Name
		}
	}
	return ""
}

// nextEpoch returns a number above all that it has returned for a file.
func nextEpoch(file string) (uint32, error) {
	var last uint64
	text, err := os.ReadFile(file)
	if err == nil {
		last, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("the number of starts in %s: %w", file, err)
	}
	return uint32(last + 1), os.WriteFile(file, []byte(strconv.FormatUint(last+1, 10)+"\n"), 0o600)
}

// reachable returns an address for other machines: that of an interface in place of all of them.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return address
	}
	all, _ := net.InterfaceAddrs() // none: it stays as it is
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			return net.JoinHostPort(n.IP.String(), port)
		}
	}
	return address
}
