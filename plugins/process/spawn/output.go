package spawn

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of a plugin's output.
const (
	maxOutputLine = 16 << 10 // a longer line is cut into lines of this size
	lastLines     = 8        // of its output, for messages about its death

	outputBurst = 256 << 10 // bytes of output that are logged however fast they come
	outputRate  = 16 << 10  // bytes a second that are logged in the long run
	lineCost    = 128       // bytes that a line counts for in addition to its own
)

// output logs a program's output under the name of its component.
type output struct {
	log *slog.Logger

	mu    sync.Mutex
	last  []string // newest lines of standard error
	quiet bool     // the first line of standard output is the handshake
	flow  flow
	fault fault
	said  *said
	warns bool // the line before was a warning of Python: its source follows
}

// read logs everything that comes out of a pipe until its end, line by line.
func (o *output) read(stream string, pipe io.Reader) {
	r := bufio.NewReaderSize(pipe, maxOutputLine)
	for {
		line, _, err := r.ReadLine()
		if len(line) > 0 {
			o.take(stream, line)
		}
		if err != nil {
			return
		}
	}
}

// take logs one line.
func (o *output) take(stream string, line []byte) {
	if stream == "stdout" && o.isHandshake() {
		return
	}
	allowed := o.allow(len(line))
	if !allowed && stream != "stderr" {
		return
	}
	level, text, attrs, once := parseLine(line)
	if stream == "stderr" {
		o.remember(text)
	}
	if allowed && !o.repeats(text, once) {
		o.log.LogAttrs(context.Background(), level, text, attrs...)
	}
}

// end reports output that was left out and not reported yet. It is the last call.
func (o *output) end() {
	o.mu.Lock()
	lines, bytes := o.flow.forget()
	o.mu.Unlock()
	o.tellOmitted(lines, bytes)
}

// allow reports whether to log a line, after logging how many before it were left out.
func (o *output) allow(bytes int) bool {
	o.mu.Lock()
	allowed := o.flow.spend(bytes+lineCost, time.Now())
	var lines, omitted uint64
	if allowed {
		lines, omitted = o.flow.forget()
	} else {
		o.flow.omit(bytes)
	}
	o.mu.Unlock()
	o.tellOmitted(lines, omitted)
	return allowed
}

func (o *output) tellOmitted(lines, bytes uint64) {
	if lines > 0 {
		o.log.Warn("the plugin prints too much: lines were left out", "lines", lines, "bytes", bytes)
	}
}

// flow bounds output to a rate. It begins with a burst; once that is used up it lets nothing through until half of it
// has come back, so that output is left out in long pieces, each reported once.
type flow struct {
	used         float64   // bytes of the burst
	at           time.Time // when used was counted
	closed       bool
	lines, bytes uint64 // left out
}

// spend takes n bytes from the budget, and reports whether it had as many.
func (f *flow) spend(n int, now time.Time) bool {
	f.used, f.at = max(0, f.used-now.Sub(f.at).Seconds()*outputRate), now
	if f.closed && f.used > outputBurst/2 || f.used+float64(n) > outputBurst {
		f.closed = true
		return false
	}
	f.closed = false
	f.used += float64(n)
	return true
}

func (f *flow) omit(bytes int) { f.lines, f.bytes = f.lines+1, f.bytes+uint64(bytes) }

// forget returns how much was left out, once.
func (f *flow) forget() (lines, bytes uint64) {
	lines, bytes = f.lines, f.bytes
	f.lines, f.bytes = 0, 0
	return lines, bytes
}

func (o *output) isHandshake() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := !o.quiet
	o.quiet = true
	return first
}

func (o *output) remember(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fault.read(text)
	if len(o.last) == lastLines {
		o.last = append(o.last[:0], o.last[1:]...)
	}
	o.last = append(o.last, text)
}

// words returns the last lines of standard error, or of a fault that Python has told what and where it was.
func (o *output) words() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if told := o.fault.String(); told != "" {
		return []string{told}
	}
	return slices.Clone(o.last)
}

// parseLine reads a line of hclog's JSON; any other line is information as it is. Once says that the runtime wants it once.
func parseLine(line []byte) (level slog.Level, text string, attrs []slog.Attr, once bool) {
	var entry map[string]any
	plain := colours.ReplaceAllString(strings.ToValidUTF8(string(line), "�"), "")
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &entry) != nil {
		return slog.LevelInfo, plain, nil, false
	}
	text, ok := entry["@message"].(string)
	if !ok {
		return slog.LevelInfo, plain, nil, false
	}
	name, _ := entry["@level"].(string)
	level, err := levelOf(name)
	if err != nil {
		level = slog.LevelInfo
	}
	for _, key := range slices.Sorted(maps.Keys(entry)) {
		if !strings.HasPrefix(key, "@") {
			attrs = append(attrs, slog.Any(key, entry[key]))
		}
	}
	once, _ = entry["@once"].(bool)
	return level, text, attrs, once
}

// where returns where a process of Python was when it was killed, "" if it has not told.
func (o *output) where() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.fault.where()
}

var errLevel = errors.New("unknown level")

// levelOf translates hclog's names of levels.
func levelOf(name string) (slog.Level, error) {
	switch strings.ToLower(name) {
	case "trace", "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, errLevel
}
