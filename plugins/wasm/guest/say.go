package guest

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// lineWeight is the cost of a line besides its bytes, in units of fuel.
const lineWeight = 100

// maxLogBytes is how much of a line is logged.
const maxLogBytes = 4096

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
func (i *Instance) sayDropped() {
	if n := i.host.lines.dropped; n > 0 {
		i.owner.Log.Info("lines of the guest were left out", "component", i.owner.Name, "lines_dropped", n)
	}
}

// say logs one line of the guest.
func (i *Instance) say(level slog.Level, text []byte) {
	if !i.owner.Log.Enabled(i.ctx, level) {
		return
	}
	ok, dropped := i.host.lines.allow(time.Now())
	if !ok {
		return
	}
	line := strings.ToValidUTF8(strings.TrimRight(string(text), "\r\n\x00"), "?")
	var attrs []any
	if i.owner.Name != "" {
		attrs = append(attrs, "component", i.owner.Name)
	}
	if dropped > 0 {
		attrs = append(attrs, "lines_dropped", dropped)
	}
	i.owner.Log.Log(i.ctx, level, line, attrs...)
}

// withhold counts a line of a guest that may not log, and reports whether it is one of the first, which are shown nevertheless.
func (m *Module) withhold() (show bool) { return m.lines.Add(1) <= uint64(m.out.Shown) }

// sayWithheld logs at the end how many lines of a guest without the grant were not shown.
func (m *Module) sayWithheld() {
	n, shown := m.lines.Load(), ""
	if n <= uint64(m.out.Shown) {
		return
	}
	if m.out.Shown > 0 {
		shown = fmt.Sprintf(", the first %d are shown", m.out.Shown)
	}
	m.out.Log.Info(fmt.Sprintf(`%s: the guest wrote %s%s; grants = ["log"] in its table shows them, --grant log on a command line`, m.File.Config.Name, text.Count(n, "line"), shown))
}

// write takes the guest's output to a file descriptor, logs it by lines if it may, and keeps the first line that it
// wrote to stderr in this call: language runtimes write there why they are about to trap. It returns the number of
// lines.
func (i *Instance) write(words []byte, stderr bool) (lines int) {
	h := &i.host
	for len(words) > 0 {
		line, rest, ended := bytes.Cut(words, []byte{'\n'})
		words = rest
		h.partial = append(h.partial, line[:min(len(line), maxLogBytes-len(h.partial))]...)
		if !ended {
			return lines
		}
		lines++
		if stderr && len(h.said) == 0 {
			h.said = append(h.said, h.partial[:min(len(h.partial), maxSaid)]...)
		}
		if len(h.partial) > 0 && (i.module.File.Granted(module.GrantLog) || i.module.withhold()) {
			i.say(slog.LevelInfo, h.partial)
		}
		h.partial = h.partial[:0]
	}
	return lines
}
