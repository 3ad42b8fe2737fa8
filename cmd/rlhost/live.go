package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// jobFlags are shared by commands to a running job.
type jobFlags struct {
	Job string `name:"run" placeholder:"RUN" help:"Run that the job belongs to; default the only one running here."`
	runsFlag
	JSON bool `name:"json" help:"Print JSON: the job's answer as it came."`

	sent, typed string        // a file as sent to the job and as the user named it
	patience    time.Duration // how long to wait for a job that is only beginning
	run         *runs.Run     // whose job is asked, once that is known
}

// errNoJob says that nothing runs there.
var errNoJob = errors.New("no job runs")

// runningJob returns the run whose job is meant.
func (f *jobFlags) runningJob() (*runs.Run, error) {
	if f.Job == "" {
		return f.onlyJob()
	}
	run, err := f.Find(f.Job)
	if err != nil {
		return nil, err
	}
	pid, err := run.Holder()
	if err != nil {
		return nil, err
	}
	if pid == 0 {
		return nil, noJob("%w in %s: it %s\n  help: to go on with it: rlhost train --resume %s", errNoJob, run.Dir, howEnded(run), run.ID())
	}
	if run.Info().Socket == "" {
		return nil, notListening(run)
	}
	return run, nil
}

// onlyJob returns the only running run here.
func (f *jobFlags) onlyJob() (*runs.Run, error) {
	dir := f.Dir()
	live, err := runs.Live(dir)
	if err != nil {
		return nil, err
	}
	switch len(live) {
	case 0:
		return nil, noJob("%w in %s\n  help: rlhost train starts one; name a run elsewhere by its folder: --run DIR", errNoJob, dir)
	case 1:
		if live[0].Info().Socket == "" {
			return nil, notListening(live[0])
		}
		return live[0], nil
	}
	var ids []string
	for _, run := range live {
		ids = append(ids, run.ID())
	}
	return nil, fail(exitUsage, fmt.Errorf("%d jobs run in %s: %s\n  help: say which one: --run %s", len(live), dir, strings.Join(ids, ", "), ids[0]))
}

func noJob(format string, args ...any) error {
	return fail(exitUsage, fmt.Errorf("error["+string(control.CodeNoJob)+"]: "+format, args...))
}

// startingError is about a run whose environments are being made.
type startingError struct {
	run *runs.Run
	at  runs.Starting
	error
}

func (e *startingError) Unwrap() error { return e.error }

// notListening says why a run takes no commands.
func notListening(run *runs.Run) error {
	if at := run.Info().Starting; at != nil {
		return &startingError{run, *at, noJob("%w that listens: %s is %v\n  help: to wait for it: rlhost status --wait --run %s", errNoJob, run.ID(), at, run.ID())}
	}
	return noJob("%w that listens: %s has only begun, or takes no commands; its log says why (rlhost logs --run %s)", errNoJob, run.ID(), run.ID())
}

// howEnded says why a run is not running.
func howEnded(run *runs.Run) string {
	info := run.Info()
	if info.State == runs.Ended {
		return "ended (" + info.Reason + ")"
	}
	return "was killed"
}

// tell makes one request of a job and prints the answer, as text writes it or as JSON.
func tell[R any](p *program, f *jobFlags, verb control.Verb, request any, text func(*R) string) error {
	var reply R
	if err := f.ask(p, verb, request, &reply, p.progress); err != nil {
		return err
	}
	return f.answer(p, &reply, text(&reply))
}

// answer prints a job's answer, as JSON or as text.
func (f *jobFlags) answer(p *program, reply any, text string) error {
	if f.JSON {
		return p.encode(reply)
	}
	_, err := fmt.Fprint(p.out, printable(text))
	return err
}

// ask makes one request of a job and waits for the answer. Notices go to notice as they come.
func (f *jobFlags) ask(p *program, verb control.Verb, request, reply any, notice func(json.RawMessage)) error {
	ctx, stop := untilAsked()
	defer stop()
	client, err := f.dial(ctx)
	if f.run == nil {
		if client = f.elsewhere(ctx); client == nil {
			return err
		}
		err = nil
	}
	if err == nil {
		err = client.Do(ctx, verb, request, reply, notice)
		_ = client.Close() // it was for this request only
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fail(exitInterrupted, errInterrupted)
	}
	return f.refused(p, err)
}

// dial connects to the named job, and waits for a job that is only beginning if there is patience for it.
func (f *jobFlags) dial(ctx context.Context) (client *control.Client, err error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(f.patience); ; <-tick.C {
		if f.run, err = f.runningJob(); err == nil {
			client, err = control.Dial(ctx, f.run.Info().Socket)
		}
		var e *control.Error
		begins := errors.Is(err, errNoJob) || errors.Is(err, runs.ErrNotFound) || errors.As(err, &e) && e.Code == control.CodeNoJob
		if !begins || ctx.Err() != nil || time.Now().After(deadline) {
			return client, err
		}
	}
}

// elsewhere connects to a run of another machine that this one has joined, or to a server of that name; nil where there is none.
func (f *jobFlags) elsewhere(ctx context.Context) *control.Client {
	if f.Job == "" {
		return nil
	}
	client, err := control.Dial(ctx, control.ServerPath(f.Job))
	if err != nil {
		return nil // what is said of a run here says more
	}
	return client
}

// refused turns a job's error into one with its exit code.
func (f *jobFlags) refused(p *program, err error) error {
	var e *control.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("run %s: %w", f.Job, err)
	}
	code := cmp.Or(e.Exit, exitFailed)
	if e.Exit == 0 && (e.Code == control.CodeNoJob || e.Code == control.CodeUnknown || e.Code == control.CodeBad || e.Code == control.CodeRequest) {
		code = exitUsage
	}
	if f.JSON {
		if err := p.encode(map[string]*control.Error{"error": e}); err != nil {
			return err
		}
	}
	if e.Problems != "" {
		text := e.Problems
		if f.sent != "" {
			text = strings.ReplaceAll(text, f.sent+":", f.typed+":")
		}
		fmt.Fprintln(p.err, strings.TrimSuffix(printable(text), "\n"))
	}
	text := fmt.Sprintf("error[%s]: %s", e.Code, e.Reason)
	if e.Help != "" {
		text += "\n  help: " + e.Help
	}
	return fail(code, errors.New(text))
}

// progress prints a job's notices while a request is under way.
func (p *program) progress(notice json.RawMessage) {
	var text string
	if json.Unmarshal(notice, &text) == nil && text != "" {
		p.notice("%s", text)
	}
}
