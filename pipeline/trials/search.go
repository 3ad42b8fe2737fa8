package trials

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/search"
)

// Search runs the trials of a set that is locked.
type Search struct {
	Set  *runs.Set
	Jobs int // runs at a time
	// Train makes one run. After an error the search ends; what is wrong with the run itself is in the outcome.
	Train  func(ctx context.Context, t search.Task) (search.Outcome, error)
	Trials int // raises the number of trials; 0 leaves it
	// Observe gets each record when it has been written, with the history that it makes, one at a time. It may be nil.
	Observe func(r *search.Record, h *search.History)
}

// EndedError says that the search ended because trials failed one after the other with one cause.
type EndedError struct{ Cause string }

// Error has the cause.
func (e *EndedError) Error() string {
	return "three trials failed one after the other with one cause, and the search ends: " + e.Cause
}

// Run runs the search to its end and returns its history. Where ctx is done the runs are interrupted, which saves them, and a later Run
// continues. An *EndedError says that the search cannot succeed as it is; a later Run tries those trials again.
func (s *Search) Run(ctx context.Context) (h *search.History, err error) {
	sweep, err := Read(s.Set)
	if err != nil {
		return nil, err
	}
	if h, err = History(s.Set, &sweep.Config); err != nil {
		return nil, err
	}
	j, err := s.Set.OpenJournal()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	program, err := startProgram(ctx, &sweep.Config, h.Total)
	defer program.close()
	if err != nil {
		return nil, err
	}
	plan, err := search.NewPlan(&sweep.Config, sweep.First, program.sampler())
	if err != nil {
		return nil, err
	}
	e := &engine{Search: s, plan: plan, program: program, ledger: ledger{h, j, s.Observe}, cancel: cancel, ended: make(chan result)}
	return h, e.run(ctx)
}

// engine is one call of Run.
type engine struct {
	*Search
	ledger
	plan    *search.Plan
	program *program // or nil
	cancel  func()

	queue   []search.Task // ordered and not begun
	owed    []search.Task // ordered and not in the journal
	running int
	held    []result // that wait for the outcomes before them
	ended   chan result
	done    bool // nothing will be ordered any more
}

// result is what a run came to.
type result struct {
	task    search.Task
	outcome search.Outcome
	err     error
}

func (e *engine) run(ctx context.Context) error {
	err := e.begin()
	for err == nil {
		if err = e.order(); err != nil || e.done && len(e.owed) == 0 {
			break
		}
		e.start(ctx)
		select {
		case r := <-e.ended:
			e.running--
			err = e.took(ctx, r)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	e.cancel()
	for ; e.running > 0; e.running-- {
		<-e.ended
	}
	return err
}

// begin takes up what a search before has left.
func (e *engine) begin() error {
	if e.history.Ended() != "" {
		if err := e.add(&search.Record{Retry: true}); err != nil {
			return err
		}
	}
	if more := e.Trials; more > e.history.Total-len(e.history.Added) {
		if err := e.add(&search.Record{Trials: more}); err != nil {
			return err
		}
	}
	e.queue = e.history.Owed()
	e.owed = slices.Clone(e.queue)
	return nil
}

// order writes further orders while there is room for their runs.
func (e *engine) order() error {
	for len(e.queue)+e.running < max(e.Jobs, 1) {
		if cause := e.history.Ended(); cause != "" {
			return &EndedError{cause}
		}
		step, err := e.plan.Next(e.history)
		if err != nil {
			return err
		}
		if step.Report != nil {
			if err := e.judge(step.Report); err != nil {
				return err
			}
			continue
		}
		if len(step.Orders) == 0 {
			e.done = step.Done
			return nil
		}
		if err := e.add(&search.Record{Orders: step.Orders}); err != nil {
			return err
		}
		for _, o := range step.Orders {
			for _, seed := range o.Seeds {
				e.queue = append(e.queue, search.Task{Order: o, Seed: seed})
				e.owed = append(e.owed, search.Task{Order: o, Seed: seed})
			}
		}
	}
	return nil
}

// judge asks the program about a rung.
func (e *engine) judge(t *search.Trial) error {
	prune, err := e.program.report(e.history, t)
	if err != nil {
		return err
	}
	return e.add(&search.Record{Judgment: &search.Judgment{Trial: t.Number, Rung: t.Last().Rung, Prune: prune}})
}

// start begins runs while there is room.
func (e *engine) start(ctx context.Context) {
	for ; len(e.queue) > 0 && e.running < max(e.Jobs, 1); e.running++ {
		t := e.queue[0]
		t.Set = e.history.Trials[t.Trial].Set
		e.queue = e.queue[1:]
		go func() {
			o, err := e.Train(ctx, t)
			e.ended <- result{t, o, err}
		}()
	}
}

// took writes the outcome of a run: at once, or in a search that is the same with any number of jobs after all that were ordered before.
func (e *engine) took(ctx context.Context, r result) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if r.err != nil {
		return fmt.Errorf("trial %d: %w", r.task.Trial, r.err)
	}
	e.held = append(e.held, r)
	for {
		i := slices.IndexFunc(e.held, e.next)
		if i < 0 {
			return nil
		}
		r = e.held[i]
		e.held = slices.Delete(e.held, i, i+1)
		e.owed = slices.DeleteFunc(e.owed, r.task.Same)
		if err := e.add(&search.Record{Outcome: &r.outcome}); err != nil {
			return err
		}
		if cause := e.history.Ended(); cause != "" {
			return &EndedError{cause}
		}
	}
}

// next reports whether a result may be written.
func (e *engine) next(r result) bool { return !e.plan.Config.Synchronous() || r.task.Same(e.owed[0]) }
