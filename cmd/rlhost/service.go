package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
)

// statusEvery is how often a manager without a watchdog gets the training's progress.
const statusEvery = 10 * time.Second

// attended begins to report the training to the service manager, until the returned function is called.
func (t *training) attended() (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var attending sync.WaitGroup
	if t.manager != nil {
		attending.Go(func() { t.attend(ctx) })
	}
	return func() {
		cancel()
		attending.Wait()
		_ = t.manager.Stopping("closing") // attend has found out if no manager listens
	}
}

// attend tells the service manager that the training is ready once it is and, until ctx ends, that it does not hang. A
// training that has stalled, and is not paused, says nothing: the manager may restart it.
func (t *training) attend(ctx context.Context) {
	select {
	case <-t.serving:
	case <-ctx.Done():
		return
	}
	every := statusEvery
	if t.manager.Watchdog > 0 {
		every = min(every, t.manager.Watchdog/2)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	err := t.manager.Ready(t.progressLine())
	for err == nil {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if t.session.Load().Pipeline().Status().State != control.Stalled {
			err = t.manager.Alive(t.progressLine())
		}
	}
	t.notice("the service manager hears nothing more: %v", err)
}

// progressLine is one line that says how far the training is.
func (t *training) progressLine() string {
	at := t.session.Load().Progress()
	return fmt.Sprintf("%s: policy version %d at %d env steps", at.Run, at.PolicyVersion, at.EnvSteps)
}

// reload makes the run follow the file that it was begun with, on SIGHUP.
func (t *training) reload() {
	s := t.session.Load()
	if s == nil {
		t.notice("SIGHUP: the training has not begun, so there is nothing to reload")
		return
	}
	_ = t.manager.Reloading("reloading " + s.Folder().Info().File) // attend finds out if no manager listens
	reply, err := t.reloadFile(s.Folder())
	_ = t.manager.Ready(t.progressLine())
	if err != nil {
		t.complain(fmt.Errorf("SIGHUP: %w", err))
		return
	}
	t.notice("SIGHUP: %s", strings.TrimSpace(text.Reload("reloaded "+filepath.Base(s.Folder().Info().File), reply)))
}

// reloadFile asks the job that this process is, as rlhost reload does.
func (t *training) reloadFile(run *runs.Run) (*control.ReloadReply, error) {
	info := run.Info()
	if info.File == "" {
		return nil, errors.New("this run does not know the file that it was begun with: rlhost reload FILE")
	}
	src, err := readPipeline(info.File)
	if err != nil {
		return nil, err
	}
	if info.Socket == "" {
		return nil, errors.New("the run takes no commands; its log says why")
	}
	client, err := control.Dial(context.Background(), info.Socket)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var reply control.ReloadReply
	q := control.ReloadRequest{File: info.File, Source: string(src), Sets: info.Sets}
	if err := client.Do(context.Background(), control.VerbReload, q, &reply, t.progress); err != nil {
		f := jobFlags{run: run}
		return nil, f.refused(t.program, err)
	}
	return &reply, nil
}

// doneError says that the run to continue has come to its end already.
type doneError struct{ run *runs.Run }

// Error names the run and the rule that ended it.
func (e *doneError) Error() string {
	return fmt.Sprintf("run %s has come to its end (%s): nothing is left to do\n  help: rlhost train begins another one", e.run.ID(), e.run.Info().Reason)
}

// newestOf returns the newest run of a pipeline's name, to be continued, or nil where a new one is to begin. The error is
// a *doneError where that run has come to its end.
func newestOf(g *graph.Graph) (*runs.Run, error) {
	run, err := runs.Open(g.Run.Dir, g.Run.Name)
	if errors.Is(err, runs.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	switch info := run.Info(); {
	case info.State != runs.Ended, info.Reason == string(component.StopInterrupted), info.Reason == string(session.Broken):
	default:
		return nil, &doneError{run}
	}
	pid, err := run.Holder()
	if err != nil || pid != 0 { // whose lock says more
		return run, err
	}
	if _, err := run.Load(runs.Latest); errors.Is(err, runs.ErrNotFound) {
		return nil, nil // it left nothing to continue from
	}
	return run, nil
}

// reportDone reports a run that had come to its end before, as report does, and judges it.
func (t *training) reportDone(done *doneError) error {
	t.notice("%v", done)
	info := done.run.Info()
	if info.Outcome == nil {
		info.Outcome = &runs.Outcome{}
	}
	if t.command.JSON {
		t.ended.Store(true)
		end := endEvent{Event: "end", Reason: info.Reason, Run: done.run.ID(), EnvSteps: info.Outcome.EnvSteps, PolicyVersion: info.Outcome.PolicyVersion,
			MeanReturn: info.Outcome.MeanReturn, EvalReturn: info.Outcome.Return, ParamsHash: info.Outcome.ParamsHash, Kernels: info.Kernel}
		if err := t.encode(end); err != nil {
			return err
		}
	}
	return t.require.judge(info.Outcome.Return, actingOf(info.Outcome))
}

// actingOf says how the actions were picked that an ended run was judged by.
func actingOf(o *runs.Outcome) string {
	is := func(mean *float64) bool { return mean != nil && o.Return != nil && *mean == *o.Return }
	switch greedy, sampled := is(o.Greedy), is(o.Sampled); {
	case greedy && sampled:
		return players.Acting(true) + ", as with " + players.Acting(false)
	default:
		return players.Acting(!sampled)
	}
}
