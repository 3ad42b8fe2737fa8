package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/session"
)

// logger returns the log for standard error.
func (p *program) logger() *slog.Logger {
	least := slog.LevelInfo
	if p.quiet {
		least = slog.LevelWarn
	}
	var shown slog.Handler = &console{out: p.err, least: least}
	if p.cli.Log == "json" {
		shown = slog.NewJSONHandler(p.err, &slog.HandlerOptions{Level: least})
	}
	if p.record != nil {
		return slog.New(slog.NewMultiHandler(shown, p.record))
	}
	return slog.New(shown)
}

// recording returns the program with its log also kept in the run's folder.
func (p *program) recording(r *session.Records) *program {
	next := *p
	next.record = slog.NewJSONHandler(r, nil)
	return &next
}

// notice prints a note for the user on standard error.
func (p *program) notice(format string, args ...any) { p.tell(slog.LevelInfo, "", format, args...) }

// complain prints an error.
func (p *program) complain(err error) { p.tell(slog.LevelError, "rlhost: ", "%s", message(err)) }

// tell writes one message, with a prefix for people.
func (p *program) tell(level slog.Level, prefix, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if p.cli.Log == "json" {
		p.logger().Log(context.Background(), level, text)
		return
	}
	fmt.Fprintln(p.err, printable(prefix+text))
	if p.record != nil {
		_ = p.record.Handle(context.Background(), slog.NewRecord(time.Now(), level, text, 0)) // records that cannot be kept are counted
	}
}

// problems prints the problems of a pipeline.
func (p *program) problems(list graph.Problems) {
	for _, x := range list {
		if p.quiet && x.Code == graph.CodeEndless {
			continue
		}
		if p.cli.Log != "json" {
			fmt.Fprint(p.err, printable(x.String()))
			continue
		}
		level := slog.LevelError
		if x.Severity == graph.Warning {
			level = slog.LevelWarn
		}
		p.logger().Log(context.Background(), level, x.Message, "code", x.Code, "file", x.File, "line", x.Line,
			"column", x.Column, "help", x.Help)
	}
}

// console is a slog.Handler for people: one line a record, with the message first, then the error, then all else
// as key=value, and the remedy on a separate line.
type console struct {
	out   io.Writer
	least slog.Level // that is shown
	attrs []slog.Attr
	group string // prefix of keys
}

// Enabled reports whether a level is shown.
func (c *console) Enabled(_ context.Context, level slog.Level) bool { return level >= c.least }

// WithGroup returns a handler that puts a name before the keys that follow.
func (c *console) WithGroup(name string) slog.Handler {
	next := *c
	next.group += name + "."
	return &next
}

// WithAttrs returns a handler that adds attributes to every record.
func (c *console) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *c
	next.attrs = append(next.attrs[:len(next.attrs):len(next.attrs)], c.prefixed(attrs)...)
	return &next
}

func (c *console) prefixed(attrs []slog.Attr) []slog.Attr {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = slog.Attr{Key: c.group + a.Key, Value: a.Value}
	}
	return out
}

// Handle writes the record with one call, so that lines of several goroutines do not mix.
func (c *console) Handle(_ context.Context, r slog.Record) error {
	attrs := c.attrs[:len(c.attrs):len(c.attrs)]
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, c.prefixed([]slog.Attr{a})...)
		return true
	})
	who, code, reason, rest, help := "", "", "", "", ""
	for _, a := range attrs {
		value := a.Value.Resolve()
		err, isError := value.Any().(error)
		switch {
		case isError && reason == "":
			code = faultCode(err)
			reason = ": " + err.Error()
		case a.Key == "help":
			help = "\n  help: " + value.String()
		case a.Key == "component":
			who = value.String() + ": "
		default:
			rest += "  " + a.Key + "=" + quoted(value.String())
		}
	}
	if code != "" { // a fault names its component
		who, code = "", "["+code+"]"
	}
	_, err := fmt.Fprintln(c.out, printable(levelName(r.Level, code)+who+r.Message+reason+rest+help))
	return err
}

func levelName(l slog.Level, code string) string {
	switch {
	case l >= slog.LevelError:
		return "error" + code + ": "
	case l >= slog.LevelWarn:
		return "warning" + code + ": "
	}
	return ""
}

func quoted(s string) string {
	if s == "" || strings.ContainsAny(s, " =\"") {
		return strconv.Quote(s)
	}
	return s
}

// printable is short for text.Printable.
func printable(s string) string { return text.Printable(s) }
