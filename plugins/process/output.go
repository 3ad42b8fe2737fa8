package process

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
)

// Limits on what is kept of a plugin's output.
const (
	maxOutputLine = 16 << 10 // a longer line is cut into lines of this size
	lastLines     = 8        // of what it printed, for messages about its death
)

// read logs everything that comes out of a pipe until its end, line by line.
func (c *child) read(stream string, pipe io.Reader) {
	r := bufio.NewReaderSize(pipe, maxOutputLine)
	for {
		line, _, err := r.ReadLine()
		if len(line) > 0 {
			c.output(stream, line)
		}
		if err != nil {
			return
		}
	}
}

// output puts what a program prints into the log, under the name of its component.
type output struct {
	log *slog.Logger

	mu    sync.Mutex
	last  []string // newest lines of standard error
	quiet bool     // the first line of standard output is the handshake
}

// take logs one line.
func (o *output) take(stream string, line []byte) {
	if stream == "stdout" && o.isHandshake() {
		return
	}
	level, text, attrs := parseLine(line)
	if stream == "stderr" {
		o.remember(text)
	}
	o.log.LogAttrs(context.Background(), level, text, attrs...)
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
	if len(o.last) == lastLines {
		o.last = append(o.last[:0], o.last[1:]...)
	}
	o.last = append(o.last, text)
}

// words returns the last lines of standard error.
func (o *output) words() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.last)
}

// parseLine reads a line of hclog's JSON; any other line is information as it stands.
func parseLine(line []byte) (slog.Level, string, []slog.Attr) {
	var entry map[string]any
	plain := strings.ToValidUTF8(string(line), "�")
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &entry) != nil {
		return slog.LevelInfo, plain, nil
	}
	text, ok := entry["@message"].(string)
	if !ok {
		return slog.LevelInfo, plain, nil
	}
	name, _ := entry["@level"].(string)
	level, err := levelOf(name)
	if err != nil {
		level = slog.LevelInfo
	}
	var attrs []slog.Attr
	for _, key := range slices.Sorted(maps.Keys(entry)) {
		if !strings.HasPrefix(key, "@") {
			attrs = append(attrs, slog.Any(key, entry[key]))
		}
	}
	return level, text, attrs
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
