package session

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/tape"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// definitionOf returns a policy of the pipeline that runs.
func definitionOf(s *Session, name string) (*policy.Definition, error) {
	made, err := s.pipeline.Policy(name)
	if err != nil {
		return nil, err
	}
	return policy.DefinitionOf(name, made)
}

// kernelsOf names the kernels that compute the learned parameters: a backend's, or a plugin's that makes the learner and is not the
// backend's. The leading policy's come first, then others where they differ.
func kernelsOf(s *Session) (text string) {
	leading := ""
	for _, x := range leadingFirst(s, s.graph) {
		d, err := definitionOf(s, x.policy.Name)
		if err != nil { // it was removed during the run
			continue
		}
		kernels := d.Backend.Kernels()
		if c := s.graph.Component(x.component); c != nil && c.Plugin != "" && c.Plugin != x.policy.Plugin {
			kernels = "plugin " + c.Plugin
		}
		if leading == "" {
			leading, text = kernels, kernels
		} else if kernels != leading {
			text += fmt.Sprintf(", %s of %s", kernels, x.policy.Name)
		}
	}
	return text
}

func (s *Session) tell(e Event) {
	if s.o.Observe != nil {
		s.o.Observe(e)
	}
}

// openLog opens the run's log. A run that cannot continues without.
func (s *Session) openLog() {
	file, err := s.run.OpenLog()
	if err != nil {
		s.log.Warn("the run keeps no log", "error", err)
		return
	}
	s.records.open(file)
}

// keep sets which checkpoints the run keeps.
func (s *Session) keep() {
	c := s.Graph().Run.Checkpoint
	s.Folder().Retain(runs.Retention{Newest: max(1, c.Keep), Best: c.Best, Every: uint64(c.KeepEveryEnvSteps)})
}

// Options of a training. Parts is needed, and Graph to begin.
type Options struct {
	Parts   *graph.Parts
	Engines io.Closer    // runtimes of the parts, closed with the session; nil: the caller closes them
	Graph   *graph.Graph // of a new training; a resumed one reads its run's own
	Sets    []string     // overrides of the graph of a training that is resumed, such as component.learner.epochs=4

	InitFrom *runs.Run // run whose newest weights the training begins with, or nil
	// InitTensors is a safetensors file with the weights that the training begins with, named as in an export; "" = none.
	InitTensors string
	Reset       []string // with InitFrom or InitTensors: parts of its learner's state to reset

	// Policy is the leading one, for stop rules, the best checkpoint and evaluations. Empty: run.policy's, else the only learned
	// one, else main.
	Policy string

	// WithoutLearner accepts a pipeline that learns nothing. It runs until a stop rule, a component or the end of the context ends it;
	// it has no leading policy and no dataset boundaries, so there are no checkpoints and no evaluations.
	WithoutLearner bool

	Log     *slog.Logger // nil: slog.Default
	Records *Records     // log records for the run's folder; nil: the records of Log from here on
	Observe func(Event)  // gets the events; may be nil

	// Ended gets each episode that a recording has, on the goroutine of its environments; may be nil.
	Ended func(of *tape.Head, e tape.Episode)

	// Elsewhere returns the instances of a run that are on other machines, and may wait for these until ctx ends; nil, or a nil result: all are here.
	Elsewhere func(ctx context.Context, of Elsewhere) (pipeline.Elsewhere, error)
	Hosts     func() []control.HostStatus // other machines of the run, for its status; may be nil
}

// Elsewhere is the run whose instances may be on other machines.
type Elsewhere struct {
	Graph   *graph.Graph
	Run     *runs.Run
	Resumes int
}

// Session is one training, from its beginning or resumption to its end. Its methods may be called by one goroutine at a
// time; Progress by any.
type Session struct {
	o        Options
	log      *slog.Logger
	records  *Records
	started  time.Time
	graph    *graph.Graph  // that the training began with
	policy   *graph.Policy // the leading one; without a name where nothing is learned
	learner  string        // component whose state holds it
	run      *runs.Run
	beside   atomic.Pointer[runs.Run] // where files are saved once the run's folder was removed
	pipeline *pipeline.Pipeline
	tape     *tape.Ring      // nil: nothing is recorded
	commands *commands       // nil where the run takes none
	before   runs.Checkpoint // that the run continues from
	resumed  bool
	unproven []Swap // versions that were watched when the run ended, and are taken back

	progress  atomic.Pointer[Progress]
	saved     time.Time                  // when the last checkpoint was taken
	saveErr   error                      // why the last one could not be written
	last      map[string]component.State // at the boundary that ended the run
	at        runs.Checkpoint            // counters of the last boundary
	made      atomic.Uint64              // number of the newest change that is complete
	change    uint64                     // and at the last boundary
	evaluator *evaluator
	traces    traces
	asked     single[control.CheckpointReply]
	aborted   atomic.Bool // it must end at once: nothing is saved any more
}

// Progress describes a running training and its leading policy.
type Progress struct {
	Run, Kernels, Policy    string
	EnvSteps, PolicyVersion uint64 // at the last boundary that was looked at
}

// Pipeline returns the running pipeline.
func (s *Session) Pipeline() *pipeline.Pipeline { return s.pipeline }

// Graph returns the graph that runs, all changes included; before there is a pipeline it is the graph that will be built.
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

// know updates the Progress.
func (s *Session) know(envSteps, policyVersion uint64) {
	s.progress.Store(&Progress{Run: s.Folder().ID(), Kernels: kernelsOf(s), Policy: s.policy.Name, EnvSteps: envSteps, PolicyVersion: policyVersion})
}
