package cluster

import (
	"encoding/base64"
	"strings"
	"sync/atomic"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// Subjects of a run's hosts. A host may publish with its own key alone, so the subject says who speaks.
const (
	SubjectAsk = "rlhost.ask" // requests to join
	SubjectAll = "rlhost.all" // what the owner tells all hosts
	upPrefix   = "rlhost.up."
	inPrefix   = "_in."
	askInbox   = "_ask"
)

// SubjectUp returns the subject of a host's requests to the owner. The key "*" is every host's.
func SubjectUp(key, verb string) string { return upPrefix + key + "." + verb }

// KeyOf returns the key of the host that a message came from, by its subject.
func KeyOf(subject string) string {
	key, _, _ := strings.Cut(strings.TrimPrefix(subject, upPrefix), ".")
	return key
}

// guard decides who may connect: the owner, a program with the token's secret, and hosts that the owner admits at that moment.
type guard struct {
	owner, ask string // public keys
	admits     func(key string) bool
	account    atomic.Pointer[server.Account] // the server's own, once it has started
}

// Check is the server's question about a connection.
func (g *guard) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	may, known := g.permissions(o.Nkey)
	if !known {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(o.Sig)
	if err != nil {
		return false
	}
	key, err := nkeys.FromPublicKey(o.Nkey)
	if err != nil || key.Verify(c.GetNonce(), signature) != nil {
		return false
	}
	c.RegisterUser(&server.User{Username: o.Nkey, Account: g.account.Load(), Permissions: may})
	return true
}

func (g *guard) permissions(key string) (may *server.Permissions, known bool) {
	allow := func(publish, inbox string) *server.Permissions {
		return &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{publish}},
			Subscribe: &server.SubjectPermission{Allow: []string{inbox}},
		}
	}
	switch {
	case key == "":
		return nil, false
	case key == g.owner:
		return nil, true
	case key == g.ask:
		return allow(SubjectAsk, askInbox+".>"), true
	case g.admits(key):
		may = allow(SubjectUp(key, ">"), inPrefix+key+".>")
		may.Subscribe.Allow = append(may.Subscribe.Allow, SubjectAll)
		return may, true
	}
	return nil, false
}

// strangers is how many may be connected who have not said who they are; each is put out after two seconds.
const strangers = 1024

// guarded lets nobody in whom the guard does not know, over TLS from the first byte.
func (g *guard) guarded(o *server.Options, hosts int) {
	o.CustomClientAuthentication, o.AlwaysEnableNonce = g, true
	o.TLSHandshakeFirst, o.TLSTimeout, o.AuthTimeout = true, 2, 2
	o.MaxConn, o.MaxSubs = 2*hosts+strangers, 256
}
