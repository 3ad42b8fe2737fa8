package cluster

import (
	"encoding/base64"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// Subjects of a run's hosts. A host may publish with its own key alone, so the subject says who speaks.
const (
	SubjectAll = "rlhost.all" // what the owner tells all hosts
	askPrefix  = "rlhost.ask."
	upPrefix   = "rlhost.up."
	inPrefix   = "_in."
	askInbox   = "_ask"
)

// SubjectAsk returns the subject of requests to join with a token of that key. The key "*" is every token's.
func SubjectAsk(key string) string { return askPrefix + key }

// TokenOf returns the key of the token that a request to join came with, by its subject.
func TokenOf(subject string) string { return strings.TrimPrefix(subject, askPrefix) }

// SubjectUp returns the subject of a host's requests to the owner. The key "*" is every host's.
func SubjectUp(key, verb string) string { return upPrefix + key + "." + verb }

// SubjectDown returns the subject of what the owner tells one host.
func SubjectDown(key, verb string) string { return inPrefix + key + "." + verb }

// KeyOf returns the key of the host that a message came from, by its subject.
func KeyOf(subject string) string {
	key, _, _ := strings.Cut(strings.TrimPrefix(subject, upPrefix), ".")
	return key
}

// guard decides who may connect: the owner, a program with a token's secret, and hosts that the owner admits at that moment.
type guard struct {
	owner   string   // its public key
	tokens  sync.Map // public keys of all tokens so far
	admits  func(key string) bool
	account atomic.Pointer[server.Account] // the server's own, once it has started
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
	_, isToken := g.tokens.Load(key)
	switch {
	case key == "":
		return nil, false
	case key == g.owner:
		return nil, true
	case isToken:
		return allow(SubjectAsk(key), askInbox+".>"), true
	case g.admits(key):
		may = allow(SubjectUp(key, ">"), inPrefix+key+".>")
		may.Subscribe.Allow = append(may.Subscribe.Allow, SubjectAll)
		return may, true
	}
	return nil, false
}

// strangers is how many may be connected who have not said who they are; each is put out after two seconds.
const strangers = 1024

// mostSubjects is how many subjects one connection may listen to: the owner to one of each instance on another host, and two of each host. The server
// says nothing to a connection that it does not let listen.
const mostSubjects = 16 << 10

// guarded lets nobody in whom the guard does not know, over TLS from the first byte.
func (g *guard) guarded(o *server.Options, hosts int) {
	o.CustomClientAuthentication, o.AlwaysEnableNonce = g, true
	o.TLSHandshakeFirst, o.TLSTimeout, o.AuthTimeout = true, 2, 2
	o.MaxConn, o.MaxSubs = 2*hosts+strangers, mostSubjects
}
