package session

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// Options say what is trained and who is told. Parts is needed, and Graph to begin.
type Options struct {
	Parts *graph.Parts
	Graph *graph.Graph // of a training that begins; one that is resumed reads its run's own
	Sets  []string     // overrides of the graph of a training that is resumed, such as component.learner.epochs=4

	InitFrom *runs.Run // run whose newest weights the training begins with, or nil
	Reset    []string  // with InitFrom: what of its learner's state begins anew

	Policy string // that stop rules, checkpoints and the evaluation are about; empty: the only one

	Log     *slog.Logger // nil: slog.Default
	Records *Records     // what is logged, for the run's folder; nil: what goes to Log from here
	Observe func(Event)  // is told what happens; nil: nobody
}

// Session is one training, from its beginning or resumption to its end. Its methods may be called by one goroutine at a
// time; Progress by any.
type Session struct {
	o        Options
	log      *slog.Logger
	records  *Records
	started  time.Time
	graph    *graph.Graph // that the training began with
	policy   *graph.Policy
	learner  string // component whose state holds the policy
	run      *runs.Run
	pipeline *pipeline.Pipeline
	commands *Commands       // nil where the run takes none
	before   runs.Checkpoint // that the run goes on from
	resumed  bool

	progress atomic.Pointer[Progress]
	saved    time.Time                  // when the last checkpoint was taken
	saveErr  error                      // why the last one could not be written
	last     map[string]component.State // at the boundary that ended the run
	at       runs.Checkpoint            // counters of the last boundary
	aborted  atomic.Bool                // it is to end at once: nothing is saved any more
}

// Progress is what is known of a training while it goes on.
type Progress struct {
	Run, Kernels            string
	EnvSteps, PolicyVersion uint64 // at the last boundary that was looked at
}

// Train begins a new run, trains to its end, and closes it. Where there is a result and an error, the error is of the run's
// folder.
func Train(ctx context.Context, o Options) (*Result, error) {
	s, err := Begin(ctx, o)
	if err != nil {
		return nil, err
	}
	r, err := s.Run(ctx)
	return r, errors.Join(err, s.Close())
}

// Begin makes the folder of a new run and builds its pipeline. A run that cannot be built leaves no folder. The caller
// closes the session.
func Begin(ctx context.Context, o Options) (*Session, error) {
	s := newSession(o)
	err := s.begin()
	if err == nil {
		if err = s.build(ctx); err != nil && s.run != nil {
			err = errors.Join(err, s.run.Close(), os.RemoveAll(s.run.Dir))
		}
	}
	return s.ready(err)
}

// Resume goes on with a run from its newest checkpoint, with its own pipeline. The session closes the run, also where it
// cannot go on.
func Resume(ctx context.Context, run *runs.Run, o Options) (*Session, error) {
	s := newSession(o)
	s.run, s.resumed = run, true
	err := s.resume()
	if err == nil {
		err = s.build(ctx)
	}
	return s.ready(err)
}

func newSession(o Options) *Session {
	s := &Session{o: o, log: cmp.Or(o.Log, slog.Default()), records: o.Records, started: time.Now(), saved: time.Now(), graph: o.Graph}
	if s.records == nil {
		s.records = &Records{}
		s.log = slog.New(slog.NewMultiHandler(s.log.Handler(), slog.NewJSONHandler(s.records, nil)))
	}
	return s
}

// ready ends the opening of a session.
func (s *Session) ready(err error) (*Session, error) {
	if err == nil {
		if list := s.pipeline.Warnings(); len(list) > 0 {
			s.tell(Warned{list})
		}
		err = s.describe()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// build builds the pipeline. A resumed run whose environments cannot go on from what was saved, because they or
// their number have changed, begins new episodes instead.
func (s *Session) build(ctx context.Context) (err error) {
	o := pipeline.BuildOptions{
		Parts: s.o.Parts, RunDir: s.run.Dir, Log: s.log, Resume: s.before.Components, AtBoundary: s.atBoundary,
	}
	var problems graph.Problems
	if s.resumed {
		o.Resumes = len(s.run.Info().Resumes) + 1
	}
	s.pipeline, err = pipeline.Build(ctx, s.graph, o)
	if err == nil || !s.resumed || errors.As(err, &problems) || ctx.Err() != nil {
		return BuildError(err)
	}
	o.Resume = s.withoutEpisodes(s.before.Components)
	again, still := pipeline.Build(ctx, s.graph, o)
	if still != nil {
		return BuildError(err)
	}
	s.pipeline = again
	s.before.Exact, s.before.WhyNotExact = false, "new episodes begin, because those that were saved do not fit: "+err.Error()
	return nil
}

// Run trains until a stop rule, a command or the end of ctx ends the run, at a dataset boundary, and plays the final
// evaluation. There may be a result and an error, of what became of the run's folder. Call it once.
func (s *Session) Run(ctx context.Context) (*Result, error) {
	s.serve()
	reason, err := s.pipeline.Run(ctx)
	if s.commands != nil {
		s.commands.End()
	}
	if err != nil {
		return nil, s.failed(err)
	}
	return s.finish(ctx, reason)
}

// failed notes that the run ended by an error.
func (s *Session) failed(err error) error {
	endErr := s.run.End(string(Broken))
	s.tell(Failed{})
	return errors.Join(&Error{Kind: Failure, Err: err}, endErr)
}

// Close releases everything but what Options brought.
func (s *Session) Close() error {
	var errs []error
	if s.commands != nil {
		errs = append(errs, s.commands.Close())
	}
	if s.pipeline != nil {
		errs = append(errs, s.pipeline.Close())
	}
	errs = append(errs, s.records.close())
	if s.run != nil {
		errs = append(errs, s.run.Close())
	}
	return errors.Join(errs...)
}

// Pipeline returns what runs.
func (s *Session) Pipeline() *pipeline.Pipeline { return s.pipeline }

// Folder returns the run.
func (s *Session) Folder() *runs.Run { return s.run }

// Graph returns the graph that runs, all changes included; before there is a pipeline it is what that will be made from.
func (s *Session) Graph() *graph.Graph {
	if s.pipeline != nil {
		return s.pipeline.Graph()
	}
	return s.graph
}

// Progress returns how far the training is.
func (s *Session) Progress() Progress {
	if p := s.progress.Load(); p != nil {
		return *p
	}
	return Progress{}
}

// know updates what Progress returns.
func (s *Session) know(envSteps, policyVersion uint64) {
	s.progress.Store(&Progress{Run: s.run.ID(), Kernels: s.definition().Backend.Kernels(), EnvSteps: envSteps, PolicyVersion: policyVersion})
}
