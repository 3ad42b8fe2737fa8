package session

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
)

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
	err := s.graph.Unplaceable(o.Parts).Err()
	if err == nil {
		err = BuildError(Vet(ctx, s.graph, o.Parts))
	}
	if err == nil {
		err = s.begin(ctx)
	}
	if err == nil {
		if err = s.build(ctx); err != nil && s.run != nil {
			err = errors.Join(err, s.run.Close(), os.RemoveAll(s.run.Dir))
		}
	}
	return s.ready(err)
}

// Resume continues a run from its newest checkpoint, with its own pipeline. The session closes the run, also where it cannot continue.
func Resume(ctx context.Context, run *runs.Run, o Options) (*Session, error) {
	s := newSession(o)
	s.run, s.resumed = run, true
	err := s.resume()
	if err == nil {
		err = s.graph.Unplaceable(o.Parts).Err()
	}
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

// build builds the pipeline. If a resumed run's environments or their number have changed, so that they cannot
// continue from the saved state, it begins new episodes instead.
func (s *Session) build(ctx context.Context) (err error) {
	start := watchStart(s)
	defer func() { err = errors.Join(err, start.end()) }()
	if err := s.openTraces(); err != nil {
		return err
	}
	o := pipeline.BuildOptions{
		Parts: s.o.Parts, RunDir: s.run.Dir, Log: s.log, Policy: s.policy.Name, Resume: s.before.Components, AtBoundary: s.atBoundary, AtFailure: s.atFailure, Stored: storedFor(s),
		Left: s.run.Info().Left, Made: start.made, Trace: s.traces.tracer,
	}
	if s.tape, err = recordingOf(s); err != nil {
		return err
	}
	o.Tape = s.tape
	if s.learner == "" {
		o.Grace = time.Millisecond // no boundary comes
	}
	if s.resumed {
		o.Resumes = len(s.run.Info().Resumes) + 1
	} else {
		o.FreeDisk = runs.Free(s.run.Dir)
	}
	if s.o.Elsewhere != nil {
		if o.Elsewhere, err = s.o.Elsewhere(ctx, Elsewhere{s.graph, s.run, o.Resumes}); err != nil {
			return err
		}
		if o.Elsewhere != nil && s.tape != nil {
			s.log.Warn("environments on other machines are not recorded: their episodes cannot be replayed", "key", "run.record")
		}
	}
	var problems graph.Problems
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
	s.before.Exact, s.before.WhyNotExact = false, newEpisodes+err.Error()
	return nil
}

// Run trains until a stop rule, a command or the end of ctx ends the run, at a dataset boundary, and plays the final
// evaluation. There may be a result and an error, about the run's folder. Call it once.
func (s *Session) Run(ctx context.Context) (*Result, error) {
	s.serve()
	s.evaluator = newEvaluator(s)
	s.tell(Serving{})
	endWatch := s.watchFolder()
	reason, err := s.pipeline.Run(ctx)
	endWatch()
	err = errors.Join(err, s.evaluator.stop())
	removed := s.removed()
	if s.commands != nil {
		s.commands.end()
	}
	if err != nil {
		return nil, errors.Join(s.failed(err), removed)
	}
	r, err := s.finish(ctx, reason)
	return r, errors.Join(removed, err)
}

// Close releases everything except the parts from Options; see Options.Engines.
func (s *Session) Close() error {
	var errs []error
	if s.commands != nil {
		errs = append(errs, s.commands.close())
	}
	if s.pipeline != nil {
		errs = append(errs, s.pipeline.Close())
	}
	errs = append(errs, s.traces.close())
	errs = append(errs, s.tape.Close())
	errs = append(errs, s.records.close())
	if s.run != nil {
		errs = append(errs, s.run.Close())
	}
	if beside := s.beside.Load(); beside != nil {
		errs = append(errs, beside.Close())
	}
	if s.o.Engines != nil {
		errs = append(errs, s.o.Engines.Close())
	}
	return errors.Join(errs...)
}
