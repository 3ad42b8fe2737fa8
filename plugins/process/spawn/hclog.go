package spawn

import (
	"context"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// quietLogger is go-plugin's own log. It goes to the host's at level debug, because whatever concerns the user is
// said by this package.
type quietLogger struct {
	hclog.Logger // a null logger, for what go-plugin does not call
	log          *slog.Logger
}

func newQuietLogger(log *slog.Logger) hclog.Logger {
	return quietLogger{Logger: hclog.NewNullLogger(), log: log}
}

func (q quietLogger) say(msg string, args []any) {
	q.log.Log(context.Background(), slog.LevelDebug, "go-plugin: "+msg, args...)
}

// Log is one of hclog.Logger's methods, as are the following.
func (q quietLogger) Log(_ hclog.Level, msg string, args ...any) { q.say(msg, args) }

// Trace drops the message.
func (q quietLogger) Trace(string, ...any) {}

// Debug logs the message.
func (q quietLogger) Debug(msg string, args ...any) { q.say(msg, args) }

// Info logs the message.
func (q quietLogger) Info(msg string, args ...any) { q.say(msg, args) }

// Warn logs the message.
func (q quietLogger) Warn(msg string, args ...any) { q.say(msg, args) }

// Error logs the message.
func (q quietLogger) Error(msg string, args ...any) { q.say(msg, args) }

// With returns a logger that adds args.
func (q quietLogger) With(args ...any) hclog.Logger {
	return quietLogger{Logger: q.Logger, log: q.log.With(args...)}
}

// Named returns the same logger: its lines say whose they are.
func (q quietLogger) Named(string) hclog.Logger { return q }

// ResetNamed returns the same logger.
func (q quietLogger) ResetNamed(string) hclog.Logger { return q }
