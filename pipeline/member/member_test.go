package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/cluster"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/members"
	"github.com/rlhost/rlhost/internal/testkit"
)

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

func serveRun(t *testing.T, hosts int) *Service {
	t.Helper()
	s, err := Serve(ServiceOptions{Address: "127.0.0.1:0", Run: "pole/0001", Dir: t.TempDir(), Version: "1.2.0", Hosts: hosts, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// served is serveRun for tests that do not end it.
func served(t *testing.T, hosts int) *Service {
	t.Helper()
	s := serveRun(t, hosts)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func tokenOf(t *testing.T, s *Service) cluster.Token {
	t.Helper()
	text, err := os.ReadFile(s.TokenFile())
	if err != nil {
		t.Fatal(err)
	}
	token, err := cluster.ParseToken(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func host(token cluster.Token) JoinOptions {
	return JoinOptions{Token: token, Name: "node", Version: "1.3.1", Cores: 4, Memory: 1 << 30, Log: slog.New(slog.DiscardHandler)}
}

// waitFor waits until the hosts of a run are these.
func waitFor(t *testing.T, s *Service, want ...control.HostStatus) {
	t.Helper()
	testkit.Until(t, fmt.Sprintf("the hosts %+v", want), func() bool { return slices.Equal(s.Hosts(), want) })
}

func status(name, state string) control.HostStatus {
	return control.HostStatus{Name: name, State: state, Version: "1.3.1", Cores: 4, Memory: 1 << 30}
}

func TestJoin_LastsUntilTheHostLeaves(t *testing.T) {
	s := served(t, 8)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	joined, ended := make(chan string, 2), make(chan error, 2)
	for range 2 {
		o := host(tokenOf(t, s))
		o.Joined = func(name string) { joined <- name }
		go func() { ended <- Join(ctx, o) }()
	}
	names := []string{<-joined, <-joined}
	if slices.Sort(names); !slices.Equal(names, []string{"node", "node-2"}) {
		t.Errorf("names %q", names)
	}
	waitFor(t, s, status("node", "HERE"), status("node-2", "HERE"))
	leave()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	waitFor(t, s, status("node", "LEFT"), status("node-2", "LEFT"))
}

func TestJoin_EndsWithTheRun(t *testing.T) {
	s := serveRun(t, 8)
	joined, ended := make(chan string, 1), make(chan error, 1)
	o := host(tokenOf(t, s))
	o.Joined = func(name string) { joined <- name }
	go func() { ended <- Join(t.Context(), o) }()
	<-joined
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.TokenFile()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the token of an ended run is there: %v", err)
	}
}

// cable carries connections to a run, until it is cut.
type cable struct {
	listener net.Listener
	mu       sync.Mutex
	cut      bool
	conns    []net.Conn
}

func newCable(t *testing.T, to string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{listener: l}
	t.Cleanup(func() { c.set(true); _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			c.join(near, to)
		}
	}()
	return c
}

// join carries one connection, unless the cable is cut.
func (c *cable) join(near net.Conn, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	far, err := net.Dial("tcp", to)
	if c.cut || err != nil {
		_ = near.Close()
		return
	}
	c.conns = append(c.conns, near, far)
	go func() { _, _ = io.Copy(near, far) }()
	go func() { _, _ = io.Copy(far, near) }()
}

// set cuts the cable, which ends what it carries, or mends it.
func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

// A host that was cut off for longer than its lease is lost, and joins again by itself, as the same host, when it can.
func TestJoin_ComesBackAfterACut(t *testing.T) {
	s := served(t, 8)
	line := newCable(t, s.Address())
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	ended := make(chan error, 1)
	o := host(tokenOf(t, s))
	o.Token.Address = line.listener.Addr().String()
	go func() { ended <- Join(ctx, o) }()
	waitFor(t, s, status("node", "HERE"))
	for range 2 {
		line.set(true)
		waitFor(t, s, status("node", "LOST"))
		line.set(false)
		waitFor(t, s, status("node", "HERE"))
	}
	leave()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// joinOnce is a host that renews its lease once and is never heard of again.
func joinOnce(t *testing.T, s *Service) {
	t.Helper()
	identity, err := cluster.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	asker, err := cluster.Connect(t.Context(), cluster.LinkOptions{Token: tokenOf(t, s)})
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	text, err := asker.Ask(ctx, cluster.SubjectAsk, encode(members.Request{Key: identity.Key(), Attempt: 1, Name: "node", Version: "1.3.1", Cores: 4, Memory: 1 << 30}))
	var reply askReply
	if err := errors.Join(err, json.Unmarshal(text, &reply)); err != nil || reply.Grant == nil {
		t.Fatalf("%s: %v", text, err)
	}
	link, err := cluster.Connect(ctx, cluster.LinkOptions{Token: tokenOf(t, s), Identity: identity})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	if r, err := lease(ctx, link, identity.Key(), verbRenew, reply.Grant.Incarnation); err != nil || r.Stranger {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err := lease(ctx, link, identity.Key(), verbLeave, reply.Grant.Incarnation+1); err != nil || !r.Stranger {
		t.Fatalf("another incarnation leaves: %+v, %v", r, err)
	}
}

func TestService_LosesAHostThatIsSilent(t *testing.T) {
	s := served(t, 8)
	joinOnce(t, s)
	waitFor(t, s, status("node", "HERE"))
	began := time.Now()
	waitFor(t, s, status("node", "LOST"))
	t.Logf("lost after %v", time.Since(began))
	if took := time.Since(began); took < leaseTime-time.Second {
		t.Errorf("the host was lost after %v, its lease is %v", took, leaseTime)
	}
}

// Each refusal has a code, a reason and a remedy.
func TestJoin_SaysWhyNot(t *testing.T) {
	s, other := served(t, 1), served(t, 1)
	ended := serveRun(t, 1)
	endedToken := tokenOf(t, ended)
	if err := ended.Close(); err != nil {
		t.Fatal(err)
	}
	elsewhere := tokenOf(t, other)
	elsewhere.Address = s.Address()
	version := host(tokenOf(t, s))
	version.Version = "2.0.0"
	name := host(tokenOf(t, s))
	name.Name = "a b"
	full := served(t, 1)
	joinOnce(t, full)
	for what, c := range map[string]struct {
		options JoinOptions
		code    control.Code
		says    []string
	}{
		"an ended run":       {host(endedToken), CodeReach, []string{endedToken.Address, "firewall"}},
		"another run":        {host(elsewhere), CodeOther, []string{s.Address(), "copy join.token", "pole/0001"}},
		"another version":    {version, CodeVersion, []string{"2.0.0", "1.2.0", "install"}},
		"no name":            {name, CodeRequest, []string{`"a b"`, "--name"}},
		"a run that is full": {host(tokenOf(t, full)), CodeFull, []string{"it has 1", "--hosts"}},
	} {
		ctx, stop := context.WithTimeout(t.Context(), patience)
		err := Join(ctx, c.options)
		stop()
		var e *control.Error
		if !errors.As(err, &e) || e.Code != c.code {
			t.Errorf("%s: %v, want %s", what, err, c.code)
			continue
		}
		for _, text := range c.says {
			if !strings.Contains(e.Reason+" "+e.Help, text) {
				t.Errorf("%s: %q, %q do not say %q", what, e.Reason, e.Help, text)
			}
		}
	}
}

func TestServe_SaysWhereItCannotListen(t *testing.T) {
	for _, address := range []string{"", "4222", "127.0.0.1:x", served(t, 1).Address()} {
		_, err := Serve(ServiceOptions{Address: address, Dir: t.TempDir(), Version: "1.2.0", Hosts: 1, Log: slog.New(slog.DiscardHandler)})
		var e *control.Error
		if !errors.As(err, &e) || e.Code != CodeListen || !strings.Contains(e.Help, "0.0.0.0:4222") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// A stranger who says nothing, and one with the token who asks 10,000 times, keep no host out for long, and no host that is here.
func TestService_OutlastsStrangers(t *testing.T) {
	s := served(t, 3)
	for range 500 {
		c, err := net.Dial("tcp", s.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	joined, ended := make(chan string, 1), make(chan error, 1)
	o := host(tokenOf(t, s))
	o.Joined = func(name string) { joined <- name }
	go func() { ended <- Join(ctx, o) }()
	select {
	case <-joined:
	case err := <-ended:
		t.Fatalf("500 silent strangers keep a host out: %v", err)
	}
	asker, err := cluster.Connect(ctx, cluster.LinkOptions{Token: tokenOf(t, s)})
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	within, stop := context.WithTimeout(ctx, patience)
	defer stop()
	refused := 0
	for i := range 10_000 {
		text, err := asker.Ask(within, cluster.SubjectAsk, encode(members.Request{Key: fmt.Sprint("key", i), Attempt: 1, Name: "evil", Version: "1.2.0"}))
		var reply askReply
		if err := errors.Join(err, json.Unmarshal(text, &reply)); err != nil {
			t.Fatal(err)
		}
		if reply.Refused != nil && reply.Refused.Code == CodeFull {
			refused++
		}
	}
	if refused < 9_900 {
		t.Errorf("%d of 10000 are refused", refused)
	}
	waitFor(t, s, status("node", "HERE"))
	leave()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestService_EpochsGrow(t *testing.T) {
	file := t.TempDir() + "/epoch"
	for want := range uint32(3) {
		if got, err := nextEpoch(file); got != want+1 || err != nil {
			t.Errorf("epoch %d, want %d: %v", got, want+1, err)
		}
	}
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := nextEpoch(file); err == nil {
		t.Error("a damaged number is read")
	}
}
