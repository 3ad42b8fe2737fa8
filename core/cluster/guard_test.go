package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/registry"
)

// guardedRun is a server that asks for keys, with the owner's link.
type guardedRun struct {
	*Server
	owner *Link
	made  Token

	mu    sync.Mutex
	hosts map[string]bool
}

func serveGuarded(t *testing.T) *guardedRun {
	t.Helper()
	r := &guardedRun{hosts: map[string]bool{}}
	var err error
	r.Server, err = Serve(ServerOptions{Address: "127.0.0.1:0", Folder: t.TempDir(), Run: "pole/0001", Hosts: 8, Admits: func(key string) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.hosts[key]
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	if r.made, err = r.NewToken(); err != nil {
		t.Fatal(err)
	}
	r.owner = connect(t, LinkOptions{Server: r.Server})
	return r
}

// host makes a key, which is admitted.
func (r *guardedRun) host(t *testing.T) *Identity {
	t.Helper()
	i, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hosts[i.Key()] = true
	return i
}

// asks says whether an answer comes.
func asks(t *testing.T, l *Link, subject string) bool {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	answer, err := l.Ask(ctx, subject, []byte("?"))
	return err == nil && string(answer) == "yes"
}

func TestGuard_LetsEachSpeakForItself(t *testing.T) {
	r := serveGuarded(t)
	yes := func(string, []byte) []byte { return []byte("yes") }
	for _, subject := range []string{SubjectAsk("*"), SubjectUp("*", "renew")} {
		if err := r.owner.Answer(subject, yes); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.owner.Pulse(t.Context()); err != nil {
		t.Fatal(err)
	}
	a, b := r.host(t), r.host(t)
	later, err := r.NewToken()
	if err != nil {
		t.Fatal(err)
	}
	asker := connect(t, LinkOptions{Token: r.made})
	link := connect(t, LinkOptions{Token: r.made, Identity: a})
	for _, c := range []struct {
		who     string
		link    *Link
		subject string
		may     bool
	}{
		{"the token", asker, SubjectAsk(r.made.Key()), true},
		{"the token", asker, SubjectUp(a.Key(), "renew"), false},
		{"a host", link, SubjectUp(a.Key(), "renew"), true},
		{"a host", link, SubjectUp(b.Key(), "renew"), false},
		{"a host", link, SubjectAsk(r.made.Key()), false},
		{"the token", asker, SubjectAsk(later.Key()), false},
		{"another token", connect(t, LinkOptions{Token: later}), SubjectAsk(later.Key()), true},
		{"a host", link, SubjectAll, false},
	} {
		if got := asks(t, c.link, c.subject); got != c.may {
			t.Errorf("%s asks %s: %v, want %v", c.who, c.subject, got, c.may)
		}
	}
	for who, l := range map[string]*Link{"the token": asker, "a host": link} {
		heard := make(chan string, 8)
		for _, subject := range []string{">", "_in." + b.Key() + ".>", "rlhost.up.>"} {
			_ = l.Answer(subject, func(subject string, _ []byte) []byte { heard <- subject; return nil })
		}
		_ = l.Pulse(t.Context())
		if err := r.owner.Tell(t.Context(), "rlhost.up.x.y", []byte("secret")); err != nil {
			t.Fatal(err)
		}
		if _, err := NewNames(timed(t), l, "run"); err == nil {
			t.Errorf("%s makes a bucket", who)
		}
		if len(heard) > 0 {
			t.Errorf("%s hears %s", who, <-heard)
		}
	}
	if n := names(t, r.owner, "run"); n != nil {
		if _, err := n.Add(t.Context(), "a", "", registry.Options{}); err != nil {
			t.Errorf("the owner's names: %v", err)
		}
	}
}

func timed(t *testing.T) context.Context {
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	t.Cleanup(stop)
	return ctx
}

// The owner listens to one subject of each instance on another host, of which there may be thousands.
func TestGuard_LetsTheOwnerListenToThousands(t *testing.T) {
	r := serveGuarded(t)
	const instances = 5000
	for i := range instances {
		if err := r.owner.Answer(SubjectUp("key", "blocks."+strconv.Itoa(i)), func(string, []byte) []byte { return []byte("yes") }); err != nil {
			t.Fatal(err)
		}
	}
	if !asks(t, r.owner, SubjectUp("key", "blocks."+strconv.Itoa(instances-1))) {
		t.Errorf("the owner does not hear instance %d", instances)
	}
}

func TestGuard_RefusesStrangers(t *testing.T) {
	r, other := serveGuarded(t), serveGuarded(t)
	stranger, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := other.made
	elsewhere.Address = r.made.Address
	wrong := r.made
	wrong.Seed = other.made.Seed
	for name, c := range map[string]struct {
		options LinkOptions
		want    error
	}{
		"a key that is not admitted":       {LinkOptions{Token: r.made, Identity: stranger}, ErrKey},
		"the secret of another run":        {LinkOptions{Token: wrong}, ErrKey},
		"the token of another run":         {LinkOptions{Token: elsewhere}, ErrCertificate},
		"no TLS":                           {LinkOptions{URL: "nats://" + r.Address()}, ErrConnect},
		"a server that has ended, no host": {LinkOptions{Token: Token{Address: "127.0.0.1:1", Fingerprint: r.made.Fingerprint, Seed: r.made.Seed}}, ErrConnect},
	} {
		l, err := Connect(timed(t), c.options)
		if err == nil {
			l.Close()
		}
		if !errors.Is(err, c.want) || !errors.Is(err, ErrConnect) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A stranger who speaks no TLS reads no byte, and is put out.
	conn, err := net.Dial("tcp", r.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	var all bytes.Buffer
	if _, err := all.ReadFrom(conn); errors.Is(err, context.DeadlineExceeded) || strings.Contains(all.String(), "server_id") {
		t.Errorf("a silent stranger reads %q: %v", all.String(), err)
	}
}

// The times of a certificate are of a clock that may be wrong, here or there.
func TestGuard_ReadsNoClock(t *testing.T) {
	for _, now := range []time.Time{time.Unix(0, 0), time.Now().AddDate(30, 0, 0)} {
		c, err := newCertificate(now)
		if err != nil {
			t.Fatal(err)
		}
		conf := pinned(fingerprint(c.Certificate[0]), func() {})
		here, there := net.Pipe()
		done := make(chan error, 1)
		go func() { done <- serverSide(there, c) }()
		if err := clientSide(here, conf); err != nil {
			t.Errorf("a certificate of %v: %v", now, err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestToken_IsReadAgain(t *testing.T) {
	token := serveGuarded(t).made
	text := token.String()
	if again, err := ParseToken(" " + text + "\n"); err != nil || again != token || token.Run != "pole/0001" {
		t.Errorf("%+v, want %+v: %v", again, token, err)
	}
	for _, bad := range []string{"", "x", text[1:], text[:len(text)-9], text + "x!", tokenPrefix + "e30"} {
		if _, err := ParseToken(bad); !errors.Is(err, ErrToken) {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
}

func serverSide(c net.Conn, certificate tls.Certificate) error {
	return tls.Server(c, &tls.Config{Certificates: []tls.Certificate{certificate}}).Handshake()
}

func clientSide(c net.Conn, conf *tls.Config) error { return tls.Client(c, conf).Handshake() }
