package member

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
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
	return JoinOptions{Token: token, Name: "node", Version: "1.3.1", Cores: 4, Memory: 1 << 30, Slots: 3, Labels: map[string]string{"gpu": "h100"}, Log: slog.New(slog.DiscardHandler)}
}

// waitFor waits until the hosts of a run are these.
func waitFor(t *testing.T, s *Service, want ...control.HostStatus) {
	t.Helper()
	testkit.Until(t, fmt.Sprintf("the hosts %+v", want), func() bool { return reflect.DeepEqual(s.Hosts(), want) })
}

func status(name, state string) control.HostStatus {
	return control.HostStatus{Name: name, State: state, Version: "1.3.1", Cores: 4, Memory: 1 << 30, Slots: 3, Labels: map[string]string{"gpu": "h100"}}
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

// A host that was cut off for longer than its lease is lost, and joins again by itself, as the same host, when it can.
func TestJoin_ComesBackAfterACut(t *testing.T) {
	s := served(t, 8)
	line := testkit.NewCable(t, s.Address())
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	ended := make(chan error, 1)
	o := host(tokenOf(t, s))
	o.Token.Address = line.Address()
	go func() { ended <- Join(ctx, o) }()
	waitFor(t, s, status("node", "HERE"))
	for range 2 {
		line.Cut()
		waitFor(t, s, status("node", "LOST"))
		line.Mend()
		waitFor(t, s, status("node", "HERE"))
	}
	leave()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A host of a run that was killed ends by itself, with E133, once another one is in its place or the same has been resumed there, also where that shows the
// same certificate of the user's.
func TestJoin_EndsWhereAnotherIsInThePlaceOfItsRun(t *testing.T) {
	cert, key := certificateFiles(t, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	for what, files := range map[string][2]string{"a certificate of its own": {}, "the user's": {cert, key}} {
		serve := func(address string) *Service {
			s, err := Serve(ServiceOptions{
				Address: address, Run: "pole/0001", Dir: t.TempDir(), Version: "1.2.0", Hosts: 8, CertFile: files[0], KeyFile: files[1], Log: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		killed := serve("127.0.0.1:0")
		joined, ended := make(chan string, 1), make(chan error, 1)
		o := host(tokenOf(t, killed))
		o.Joined = func(name string) { joined <- name }
		go func() { ended <- Join(t.Context(), o) }()
		<-joined
		killed.stop()
		killed.pulses.Wait()
		killed.link.Close()
		killed.end()
		next := serve(o.Token.Address)
		var e *control.Error
		if err := <-ended; !errors.As(err, &e) || e.Code != CodeOther || !strings.Contains(e.Help, "copy join.token again") {
			t.Errorf("%s: %v", what, err)
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
	}
}

// joinOnce is a host that renews its lease once and is never heard of again.
func joinOnce(t *testing.T, s *Service) {
	t.Helper()
	identity, err := cluster.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	token := tokenOf(t, s)
	asker, err := cluster.Connect(t.Context(), cluster.LinkOptions{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	text, err := asker.Ask(ctx, cluster.SubjectAsk(token.Key()), encode(members.Request{Key: identity.Key(), Attempt: 1, Name: "node", Version: "1.3.1", Cores: 4, Memory: 1 << 30, Slots: 3, Labels: map[string]string{"gpu": "h100"}}))
	var reply askReply
	if err := errors.Join(err, json.Unmarshal(text, &reply)); err != nil || reply.Grant == nil {
		t.Fatalf("%s: %v", text, err)
	}
	link, err := cluster.Connect(ctx, cluster.LinkOptions{Token: tokenOf(t, s), Identity: identity})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	if r, err := lease(ctx, link, identity.Key(), verbRenew, leaseRequest{Incarnation: reply.Grant.Incarnation}); err != nil || r.Stranger {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err := lease(ctx, link, identity.Key(), verbLeave, leaseRequest{Incarnation: reply.Grant.Incarnation + 1}); err != nil || !r.Stranger {
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
	exact, err := Serve(ServiceOptions{Address: "127.0.0.1:0", Dir: t.TempDir(), Version: "1.2.0", Kernels: "avx512", Hosts: 1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer exact.Close()
	kernels := host(tokenOf(t, exact))
	kernels.Kernels = "avx2"
	for what, c := range map[string]struct {
		options JoinOptions
		code    control.Code
		says    []string
	}{
		"an ended run":       {host(endedToken), CodeReach, []string{endedToken.Address, "firewall"}},
		"another run":        {host(elsewhere), CodeOther, []string{s.Address(), "copy join.token", "pole/0001"}},
		"another version":    {version, CodeVersion, []string{"2.0.0", "1.2.0", "install"}},
		"no name":            {name, CodeRequest, []string{`"a b"`, "--name"}},
		"other kernels":      {kernels, CodeKernels, []string{"node", "avx2", "avx512", "--slots 0"}},
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
	token := tokenOf(t, s)
	asker, err := cluster.Connect(ctx, cluster.LinkOptions{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	within, stop := context.WithTimeout(ctx, patience)
	defer stop()
	refused := 0
	for i := range 10_000 {
		text, err := asker.Ask(within, cluster.SubjectAsk(token.Key()), encode(members.Request{Key: fmt.Sprint("key", i), Attempt: 1, Name: "evil", Version: "1.2.0"}))
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

// A host ends with E137 once the run has been silent for too long, and says what to do.
func TestJoin_EndsWhereTheRunIsSilent(t *testing.T) {
	j := &joining{o: JoinOptions{Token: cluster.Token{Address: "10.0.0.1:4222"}, Log: slog.New(slog.DiscardHandler)}, begun: time.Now().Add(-grace - time.Minute)}
	j.ctx = t.Context()
	j.using = &using{}
	j.under = true // no question is asked
	j.member = members.NewMember(0, j, members.MemberOptions{Every: renewEvery, Grace: grace, Abandon: abandon})
	if j.judge(); !j.waits || j.err != nil {
		t.Errorf("after the grace: waits %v, %v", j.waits, j.err)
	}
	j.begun = time.Now().Add(-abandon - time.Second)
	j.judge()
	var e *control.Error
	if !errors.As(j.err, &e) || e.Code != CodeSilent || !strings.Contains(e.Reason, "10.0.0.1:4222 has not answered for 10m") || !strings.Contains(e.Help, "new token") {
		t.Errorf("after the time to abandon: %v", j.err)
	}
}

// certificateFiles writes a certificate that is valid between two times, and its key.
func certificateFiles(t *testing.T, from, to time.Time) (cert, key string) {
	t.Helper()
	pair, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "run"}, NotBefore: from, NotAfter: to}
	der, err := x509.CreateCertificate(cryptorand.Reader, template, template, &pair.PublicKey, pair)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(pair)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = dir+"/cert.pem", dir+"/key.pem"
	if err := errors.Join(
		os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}), 0o600)); err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func withCertificate(t *testing.T, cert, key string) (*Service, error) {
	t.Helper()
	return Serve(ServiceOptions{
		Address: "127.0.0.1:0", Run: "pole/0001", Dir: t.TempDir(), Version: "1.2.0", Hosts: 2, CertFile: cert, KeyFile: key, Log: slog.New(slog.DiscardHandler),
	})
}

// Hosts join a run that shows a certificate of the user's; one that is no good is refused, with the reason, before anybody can join.
func TestService_ShowsTheCertificateOfItsFiles(t *testing.T) {
	now := time.Now()
	cert, key := certificateFiles(t, now.Add(-time.Hour), now.Add(time.Hour))
	s, err := withCertificate(t, cert, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	o := host(tokenOf(t, s))
	o.Joined = func(string) { leave() }
	if err := Join(ctx, o); err != nil {
		t.Error(err)
	}
	_, other := certificateFiles(t, now.Add(-time.Hour), now.Add(time.Hour))
	oldCert, oldKey := certificateFiles(t, now.Add(-2*time.Hour), now.Add(-time.Hour))
	newCert, newKey := certificateFiles(t, now.Add(5*time.Hour), now.Add(9*time.Hour)) // or the clock is hours behind
	for what, c := range map[string]struct{ cert, key, says string }{
		"another's key":  {cert, other, "private key does not match public key"},
		"no file":        {cert + "x", key, "no such file"},
		"no certificate": {key, key, "certificate"},
		"over":           {oldCert, oldKey, "and this machine's clock says"},
		"not yet":        {newCert, newKey, "and this machine's clock says"},
	} {
		_, err := withCertificate(t, c.cert, c.key)
		var e *control.Error
		if !errors.As(err, &e) || e.Code != CodeTLS || !strings.Contains(e.Reason, c.says) || e.Help == "" {
			t.Errorf("%s: %v, want %s with %q", what, err, CodeTLS, c.says)
		}
	}
}

func TestService_WaitsForHosts(t *testing.T) {
	s := served(t, 8)
	if err := (*Service)(nil).Wait(t.Context(), 1); err != nil {
		t.Error(err)
	}
	short, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if err := s.Wait(short, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nobody is here: %v", err)
	}
	joinOnce(t, s)
	if err := s.Wait(t.Context(), 1); err != nil {
		t.Error(err)
	}
}

// The time of a token is the run's own: a new host with an old one is told so by name, one that has joined comes back, and the file has a
// token that lasts.
func TestService_TokensExpire(t *testing.T) {
	const lasts = 500 * time.Millisecond
	s, err := Serve(ServiceOptions{Address: "127.0.0.1:0", Run: "pole/0001", Dir: t.TempDir(), Version: "1.2.0", Hosts: 8, TokenFor: lasts, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	old := tokenOf(t, s)
	asker, err := cluster.Connect(t.Context(), cluster.LinkOptions{Token: old})
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	ask := func(key string, attempt uint64) (reply askReply) {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), patience)
		defer stop()
		text, err := asker.Ask(ctx, cluster.SubjectAsk(old.Key()), encode(members.Request{Key: key, Attempt: attempt, Name: "node", Version: "1.3.1"}))
		if err := errors.Join(err, json.Unmarshal(text, &reply)); err != nil {
			t.Fatal(err)
		}
		return reply
	}
	if r := ask("known", 1); r.Grant == nil {
		t.Fatalf("a token that lasts: %+v", r.Refused)
	}
	var refused *control.Error
	testkit.Until(t, "the token to expire", func() bool { // a request that is none is judged after the token
		refused = ask("not admitted", 1).Refused
		return refused != nil && refused.Code != CodeRequest
	})
	if refused.Code != CodeExpired || !strings.Contains(refused.Reason, "pole/0001 has expired") || !strings.Contains(refused.Help, "copy join.token") {
		t.Errorf("%+v", refused)
	}
	if r := ask("known", 2); r.Grant == nil {
		t.Errorf("a host that has joined may not come back: %+v", r.Refused)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	ended := make(chan error, 1)
	o := host(tokenOf(t, s))
	o.Joined = func(string) { leave() }
	go func() { ended <- Join(ctx, o) }()
	if err := <-ended; err != nil {
		t.Errorf("with the token of the file: %v", err)
	}
	if info, err := os.Stat(s.TokenFile()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file: %v, %v", info, err)
	}
}

// What is wrong with a cluster of the user's has a code and a remedy; other errors are left alone.
func TestUnusable_SaysWhatToDo(t *testing.T) {
	for _, c := range []struct {
		err  error
		code control.Code
		help string
	}{
		{fmt.Errorf("%w: a takes 65536 bytes at once", cluster.ErrPayload), CodePayload, "max_payload"},
		{fmt.Errorf("%w: nobody there", cluster.ErrExternal), CodeCluster, "--creds"},
	} {
		e := unusable(c.err)
		if e == nil || e.Code != c.code || !strings.Contains(e.Reason, c.err.Error()) || !strings.Contains(e.Help, c.help) {
			t.Errorf("%v: %+v", c.err, e)
		}
	}
	if e := unusable(cluster.ErrKey); e != nil {
		t.Errorf("%+v", e)
	}
}

// A run in a cluster of the user's continues when its server starts again, whether that has kept its folder or not: nothing of a run is stored there.
func TestService_OutlivesTheServersOfItsCluster(t *testing.T) {
	folder := t.TempDir()
	server, err := cluster.Serve(cluster.ServerOptions{Address: "127.0.0.1:0", Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	address := server.Address()
	defer func() { server.Close() }()
	s, err := Serve(ServiceOptions{
		External: &cluster.External{Servers: []string{"nats://" + address}},
		Run:      "pole/0001", Dir: t.TempDir(), Version: "1.2.0", Hosts: 8, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 3)
	join := func() {
		o := host(tokenOf(t, s))
		go func() { ended <- Join(ctx, o) }()
	}
	join()
	waitFor(t, s, status("node", "HERE"))
	want := []control.HostStatus{status("node", "HERE")}
	for what, store := range map[string]string{"kept": folder, "lost": t.TempDir()} {
		server.Close()
		if server, err = cluster.Serve(cluster.ServerOptions{Address: address, Folder: store}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		testkit.Until(t, "a lease is over", func() bool { return time.Since(began) > leaseTime+time.Second })
		if got := s.Hosts(); !reflect.DeepEqual(got, want) {
			t.Errorf("with its folder %s: %+v", what, got)
		}
		join()
		want = append(want, status(fmt.Sprintf("node-%d", len(want)+1), "HERE"))
		waitFor(t, s, want...)
	}
	leave()
	for range want {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
