package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
)

type logsCommand struct {
	Component string `arg:"" optional:"" help:"Component by name or pattern; default all."`
	Follow    bool   `short:"f" help:"Continue with new lines."`
	jobFlags
}

// Help says where the log is.
func (c *logsCommand) Help() string {
	return `The log of a running run, or of one that has ended: name that with --run. With --json each line is a record of the run's
log.jsonl.

  rlhost logs
  rlhost logs rollout -f
  rlhost logs --run cartpole/3`
}

// Run prints the past from the file and new records from the job.
func (c *logsCommand) Run(p *program) error {
	if c.Follow {
		q := control.LogsRequest{Component: c.Component, Follow: true}
		return c.ask(p, control.VerbLogs, q, nil, func(notice json.RawMessage) { c.show(p, notice) })
	}
	run, err := c.past()
	if err != nil {
		return err
	}
	return run.ReadLog(func(record []byte) bool {
		if session.OfComponent(c.Component, record) {
			c.show(p, record)
		}
		return true
	})
}

// past returns the named run, else the running one, else the newest.
func (c *logsCommand) past() (*runs.Run, error) {
	if c.Job != "" {
		return c.Find(c.Job)
	}
	if live, err := runs.Live(c.Dir()); err == nil && len(live) == 1 {
		return live[0], nil
	}
	return c.Find(runs.Latest)
}

func (c *logsCommand) show(p *program, record []byte) {
	record = bytes.TrimSuffix(record, []byte("\n"))
	if c.JSON {
		fmt.Fprintf(p.out, "%s\n", record)
		return
	}
	fmt.Fprint(p.out, recordText(record))
}

// recordText writes one record of a log as the console would have written it, after its time.
func recordText(record []byte) string {
	var fields map[string]any
	if json.Unmarshal(record, &fields) != nil {
		return printable(string(record)) + "\n"
	}
	var b strings.Builder
	at, level := time.Time{}, slog.LevelInfo
	if text, ok := fields[slog.TimeKey].(string); ok {
		at, _ = time.Parse(time.RFC3339Nano, text)
	}
	if text, ok := fields[slog.LevelKey].(string); ok {
		_ = level.UnmarshalText([]byte(text)) // an invalid level is shown as information
	}
	message, _ := fields[slog.MessageKey].(string)
	r := slog.NewRecord(at, level, message, 0)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if key != slog.TimeKey && key != slog.LevelKey && key != slog.MessageKey {
			r.Add(key, fields[key])
		}
	}
	_ = (&console{out: &b}).Handle(context.Background(), r) // a strings.Builder takes everything
	return at.Format(time.TimeOnly) + " " + b.String()
}
