package wasm

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/hostabi"
)

// trapReason makes one line of wazero's message: the reason and the innermost guest function. imports is the
// number of functions that the guest imports; behind them stands the host's own, which the guest's author does
// not count.
func trapReason(err error, imports int) string {
	text := strings.TrimPrefix(err.Error(), "wasm error: ")
	reason, trace, _ := strings.Cut(text, "\n")
	reason = strings.TrimSuffix(reason, " (recovered by wazero)")
	for line := range strings.Lines(trace) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, ".") {
			continue // a heading, or a host function
		}
		name, _, ok := strings.Cut(line[1:], "(")
		if !ok || name == "" {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimPrefix(name, "$")); err == nil && n > imports {
			name = fmt.Sprintf("function %d", n-1)
		}
		return reason + " in " + name
	}
	return reason
}

// said returns what the guest wrote to stderr in this call, its first line, in quotes.
func (i *instance) said() string {
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

// lastError returns the guest's own words about its newest error, in quotes, or "".
func (i *instance) lastError() string {
	if !i.plugin.exports[hostabi.ExportLastError] || i.errorPtr == 0 {
		return ""
	}
	n, err := i.invokeExport(hostabi.ExportLastError, lastWords, uint64(i.errorPtr), errorBytes)
	if err != nil || n <= 0 {
		return ""
	}
	text := i.view(i.errorPtr, min(uint32(n), errorBytes))
	if k := strings.IndexByte(string(text), 0); k >= 0 {
		text = text[:k]
	}
	return quote(text)
}

// words explains a status with the guest's own words where it has any.
func (i *instance) words(s hostabi.Status) string {
	said := i.said()
	text := i.lastError()
	if text == "" {
		text = said
	}
	if text == "" {
		return s.String()
	}
	return fmt.Sprintf("%v: %s", s, text)
}
