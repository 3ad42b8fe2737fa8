package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/cmd/rlhost/results"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/ipc"
	"github.com/rlhost/rlhost/pipeline/export"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/member"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/learner"
)

type trainCommand struct {
	Pipeline      string   `arg:"" optional:"" predictor:"pipeline" help:"Pipeline file; default ./pipeline.toml; - is standard input."`
	Set           []string `placeholder:"KEY=VALUE" sep:"none" help:"Override a key of the file, such as component.learner.epochs=4. May be repeated."`
	Resume        string   `xor:"start" placeholder:"RUN" help:"Go on with a run from its latest checkpoint, with its own pipeline."`
	ResumeOrStart bool     `xor:"start,seeds" help:"Go on with the newest run of the file's name, with its own pipeline; begin one where there is none, and do nothing where that has come to its end. For service managers."`
	InitFrom      string   `xor:"start,seeds" placeholder:"RUN" help:"Start a new run from the weights of an old one, or of a .safetensors file with names as in an export."`
	Reset         []string `placeholder:"PART" enum:"optimizer,value,normalizer" help:"With --init-from: what to begin from scratch: optimizer, value (and with it the optimizer), normalizer."`
	Policy        string   `placeholder:"NAME" help:"Leading policy, that stop rules, the best checkpoint and the evaluation are about; default run.policy, else the only one that is learned, else main."`
	runsFlag
	Seeds    string   `xor:"seeds" placeholder:"LIST" help:"Train each of these seeds, such as 0-9 or 1,3,8-10, and sum up. A new set begins; --resume goes on with one, and adds those that it lacks."`
	Jobs     int      `placeholder:"N" help:"With --seeds: trainings at a time; default one for each processor."`
	Require  string   `placeholder:"CONDITION" help:"Exit with 6 unless the final evaluation satisfies this, such as 'eval_return>=475'; with --seeds, unless the lower end of the interval of its mean does."`
	Listen   string   `xor:"seeds" placeholder:"HOST:PORT" help:"Let other machines join the run here, such as 0.0.0.0:4222; see rlhost join."`
	Servers  []string `xor:"seeds" placeholder:"URL,..." help:"Let other machines join the run by these servers of a NATS cluster of yours; default cluster.servers."`
	Creds    string   `placeholder:"FILE" help:"Credentials for those servers."`
	TLSCA    string   `name:"tls-ca" placeholder:"FILE" help:"Authority that has signed the certificate of those servers; default the machine's own."`
	Hosts    *int     `placeholder:"N" help:"Machines that may have joined at a time; default cluster.hosts, 64."`
	JSON     bool     `name:"json" help:"Print one JSON object per line; the last one has the event \"end\"."`
	Attached int      `placeholder:"PID" help:"End as SIGTERM does when that process ends, which started this one."`
	Metrics  bool     `help:"With --json: also an object with the event \"metrics\" for each line of the run's metrics."`

	withoutLearner bool                // called as run: a pipeline that learns nothing is run too
	serves         func(run *runs.Run) // called once the run takes commands; may be nil
}

// Help shows how train is called.
func (c *trainCommand) Help() string {
	return `RUN is a folder, a name such as cartpole (its newest run), cartpole/3, or latest. Ctrl-C saves a checkpoint at the next
dataset boundary and ends with 130; Ctrl-C again ends at once. SIGTERM saves and ends with 0, as rlhost stop does. SIGHUP
reloads the file; where standard input is a terminal it means that this is gone, and ends as Ctrl-C does.

  rlhost train
  rlhost train my.toml --set run.seed=2 --set component.learner.epochs=4
  rlhost train --resume cartpole
  rlhost train --resume-or-start
  rlhost train - --json --metrics <my.toml
  rlhost train --seeds 0-9 --require 'eval_return>=475'
  rlhost train --resume cartpole/4 --seeds 0-19
  rlhost train --init-from cartpole/3 --reset optimizer,value`
}

// training is one call of train.
type training struct {
	*program
	command *trainCommand
	require *requirement
	started time.Time
	engines *builtin.Engines
	parts   *graph.Parts
	records *session.Records
	session atomic.Pointer[session.Session] // nil until it has begun
	serving chan struct{}                   // closed when it runs
	ended   atomic.Bool                     // the end event has been printed
	manager *ipc.Manager                    // that started this process as a service, or nil
	hosts   atomic.Pointer[member.Service]  // with --listen, once the run has its folder
}

// Run trains.
func (c *trainCommand) Run(p *program) error {
	t := &training{program: p, command: c, started: time.Now(), records: &session.Records{}, serving: make(chan struct{})}
	var err error
	if t.require, err = parseRequirement(c.Require); err != nil {
		return fail(exitUsage, err)
	}
	if len(c.Reset) > 0 && c.InitFrom == "" {
		return fail(exitUsage, errors.New("--reset goes with --init-from"))
	}
	if c.Pipeline != "" && c.Resume != "" {
		return fail(exitUsage, errors.New("--resume goes on with the run's own pipeline: leave the file out, and change keys with --set"))
	}
	if c.Hosts != nil && *c.Hosts < 1 {
		return fail(exitUsage, fmt.Errorf("--hosts %d: want 1 or more", *c.Hosts))
	}
	if c.Metrics && !c.JSON {
		return fail(exitUsage, errors.New("--metrics goes with --json"))
	}
	if s, err := t.openSet(); s != nil || err != nil {
		return t.trainSeeds(s, err)
	}
	if t.manager, err = ipc.FindManager(); err != nil {
		return fail(exitUsage, err)
	}
	t.program = p.onScreen(c.JSON).outlasting().recording(t.records)
	t.parts, t.engines = builtin.New(builtin.Options{Log: t.logger(), Output: t.output(), Compiler: compilerCommand})
	t.parts.Kinds[players.KindLearner] = func() component.Component { return learner.NewWith(t.learners) }
	ctx, stop := t.interruptible(onSignals{ending: t.ending, parting: t.parting, hangup: t.reload})
	defer stop()
	if err := c.attach(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = t.manager.Stopping("saving") })() // attend finds out if no manager listens
	err = t.train(ctx)
	if cause := context.Cause(ctx); cause != nil && (errors.Is(err, context.Canceled) || errors.Is(err, cause)) {
		err = t.endedBy(cause)
	}
	if s := t.session.Load(); s != nil {
		if err != nil {
			err = &inPipeline{err, s.Graph().File}
		}
		err = t.also(err, s.Close())
	}
	err = t.also(err, t.engines.Close())
	t.endFailed(err)
	return err
}

// attach makes this process end with the one that it is attached to. Signals are taken by now.
func (c *trainCommand) attach() error {
	if c.Attached == 0 {
		return nil
	}
	if err := ipc.WhenEnds(c.Attached, terminate); err != nil {
		return fail(exitUsage, fmt.Errorf("--attached: %w", err))
	}
	return nil
}

func (t *training) train(ctx context.Context) error {
	s, err := t.open(ctx)
	if done := (*doneError)(nil); errors.As(err, &done) {
		return t.reportDone(done)
	}
	if err != nil {
		return t.also(t.printProblems(err), t.hosts.Load().Close())
	}
	t.session.Store(s)
	defer t.attended()()
	r, err := s.Run(ctx)
	err = t.also(err, t.hosts.Load().Close())
	if r == nil {
		return err
	}
	if failed := t.report(s, r); failed != nil {
		return t.also(failed, err)
	}
	return t.also(t.verdict(ctx, r), err)
}

// open begins or resumes the training.
func (t *training) open(ctx context.Context) (*session.Session, error) {
	o := session.Options{
		Parts: t.parts, Sets: t.command.Set, Policy: t.command.Policy, Reset: t.command.Reset, Log: t.logger(), Records: t.records, Observe: t.observe,
		WithoutLearner: t.command.withoutLearner, Hosts: t.joined, Elsewhere: t.elsewhere,
	}
	if t.command.Resume != "" {
		run, err := t.command.Find(t.command.Resume)
		if err != nil {
			return nil, err
		}
		return session.Resume(ctx, run, o)
	}
	var err error
	if o.Graph, err = t.readGraph(cmp.Or(t.command.Pipeline, results.DefaultPipeline), t.command.Set, t.parts); err != nil {
		return nil, err
	}
	if t.command.ResumeOrStart {
		run, err := newestOf(o.Graph)
		if err != nil {
			return nil, err
		}
		if run != nil {
			o.Graph, o.Sets = nil, nil // the run's own pipeline has them, with all changes since
			return session.Resume(ctx, run, o)
		}
	}
	if t.command.InitFrom != "" {
		if strings.HasSuffix(t.command.InitFrom, export.Safetensors.Suffix()) {
			o.InitTensors = t.command.InitFrom
		} else if o.InitFrom, err = t.command.Find(t.command.InitFrom); err != nil {
			return nil, err
		}
	}
	return session.Begin(ctx, o)
}
