package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Whatever keeps a run from a cluster of the user's is told when it connects.
func TestExternal_IsRefusedWhereItCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/ca.pem", []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	certificate, err := newCertificate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	good := "nats://" + external(t, &server.Options{})
	asks := "nats://" + external(t, &server.Options{Username: "a", Password: "b"})
	secret := "tls://" + external(t, &server.Options{TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}})
	for what, c := range map[string]struct {
		cluster External
		want    error
	}{
		"small messages":                            {External{Servers: []string{"nats://" + external(t, &server.Options{MaxPayload: 64 << 10})}}, ErrPayload},
		"nobody there":                              {External{Servers: []string{"nats://127.0.0.1:1"}}, ErrExternal},
		"no credentials":                            {External{Servers: []string{asks}}, ErrExternal},
		"no file of these":                          {External{Servers: []string{good}, Creds: dir + "/none"}, ErrExternal},
		"another's authority":                       {External{Servers: []string{secret}}, ErrExternal},
		"no authority's file":                       {External{Servers: []string{secret}, CA: dir + "/ca.pem"}, ErrExternal},
		"the second is there":                       {External{Servers: []string{"nats://127.0.0.1:1", good}}, nil},
		"its certificate is not verified over nats": {External{Servers: []string{"nats" + secret[3:]}}, ErrExternal},
	} {
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		l, err := Connect(ctx, LinkOptions{External: &c.cluster, Prefix: NewPrefix()})
		stop()
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		if l != nil {
			l.Close()
		}
	}
}

// Runs that share a cluster hear nothing of one another.
func TestExternal_KeepsRunsApart(t *testing.T) {
	e := &External{Servers: []string{"nats://" + external(t, &server.Options{})}}
	one, two := NewPrefix(), NewPrefix()
	owner := connect(t, LinkOptions{External: e, Prefix: one})
	if err := owner.Answer(SubjectUp("*", "x"), func(subject string, _ []byte) []byte { return []byte(KeyOf(subject)) }); err != nil {
		t.Fatal(err)
	}
	if err := owner.Pulse(t.Context()); err != nil {
		t.Fatal(err)
	}
	answer, err := connect(t, LinkOptions{External: e, Prefix: one}).Ask(t.Context(), SubjectUp("KEY", "x"), nil)
	if string(answer) != "KEY" || err != nil {
		t.Errorf("of the same run: %q, %v", answer, err)
	}
	if _, err := connect(t, LinkOptions{External: e, Prefix: two}).Ask(t.Context(), SubjectUp("KEY", "x"), nil); !errors.Is(err, ErrNobody) {
		t.Errorf("of another run: %v", err)
	}
}
