package session

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
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

// kernelsOf names what computes the parameters that are learned: kernels of a backend, or a plugin that a learner is of and that is
// not the backend's. Those of the policy that the training is about come first, then others where they differ.
func kernelsOf(s *Session) (text string) {
	leading := ""
	for _, x := range leadingFirst(s, s.graph) {
		d, err := definitionOf(s, x.policy.Name)
		if err != nil { // it was removed while the run went on
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

// openLog begins to keep what is logged. A run that cannot goes on without.
func (s *Session) openLog() {
	file, err := s.run.OpenLog()
	if err != nil {
		s.log.Warn("the run keeps no log", "error", err)
		return
	}
	s.records.open(file)
}

// keep tells the run which checkpoints to keep.
func (s *Session) keep() {
	c := s.Graph().Run.Checkpoint
	s.Folder().Retain(runs.Retention{Newest: max(1, c.Keep), Best: c.Best, Every: uint64(c.KeepEvery)})
}

// Options say what is trained and who is told. Parts is needed, and Graph to begin.
type Options struct {
	Parts *graph.Parts
	Graph *graph.Graph // of a training that begins; one that is resumed reads its run's own
	Sets  []string     // overrides of the graph of a training that is resumed, such as component.learner.epochs=4

	InitFrom *runs.Run // run whose newest weights the training begins with, or nil
	// InitTensors is a safetensors file with the weights that the training begins with, named as in an export; "" = none.
	InitTensors string
	Reset       []string // with InitFrom or InitTensors: what of its learner's state begins anew

	// Policy is the leading one, that stop rules, the best checkpoint and evaluations are about. Empty: that of run.policy, else
	// the only one that is learned, else main.
	Policy string

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
	graph    *graph.Graph  // that the training began with
	policy   *graph.Policy // the leading one
	learner  string        // component whose state holds it
	run      *runs.Run
	beside   atomic.Pointer[runs.Run] // what is saved to where the run's folder was removed
	pipeline *pipeline.Pipeline
	commands *commands       // nil where the run takes none
	before   runs.Checkpoint // that the run goes on from
	resumed  bool
	unproven []Swap // versions that were watched when the run ended, and are taken back

	progress  atomic.Pointer[Progress]
	saved     time.Time                  // when the last checkpoint was taken
	saveErr   error                      // why the last one could not be written
	last      map[string]component.State // at the boundary that ended the run
	at        runs.Checkpoint            // counters of the last boundary
	evaluator *evaluator
	asked     single[control.CheckpointReply]
	aborted   atomic.Bool // it is to end at once: nothing is saved any more
}

// Progress is what is known of a training, and of its leading policy, while it goes on.
type Progress struct {
	Run, Kernels, Policy    string
	EnvSteps, PolicyVersion uint64 // at the last boundary that was looked at
}

// Pipeline returns what runs.
func (s *Session) Pipeline() *pipeline.Pipeline { return s.pipeline }

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
	s.progress.Store(&Progress{Run: s.Folder().ID(), Kernels: kernelsOf(s), Policy: s.policy.Name, EnvSteps: envSteps, PolicyVersion: policyVersion})
}
