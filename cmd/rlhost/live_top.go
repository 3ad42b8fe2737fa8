package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/control/text"
)

type topCommand struct {
	Which string        `arg:"" optional:"" name:"run" help:"The same as --run."`
	Every time.Duration `default:"1s" help:"Time between two looks, 50ms or more."`
	Job   string        `name:"run" placeholder:"RUN" help:"Run that the job belongs to; default the only one running here."`
	runsFlag
}

// Help says what is shown, and which keys there are.
func (c *topCommand) Help() string {
	return `What rlhost status shows, again and again, with the mean return and the speed as curves. Keys:

  tab          components, wires or log        up, down, page up, page down   move in them
  p            pause, or end the pause         c                              save a checkpoint
  q, ctrl+c    end top; the run continues`
}

// Run shows the job until a key ends it.
func (c *topCommand) Run(p *program) error {
	if c.Which != "" && c.Job != "" {
		return fail(exitUsage, fmt.Errorf("top %s --run %s: want one run", c.Which, c.Job))
	}
	if c.Every < 50*time.Millisecond {
		return fail(exitUsage, fmt.Errorf("--every is %v, want 50ms or more", c.Every))
	}
	if p.out != os.Stdout || !term.IsTerminal(int(os.Stdout.Fd())) || !term.IsTerminal(int(os.Stdin.Fd())) {
		return fail(exitUsage, errors.New("top needs a terminal\n  help: rlhost status shows the same once, and rlhost status --json for programs"))
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	job := jobFlags{Job: cmp.Or(c.Job, c.Which), runsFlag: c.runsFlag, patience: time.Second}
	client, err := job.dial(ctx)
	if job.run == nil {
		return err
	}
	if err != nil {
		return job.refused(p, err)
	}
	defer client.Close()
	screen := tea.NewProgram(&top{job: watched{ctx, &job, client}, every: c.Every}, tea.WithFPS(20))
	go followLog(ctx, &job, screen)
	_, err = screen.Run()
	return err
}

// followLog sends the lines of a job's log, past and new.
func followLog(ctx context.Context, job *jobFlags, screen *tea.Program) {
	client, err := control.Dial(ctx, job.run.Info().Socket)
	if err != nil {
		return // status says that the job has ended
	}
	defer client.Close()
	_ = client.Do(ctx, control.VerbLogs, control.LogsRequest{Follow: true}, nil, func(record json.RawMessage) {
		screen.Send(logged(recordText(record)))
	})
}

// watched is a job that top looks at. Its methods return commands that run beside the screen.
type watched struct {
	ctx    context.Context
	job    *jobFlags
	client *control.Client // for status alone
}

// What commands come to.
type (
	looked struct {
		status *control.StatusReply
		err    error
	}
	logged string // a line of the log
	did    string // what an action has come to
)

// look asks for the state after a time.
func (w *watched) look(after time.Duration) tea.Cmd {
	return tea.Tick(after, func(time.Time) tea.Msg {
		var s control.StatusReply
		if err := w.client.Do(w.ctx, control.VerbStatus, control.StatusRequest{}, &s, nil); err != nil {
			return looked{err: err}
		}
		return looked{status: &s}
	})
}

// ended says how the job has ended.
func (w *watched) ended() string {
	run, err := w.job.Find(w.job.run.Dir)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %s", run.ID(), howEnded(run))
}

// pause pauses all components, or ends that.
func (w *watched) pause(paused bool) tea.Cmd {
	verb, done := control.VerbPause, "paused"
	if paused {
		verb, done = control.VerbUnpause, "unpaused"
	}
	var reply control.GroupReply
	return w.act(verb, control.GroupRequest{Deadline: 30}, &reply, func() string { return done })
}

// checkpoint saves one.
func (w *watched) checkpoint() tea.Cmd {
	var reply control.CheckpointReply
	return w.act(control.VerbCheckpoint, control.CheckpointRequest{}, &reply, func() string { return "saved " + text.Checkpoint(&reply) })
}

// act makes a request on a connection of its own, so that looks continue meanwhile.
func (w *watched) act(verb control.Verb, request, reply any, done func() string) tea.Cmd {
	return func() tea.Msg {
		client, err := control.Dial(w.ctx, w.job.run.Info().Socket)
		if err != nil {
			return did(err.Error())
		}
		defer client.Close()
		if err := client.Do(w.ctx, verb, request, reply, nil); err != nil {
			return did(err.Error())
		}
		return did(done())
	}
}
