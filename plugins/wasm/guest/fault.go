package guest

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/words"
)

// failed turns wazero's error of a call into an Error.
func (i *Instance) failed(err error) *Error {
	e := &Error{Kind: env.FaultTrap, Call: i.calling, Reason: i.module.File.Layout.TrapReason(err)}
	var stop errStop
	switch {
	case errors.As(err, &stop):
		e.Kind = env.FaultDeadline
	case i.Mem.Refused:
		e.Kind = env.FaultMemory
		e.Reason = fmt.Sprintf("%s, after the memory limit of %s was reached", e.Reason, words.Bytes(i.Mem.Limit))
	}
	if strings.HasPrefix(e.Reason, "stack overflow") {
		i.bindFunctions() // releases a stack of a hundred megabytes
	}
	if said := i.said(); said != "" {
		e.Reason += ": " + said
	}
	return e
}

// said returns the first line that the guest wrote to stderr in this call, in quotes.
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

// shown replaces characters that would steer a terminal.
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

// lastWords is how long a guest may take to report its error.
const lastWords = 200 * time.Millisecond
