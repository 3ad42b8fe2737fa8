package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/nats-io/nkeys"
)

// Token is what a host needs to ask a run whether it may join. It holds a secret, which allows to ask and nothing else, and ends with the server
// that made it.
type Token struct {
	Run         string `json:"run"`
	Address     string `json:"address"`     // host:port of the server, or the servers of an External, with commas
	Fingerprint string `json:"fingerprint"` // SHA-256 of the server's certificate, but in an External
	Seed        string `json:"seed"`
	Prefix      string `json:"prefix,omitempty"` // in an External: see LinkOptions
}

// Shared reports whether the token is of a run in a cluster that somebody else runs.
func (t *Token) Shared() bool { return t.Prefix != "" }

// Key returns the public key of the token's secret, empty where there is none.
func (t *Token) Key() string {
	pair, err := nkeys.FromSeed([]byte(t.Seed))
	if err != nil {
		return ""
	}
	key, err := pair.PublicKey()
	if err != nil {
		return ""
	}
	return key
}

// ErrToken is wrapped by errors of a text that is no token.
var ErrToken = errors.New("not a token of a run")

// tokenPrefix begins a token, with the version of its form.
const tokenPrefix = "rlhost-join-1."

// String returns the token as one word.
func (t Token) String() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic("cluster: a token of texts has no JSON: " + err.Error())
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(text)
}

// ParseToken reads what String returns.
func ParseToken(text string) (t Token, err error) {
	body, ok := strings.CutPrefix(strings.TrimSpace(text), tokenPrefix)
	if !ok {
		return Token{}, fmt.Errorf("%w: it does not begin with %s", ErrToken, tokenPrefix)
	}
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if err == nil {
		err = json.Unmarshal(raw, &t)
	}
	if err == nil {
		_, err = nkeys.FromSeed([]byte(t.Seed))
	}
	if err != nil || len(t.Fingerprint) != 2*sha256.Size && !t.Shared() {
		return Token{}, fmt.Errorf("%w: it is cut off or damaged", ErrToken)
	}
	return t, nil
}

// Identity is a key pair of a host. The secret never leaves the process.
type Identity struct {
	pair   nkeys.KeyPair
	public string
}

// NewIdentity makes a key pair.
func NewIdentity() (*Identity, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	return identityOf(pair)
}

func identityOf(pair nkeys.KeyPair) (*Identity, error) {
	public, err := pair.PublicKey()
	return &Identity{pair, public}, err
}

// Key returns the public key.
func (i *Identity) Key() string { return i.public }

// newCertificate returns a certificate that signs itself. Nobody reads its times: it is known by its fingerprint, on hosts whose clocks are wrong
// too.
func newCertificate(now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "rlhost"}, DNSNames: []string{"rlhost"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// ErrCertificate is wrapped where a server is not the one that made the token.
var ErrCertificate = errors.New("the server's certificate is not the token's")

// pinned is the configuration of a client that accepts one certificate: the handshake proves that the server has its key. Of another one it tells, as the
// library tries again for ever without a word.
func pinned(print string, other func()) *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, VerifyConnection: func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 || fingerprint(s.PeerCertificates[0].Raw) != print {
			other()
			return ErrCertificate
		}
		return nil
	}}
}
