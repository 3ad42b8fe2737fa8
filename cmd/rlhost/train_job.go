package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/rlhost/rlhost/pipeline/session"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// serve starts to answer commands. A run that cannot goes on without.
func (t *training) serve() {
	var err error
	t.job, err = session.Serve(session.CommandOptions{
		Pipeline: t.pipeline, Run: t.run, Parts: t.parts, Log: t.logger(), Text: t.text, Checkpoint: t.checkpointNow,
		Stop: t.stopOnRequest, LastCheckpoint: t.lastCheckpoint, ExitOf: problemsCode, Records: t.records.log(),
		StepsBefore: t.before.EnvSteps,
	})
	if err != nil {
		t.tell(slog.LevelWarn, "warning: ", "the run goes on, but takes no commands such as rlhost status: %v", err)
	}
}

// checkpointNow saves a checkpoint at the next dataset boundary.
func (t *training) checkpointNow(ctx context.Context) (control.CheckpointReply, error) {
	var reply control.CheckpointReply
	err := t.pipeline.AtNextBoundary(ctx, func(snapshot pipeline.Snapshot) error {
		if err := t.save(snapshot, false); err != nil {
			return err
		}
		reply = replyOf(&t.at)
		return t.saveErr
	})
	return reply, err
}

func replyOf(c *runs.Checkpoint) control.CheckpointReply {
	return control.CheckpointReply{PolicyVersion: c.PolicyVersion, EnvSteps: c.EnvSteps, Exact: c.Exact, Why: c.WhyNotExact}
}

// stopOnRequest ends the run as Ctrl-C does, or at once.
func (t *training) stopOnRequest(now bool) {
	if now {
		t.aborted.Store(true)
		t.pipeline.StopNow(component.StopInterrupted)
		return
	}
	t.pipeline.Stop(component.StopInterrupted)
}

// lastCheckpoint is what the run ended with, once it has ended; nil if nothing was saved at its end.
func (t *training) lastCheckpoint() *control.CheckpointReply {
	if t.last == nil || t.saveErr != nil {
		return nil
	}
	reply := replyOf(&t.at)
	return &reply
}

// openLog begins to keep what is logged. A run that cannot goes on without.
func (t *training) openLog() {
	file, err := t.run.OpenLog()
	if err != nil {
		t.tell(slog.LevelWarn, "warning: ", "the run keeps no log: %v", err)
		return
	}
	t.records.open(file)
}

// earlyRecords bounds what is kept of a log before there is a run.
const earlyRecords = 64 << 10

// recorder writes records to the log of a run as soon as there is one. Use the zero value.
type recorder struct {
	mu    sync.Mutex
	file  *runs.LogFile
	early []byte
}

// Write keeps or writes one record.
func (r *recorder) Write(record []byte) (int, error) {
	r.mu.Lock()
	file := r.file
	if file == nil && len(r.early)+len(record) <= earlyRecords {
		r.early = append(r.early, record...)
	}
	r.mu.Unlock()
	if file != nil {
		return file.Write(record)
	}
	return len(record), nil
}

// open begins to write to a file, with what came before.
func (r *recorder) open(file *runs.LogFile) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.early) > 0 {
		_, _ = file.Write(r.early) // what it cannot write it counts
	}
	r.file, r.early = file, nil
}

func (r *recorder) log() *runs.LogFile {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.file
}

func (r *recorder) close() error {
	if file := r.log(); file != nil {
		return file.Close()
	}
	return nil
}

// recording returns the program with what it logs also kept by a recorder.
func (p *program) recording(r *recorder) *program {
	next := *p
	next.record = slog.NewJSONHandler(r, nil)
	return &next
}

// both is a slog.Handler that hands every record to two.
type both struct{ first, second slog.Handler }

// Enabled reports whether one of the two wants a level.
func (b both) Enabled(ctx context.Context, level slog.Level) bool {
	return b.first.Enabled(ctx, level) || b.second.Enabled(ctx, level)
}

// Handle hands the record on.
func (b both) Handle(ctx context.Context, r slog.Record) error {
	var errs []error
	for _, h := range []slog.Handler{b.first, b.second} {
		if h.Enabled(ctx, r.Level) {
			errs = append(errs, h.Handle(ctx, r.Clone()))
		}
	}
	return errors.Join(errs...)
}

// WithAttrs adds attributes to both.
func (b both) WithAttrs(attrs []slog.Attr) slog.Handler {
	return both{b.first.WithAttrs(attrs), b.second.WithAttrs(attrs)}
}

// WithGroup adds a group to both.
func (b both) WithGroup(name string) slog.Handler {
	return both{b.first.WithGroup(name), b.second.WithGroup(name)}
}
