package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// External is a cluster of NATS that somebody else runs. A program that its rules let in may speak for any host of a run there.
type External struct {
	Servers []string // URLs, nats://HOST:PORT or tls://HOST:PORT
	Creds   string   // file of credentials, or empty
	CA      string   // file of the authority that has signed the servers' certificate, or empty: the machine's own
}

// Errors of an External.
var (
	ErrPayload  = errors.New("its messages are too small")
	ErrExternal = errors.New("the cluster cannot be used")
)

// minPayload is what NATS takes at once where nobody has said otherwise.
const minPayload = 1 << 20

// NewToken makes a token with which hosts reach a run there. It keeps no secret of the cluster: a host that joins has credentials of its own.
func (e *External) NewToken(run, prefix string) (Token, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return Token{}, err
	}
	seed, err := pair.Seed()
	return Token{Run: run, Address: strings.Join(e.Servers, ","), Prefix: prefix, Seed: string(seed)}, err
}

// NewPrefix returns what the subjects of a run begin with in a cluster that it shares with others.
func NewPrefix() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return "rlhost." + hex.EncodeToString(b[:]) + "."
}

func (e *External) options(prefix string) (options []nats.Option) {
	options = append(options, nats.CustomInboxPrefix(prefix+"_in"))
	if e.Creds != "" {
		options = append(options, nats.UserCredentials(e.Creds))
	}
	if e.CA != "" {
		options = append(options, nats.RootCAs(e.CA))
	}
	return options
}

// fits returns why a connection cannot carry a run.
func (e *External) fits(conn *nats.Conn) error {
	if most := conn.MaxPayload(); most < minPayload {
		return fmt.Errorf("%w: %s takes %d bytes at once, a run needs %d", ErrPayload, conn.ConnectedUrlRedacted(), most, minPayload)
	}
	return nil
}
