package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// securedProgram is a server of NATS as its operators run it: with TLS, and with accounts whose users have credentials. It writes into the folder it is
// given who has signed its certificate (ca.pem), another authority (other.pem), the credentials of a user (run.creds) and of one whom it does not
// know (other.creds). It prints its URL and runs until it is killed.
const securedProgram = "nats-secured"

func beSecured() {
	url, err := serveSecured(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(url)
	select {}
}

func serveSecured(folder string) (url string, err error) {
	certificate, err := signed(filepath.Join(folder, "ca.pem"))
	if err != nil {
		return "", err
	}
	if _, err := signed(filepath.Join(folder, "other.pem")); err != nil {
		return "", err
	}
	operator, account, token, err := newAccount(filepath.Join(folder, "run.creds"))
	if err != nil {
		return "", err
	}
	if _, _, _, err := newAccount(filepath.Join(folder, "other.creds")); err != nil {
		return "", err
	}
	accounts := &server.MemAccResolver{}
	if err := accounts.Store(account, token); err != nil {
		return "", err
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, TrustedKeys: []string{operator}, AccountResolver: accounts,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	})
	if err != nil {
		return "", err
	}
	s.Start()
	if !s.ReadyForConnections(longestWait) {
		return "", errors.New("the server has not started")
	}
	return "tls://" + s.Addr().String(), nil
}

// newAccount makes an operator, an account that it has signed, and a user of that, whose credentials it writes into a file.
func newAccount(creds string) (operator, account, token string, err error) {
	var keys [3]nkeys.KeyPair
	var names [3]string
	for i, create := range []func() (nkeys.KeyPair, error){nkeys.CreateOperator, nkeys.CreateAccount, nkeys.CreateUser} {
		var e error
		if keys[i], e = create(); e == nil {
			names[i], e = keys[i].PublicKey()
		}
		err = errors.Join(err, e)
	}
	if err != nil {
		return "", "", "", err
	}
	if token, err = jwt.NewAccountClaims(names[1]).Encode(keys[0]); err != nil {
		return "", "", "", err
	}
	user, err := jwt.NewUserClaims(names[2]).Encode(keys[1])
	if err != nil {
		return "", "", "", err
	}
	seed, err := keys[2].Seed()
	if err != nil {
		return "", "", "", err
	}
	text, err := jwt.FormatUserConfig(user, seed)
	if err != nil {
		return "", "", "", err
	}
	return names[0], names[1], token, os.WriteFile(creds, text, 0o600)
}

// signed returns a certificate for this machine, whose authority it writes into a file.
func signed(file string) (tls.Certificate, error) {
	authority, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	by := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "cluster"}, NotBefore: by.NotBefore, NotAfter: by.NotAfter, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	root, err := x509.CreateCertificate(rand.Reader, by, by, &authority.PublicKey, authority)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.CreateCertificate(rand.Reader, of, by, &key.PublicKey, authority)
	if err != nil {
		return tls.Certificate{}, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root})
	return tls.Certificate{Certificate: [][]byte{leaf}, PrivateKey: key}, os.WriteFile(file, text, 0o600)
}
