package guest

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/rlhost/rlhost/hostabi"
)

// said returns what the guest wrote to stderr in this call, its first line, in quotes.
func (i *Instance) said() string {
	text := i.host.said
	if len(text) == 0 {
		text = i.host.partial[:min(len(i.host.partial), maxSaid)]
	}
	return quote(text)
}

func quote(text []byte) string {
	s := strings.TrimSpace(strings.ToValidUTF8(string(text), "?"))
	if s == "" {
		return ""
	}
	return fmt.Sprintf("%q", s)
}

// LastError returns the guest's text about its newest error, in quotes, or "".
func (i *Instance) LastError() string { return quote([]byte(i.LastText())) }

// LastText is LastError without quotes.
func (i *Instance) LastText() string {
	if !i.module.File.Exports(hostabi.ExportLastError) || i.ErrorPtr == 0 {
		return ""
	}
	n, err := i.Call(hostabi.ExportLastError, lastWords, uint64(i.ErrorPtr), ErrorBytes)
	if err != nil || n <= 0 {
		return ""
	}
	text := i.View(i.ErrorPtr, min(uint32(n), ErrorBytes))
	if k := strings.IndexByte(string(text), 0); k >= 0 {
		text = text[:k]
	}
	return strings.Map(shown, strings.ToValidUTF8(string(text), "?"))
}

// shown replaces what would steer a terminal.
func shown(r rune) rune {
	if r != '\n' && !unicode.IsPrint(r) {
		return '?'
	}
	return r
}

// Words explains a status with the guest's text, if there is one.
func (i *Instance) Words(s hostabi.Status) string {
	said := i.said()
	text := i.LastError()
	if text == "" {
		text = said
	}
	if text == "" {
		return s.String()
	}
	return fmt.Sprintf("%v: %s", s, text)
}

// ErrorBytes is the size of the buffer for the guest's error text.
const ErrorBytes = 256

// lastWords is how long a guest may take to report what went wrong.
const lastWords = 200 * time.Millisecond
