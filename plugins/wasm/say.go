package wasm

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"time"
)

// lineWeight is what a line costs the guest besides its bytes, in units of fuel.
const lineWeight = 100

// maxSaid is how much of the guest's output to stderr a fault includes.
const maxSaid = 200

// Guests may write burst lines at once and linesPerSecond in the long run.
const (
	burst          = 100
	linesPerSecond = 10
)

// lineLimit is a token bucket. It runs on real time and touches nothing that a guest can see.
type lineLimit struct {
	last    time.Time
	tokens  float64
	dropped int
}

// allow takes a token; dropped is the number of lines refused since the last allowed one.
func (l *lineLimit) allow(now time.Time) (ok bool, dropped int) {
	if l.last.IsZero() {
		l.tokens = burst
	} else {
		l.tokens = min(burst, l.tokens+now.Sub(l.last).Seconds()*linesPerSecond)
	}
	l.last = now
	if l.tokens < 1 {
		l.dropped++
		return false, 0
	}
	l.tokens--
	dropped, l.dropped = l.dropped, 0
	return true, dropped
}

// sayDropped logs how many lines were dropped since the last logged one, at the end.
func (h *hostState) sayDropped() {
	if h.lines.dropped > 0 {
		h.log.Info("lines of the guest were left out", "component", h.name, "lines_dropped", h.lines.dropped)
	}
}

// say logs one line of the guest.
func (h *hostState) say(ctx context.Context, level slog.Level, text []byte) {
	if !h.log.Enabled(ctx, level) {
		return
	}
	ok, dropped := h.lines.allow(time.Now())
	if !ok {
		return
	}
	line := strings.ToValidUTF8(strings.TrimRight(string(text), "\r\n\x00"), "?")
	var attrs []any
	if h.name != "" {
		attrs = append(attrs, "component", h.name)
	}
	if dropped > 0 {
		attrs = append(attrs, "lines_dropped", dropped)
	}
	h.log.Log(ctx, level, line, attrs...)
}

// write takes what the guest writes to a file descriptor, logs it by lines if it may, and keeps the first line that it
// wrote to stderr in this call: language runtimes write there why they are about to trap. It returns the number of
// lines.
func (i *instance) write(text []byte, stderr bool) (lines int) {
	h := &i.host
	for len(text) > 0 {
		line, rest, ended := bytes.Cut(text, []byte{'\n'})
		text = rest
		h.partial = append(h.partial, line[:min(len(line), maxLogBytes-len(h.partial))]...)
		if !ended {
			return lines
		}
		lines++
		if stderr && len(h.said) == 0 {
			h.said = append(h.said, h.partial[:min(len(h.partial), maxSaid)]...)
		}
		if i.plugin.granted(GrantLog) && len(h.partial) > 0 {
			h.say(i.ctx, slog.LevelInfo, h.partial)
		}
		h.partial = h.partial[:0]
	}
	return lines
}
