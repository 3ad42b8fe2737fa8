package loopback

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// CodeRefused is the code of a request that the page does not answer.
const CodeRefused = "E116"

// policy lets a page load what this server serves, and nothing else; nobody may frame it.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// newToken returns a word that nobody guesses: 130 bits.
func newToken() string { return rand.Text() }

// guard lets through the requests whose path begins with the token, without it.
type guard struct {
	command string // that has printed the address
	token   string
	next    http.Handler
}

// ServeHTTP refuses a request of another page, one for another machine's name, which a name server may have given this address, and one
// without the token.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	switch token, rest, whole := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); {
	case !isLoopback(r.Host):
		refuse(w, "it was sent to "+strconv.QuoteToASCII(r.Host)+", not to this machine by the name localhost or its number", "open the address that "+g.command+" has printed")
	case !fromHere(r):
		refuse(w, "another page has sent it", "open the address that "+g.command+" has printed")
	case subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) != 1:
		refuse(w, "the token in its address is missing or wrong", "copy the whole address that "+g.command+" has printed; each start makes a new one")
	case !whole: // addresses in pages are relative
		http.Redirect(w, r, "/"+token+"/", http.StatusSeeOther)
	default:
		inner := new(http.Request)
		*inner = *r
		inner.URL = &url.URL{Path: "/" + rest, RawQuery: r.URL.RawQuery}
		g.next.ServeHTTP(w, inner)
	}
}

// isLoopback reports whether a request names this machine as a browser on it does, whatever the port: a tunnel has one of its own.
func isLoopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(name)
	return err == nil && address.IsLoopback()
}

// fromHere reports whether a request comes from this page, from a person's address bar, or from a program. Others may at most link to the
// page: a browser then shows it and tells them nothing.
func fromHere(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host != r.Host {
			return false
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	}
	return true
}

func refuse(w http.ResponseWriter, reason, help string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusForbidden)
	_, _ = w.Write([]byte("error[" + CodeRefused + "]: this request is not answered: " + reason + "\n  help: " + help + "\n"))
}
