package process

import (
	"io"
	"log/slog"
	"strings"
)

// newLogger writes records as the lines of JSON that hashicorp/go-hclog writes, which hosts read.
func newLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: rename}))
}

func rename(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		a.Key = "@timestamp"
	case slog.MessageKey:
		a.Key = "@message"
	case slog.LevelKey:
		a.Key = "@level"
		a.Value = slog.StringValue(strings.ToLower(a.Value.String()))
	}
	return a
}

func parseLevel(name string) (slog.Level, bool) {
	var l slog.Level
	err := l.UnmarshalText([]byte(name))
	return l, err == nil
}

// redirectOutput redirects standard output to standard error: only the handshake belongs on standard output.
func redirectOutput() {
	_ = redirect() // if it fails, the host logs the text as output
}
