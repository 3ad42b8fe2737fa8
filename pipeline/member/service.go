package member

import (
	"context"
	"crypto/tls"
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
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/members"
	"github.com/rlhost/rlhost/pipeline/placement"
)

// Times of leases.
const (
	leaseTime  = 3 * time.Second
	renewEvery = time.Second
	joinTime   = 10 * time.Second
	pulseEvery = 100 * time.Millisecond
	pulseGap   = 400 * time.Millisecond
	partTime   = time.Second // to tell others of an end
	tellEvery  = 30 * time.Second
)

// ServiceOptions are what a Service is made with.
type ServiceOptions struct {
	Address string // host:port where it listens

	// External is a cluster of the user's, where the service meets hosts in place of listening; nil: it listens.
	External *cluster.External

	Run     string // the run's name
	Dir     string // the run's folder
	Version string // of rlhost
	Kernels string // that all machines with slots must compute with, for the same parameters; empty: any
	Hosts   int    // at most
	Log     *slog.Logger

	// TokenFor is how long a token lets new hosts ask; 0: as long as the service lasts. The file of the token has one that lasts half of it at
	// least.
	TokenFor time.Duration

	// Channels and Servers are the names of what programs on joined hosts may use of this user's, beside the run itself.
	Channels, Servers []string

	Away *Away // the instances on hosts that join, or nil
	Work Work  // what those hosts need

	CertFile, KeyFile string // the certificate that the service shows, and its key; empty: one that it makes
}

// Service lets hosts join a run. Its methods may be called from any goroutine.
type Service struct {
	o      ServiceOptions
	server *cluster.Server // nil in an external cluster
	prefix string          // of subjects there
	link   *cluster.Link
	begun  time.Time
	stop   context.CancelFunc
	pulses sync.WaitGroup
	epoch  uint64

	sharing *sharing
	callees callees

	mu    sync.Mutex
	table *members.Owner
	made  map[string]time.Duration // when each token was, by its key
	token cluster.Token            // the newest
}

// Serve begins to listen, and writes the token with which hosts join into the run's folder.
func Serve(o ServiceOptions) (*Service, error) {
	s := &Service{o: o, begun: time.Now(), made: map[string]time.Duration{}}
	s.callees.list = map[string]*Callee{}
	s.callees.say = func(key string, frame []byte) { s.link.Say(cluster.SubjectDown(key, verbCall), frame) }
	folder := filepath.Join(o.Dir, "hosts")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	epoch, err := nextEpoch(filepath.Join(folder, "epoch"))
	if err != nil {
		return nil, err
	}
	s.epoch = uint64(epoch)
	s.sharing = &sharing{own: s.epoch << 32, job: control.SocketPath(o.Dir), channels: o.Channels, servers: o.Servers, hosts: map[string]hostLines{}}
	s.table = members.NewOwner(members.Options{Epoch: epoch, Version: o.Version, Kernels: o.Kernels, Most: o.Hosts, TTL: leaseTime, Join: joinTime, Gap: pulseGap})
	if o.External != nil {
		s.prefix = cluster.NewPrefix()
	} else if err := s.listen(folder); err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		s.end()
		if e := unusable(err); e != nil {
			return nil, e
		}
		return nil, err
	}
	return s, nil
}

// listen starts a server in this process.
func (s *Service) listen(folder string) error {
	certificate, err := s.o.certificate(time.Now())
	if err != nil {
		return err
	}
	s.server, err = cluster.Serve(cluster.ServerOptions{
		Address: s.o.Address, Folder: folder, Run: s.o.Run, Hosts: s.o.Hosts, Admits: s.admits, Certificate: certificate,
	})
	if err != nil {
		e := control.Errorf(CodeListen, "%v", err)
		e.Help = "--listen takes HOST:PORT of this machine, such as 0.0.0.0:4222, and a port that no other program has; port 0 is any free one"
		return e
	}
	return nil
}

// end ends the server, where this process has it.
func (s *Service) end() {
	if s.server != nil {
		s.server.Close()
	}
}

// certificate reads the certificate of the options, nil where there is none. One that is not valid now is refused, although hosts that join do not
// read its times: they know it by its fingerprint.
func (o *ServiceOptions) certificate(now time.Time) (*tls.Certificate, error) {
	if o.CertFile == "" {
		return nil, nil
	}
	c, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
	switch {
	case err != nil:
		e := control.Errorf(CodeTLS, "tls_cert = %q and tls_key = %q: %v", o.CertFile, o.KeyFile, err)
		e.Help = "both are PEM files, the key is the certificate's, and this user may read them; without both keys the run makes a certificate"
		return nil, e
	case now.Before(c.Leaf.NotBefore), now.After(c.Leaf.NotAfter):
		e := control.Errorf(CodeTLS, "tls_cert = %q is valid from %v to %v, and this machine's clock says %v", o.CertFile,
			c.Leaf.NotBefore.UTC().Format(time.DateTime), c.Leaf.NotAfter.UTC().Format(time.DateTime), now.UTC().Format(time.DateTime))
		e.Help = "renew the certificate, or set the clock; without tls_cert and tls_key the run makes a certificate, whose times nobody reads"
		return nil, e
	}
	return &c, nil
}

// begin connects the owner, and lets hosts in once it answers them.
func (s *Service) begin() (err error) {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	if s.link, err = cluster.Connect(ctx, cluster.LinkOptions{Server: s.server, External: s.o.External, Prefix: s.prefix}); err != nil {
		stop()
		return err
	}
	for subject, answer := range map[string]func(string, []byte) []byte{
		cluster.SubjectAsk("*"):             s.ask,
		cluster.SubjectUp("*", verbRenew):   s.renew,
		cluster.SubjectUp("*", verbLeave):   s.leave,
		cluster.SubjectUp("*", verbLines):   s.answerLines,
		cluster.SubjectUp("*", verbReplied): s.callees.replied,
	} {
		err = errors.Join(err, s.link.Answer(subject, answer))
	}
	if s.o.Away != nil {
		err = errors.Join(err, s.o.Away.serve(s.link, s.epoch<<32, s.o.Work))
	}
	err = errors.Join(err, s.link.Pulse(ctx), os.WriteFile(s.TokenFile(), nil, 0o600), s.newToken())
	if err != nil {
		stop()
		s.link.Close()
		return err
	}
	s.pulses.Go(func() { s.pulse(ctx) })
	return nil
}

// newToken makes a token and writes it into the file, in place of the one before.
func (s *Service) newToken() error {
	token, err := s.makeToken()
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.token, s.made[token.Key()] = token, time.Since(s.begun)
	s.mu.Unlock()
	return files.Replace(s.TokenFile(), []byte(token.String()+"\n"))
}

func (s *Service) makeToken() (cluster.Token, error) {
	if s.server == nil {
		return s.o.External.NewToken(s.o.Run, s.prefix)
	}
	token, err := s.server.NewToken()
	token.Address = reachable(token.Address)
	return token, err
}

// renewToken makes another token once the newest has lasted half of its time.
func (s *Service) renewToken() {
	s.mu.Lock()
	due := s.o.TokenFor > 0 && time.Since(s.begun)-s.made[s.token.Key()] > s.o.TokenFor/2
	s.mu.Unlock()
	if !due {
		return
	}
	if err := s.newToken(); err != nil {
		s.o.Log.Warn("the token in the run's folder cannot be renewed", "why", err)
	}
}

// expired is the refusal of a host that is new and has a token whose time is over; nil for others.
func (s *Service) expired(token, key string) *control.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	age := time.Since(s.begun) - s.made[token]
	if s.o.TokenFor == 0 || age <= s.o.TokenFor || s.table.Knows(key) {
		return nil
	}
	e := control.Errorf(CodeExpired, "the token of %s has expired: it was made %v ago and lets hosts join for %v", s.o.Run, age.Round(time.Second), s.o.TokenFor)
	e.Help = "copy join.token again from the run's folder, which always has one that lasts; token_for of [cluster] says for how long"
	return e
}

// Address returns where hosts reach this service.
func (s *Service) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token.Address
}

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
			list = append(list, control.HostStatus{
				Name: h.Grant.Name, State: h.State.String(), Version: h.Version, Cores: h.Cores, Memory: h.Memory, Slots: h.Slots, Labels: h.Labels,
			})
		}
	}
	return list
}

// Callees returns the hosts that are here, sorted by name. A host that was lost, or whose calls have failed, is another callee when it is back.
func (s *Service) Callees() []*Callee {
	s.mu.Lock()
	hosts := s.table.Hosts()
	s.mu.Unlock()
	return s.callees.here(hosts)
}

// Wait returns once that many hosts are here, and says every half a minute how many are. Waiting for none, or with no service, returns at once.
func (s *Service) Wait(ctx context.Context, hosts int) error {
	if s == nil {
		return nil
	}
	ticker := time.NewTicker(pulseEvery)
	defer ticker.Stop()
	var told time.Time
	for {
		here := 0
		for _, h := range s.Hosts() {
			if h.State == members.Here.String() {
				here++
			}
		}
		if here >= hosts {
			return nil
		}
		if time.Since(told) > tellEvery {
			s.o.Log.Info("the run waits for machines to join", "here", here, "wait_for", hosts)
			told = time.Now()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
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
	s.sharing.close()
	s.link.Close()
	s.end()
	if err := os.Remove(s.TokenFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// pulse judges leases, and has hosts told of what nobody has told them for a while, until ctx ends.
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
		s.renewToken()
		s.o.Away.tellFreed()
		s.mu.Lock()
		lost := s.table.Pulse(time.Since(s.begun))
		s.mu.Unlock()
		for _, h := range lost {
			s.o.Log.Warn("a host is lost", "host", h.Grant.Name)
			s.sharing.gone(h.Key)
			s.callees.gone(h.Key)
			s.o.Away.gone(h.Key, false)
		}
	}
}

func (s *Service) admits(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Admits(key)
}

func (s *Service) ask(subject string, data []byte) []byte {
	var r members.Request
	if err := json.Unmarshal(data, &r); err != nil {
		return encode(askReply{Refused: refusal(fmt.Errorf("%w: %w", members.ErrInvalid, err))})
	}
	refused := s.expired(cluster.TokenOf(subject), r.Key)
	if refused == nil {
		s.mu.Lock()
		g, err := s.table.Ask(r)
		s.mu.Unlock()
		if err == nil {
			return encode(askReply{Grant: &g})
		}
		refused = refusal(err)
	}
	if refused == nil {
		return nil
	}
	s.o.Log.Warn("a host may not join", "code", string(refused.Code), "why", refused.Reason)
	return encode(askReply{Refused: refused})
}

// lease calls fn for the host that speaks, by the subject: the server lets no other host use it. It returns the host's row where fn has no error.
func (s *Service) lease(subject string, data []byte, fn func(key string, incarnation uint64) error) (h members.Host, why *control.Error, ok bool) {
	var r leaseRequest
	key := cluster.KeyOf(subject)
	if err := json.Unmarshal(data, &r); err != nil {
		return members.Host{}, nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if fn(key, r.Incarnation) != nil {
		return members.Host{}, nil, false
	}
	h, ok = s.table.Host(key)
	return h, r.Why, ok
}

func (s *Service) renew(subject string, data []byte) []byte {
	first := false
	h, _, ok := s.lease(subject, data, func(key string, incarnation uint64) (err error) {
		first, err = s.table.Renew(key, incarnation)
		return err
	})
	if !ok {
		return encode(leaseReply{Stranger: true})
	}
	if first {
		s.o.Log.Info("a host has joined", "host", h.Grant.Name)
	}
	changes := s.o.Away.here(h.Key, placement.Host{Name: h.Grant.Name, Slots: h.Slots, Labels: h.Labels})
	return encode(leaseReply{Changes: changes, Shared: s.sharing.served()})
}

func (s *Service) leave(subject string, data []byte) []byte {
	h, why, ok := s.lease(subject, data, s.table.Leave)
	if ok && why != nil {
		s.o.Log.Warn("a host has left, for it cannot run its part", "host", h.Grant.Name, "code", short(string(why.Code)), "why", short(why.Reason), "help", short(why.Help))
	} else if ok {
		s.o.Log.Info("a host has left", "host", h.Grant.Name)
	}
	if ok {
		s.sharing.gone(h.Key)
		s.callees.gone(h.Key)
		s.o.Away.gone(h.Key, true)
	}
	return encode(leaseReply{Stranger: !ok})
}

// short bounds a text of another host.
func short(text string) string { return fmt.Sprintf("%.400s", text) }

// answerLines takes the lines of a host whose lease lasts.
func (s *Service) answerLines(subject string, data []byte) []byte {
	var q linesRequest
	key := cluster.KeyOf(subject)
	if json.Unmarshal(data, &q) != nil {
		return nil
	}
	s.mu.Lock()
	h, ok := s.table.Host(key)
	s.mu.Unlock()
	if !ok || h.State != members.Here || h.Grant.Incarnation != q.Incarnation {
		return encode(linesReply{})
	}
	if err := s.sharing.accept(s.link, key, q); err != nil {
		s.o.Log.Warn("a host's programs have no way here", "host", h.Grant.Name, "why", err)
		return nil
	}
	return encode(linesReply{s.sharing.own})
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
