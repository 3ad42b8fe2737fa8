package session

import (
	"fmt"
	"strings"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// Event is something that happens in a training: Warned, Unfinished, Resumed, Starting, Started, Serving, Saved, Evaluated or Failed. Observers run on
// the goroutine that it happens on, and must not wait for the training.
type Event interface{ event() }

// Warned says that the pipeline can be built, with these warnings.
type Warned struct{ Problems graph.Problems }

// Unfinished says that before a training begins there is a run of the same name that did not come to its end.
type Unfinished struct {
	Run      string
	EnvSteps uint64 // at its newest checkpoint
}

// Resumed says that a run has been resumed, exactly or not.
type Resumed struct {
	Run                     string
	EnvSteps, PolicyVersion uint64
	Exact                   bool
	Why                     string        // it is not exact
	Swapped                 []Swap        // versions that were swapped in before
	Unproven                []Swap        // versions that were watched when the run ended: the previous ones run again
	Interrupted             *runs.Change  // during which the run was killed, or nil
	Now                     *runs.Version // that runs after that, or nil
	NewRuns                 bool          // of the two versions of Interrupted the new one runs
}

// Swap is a version that was swapped in.
type Swap struct {
	Component string
	Version   control.Version
	What      string // swap, rollback, reload
	EnvStep   uint64
}

// Started says that a training is about to run.
type Started struct {
	Run, Dir string
	Seed     uint64
	Mode     string // sync or async
	Kernels  string
	Pipeline string            // hash of the graph
	Plugins  map[string]string // hashes of the environments
	Policy   string            // the leading one
	Learned  []string          // all that are learned
}

// Serving says that the run answers commands, if it takes any, and makes its first steps now.
type Serving struct{}

// Saved says that a checkpoint was taken at a dataset boundary, or could not be.
type Saved struct {
	EnvSteps, PolicyVersion uint64
	Err                     error
}

// Evaluated says how a learned policy did during the run.
type Evaluated struct {
	Policy                  string
	Leads                   bool
	EnvSteps, PolicyVersion uint64 // of the policy
	players.Played
	Greedy  bool             // how it acted: greedily, or by sampled actions
	Ratings *players.Ratings // of a policy with a pool; nil where none of its versions could be played
}

// String describes it in one line.
func (e *Evaluated) String() string {
	elo := ""
	if e.Ratings != nil {
		elo = fmt.Sprintf(", Elo %.0f", e.Ratings.Elo())
		if rates := e.Ratings.WinRates(); rates != "" {
			elo += ", " + rates
		}
	}
	whose := ""
	if !e.Leads {
		whose = " of " + e.Policy
	}
	return fmt.Sprintf("evaluation%s at %d env steps: return %s%s", whose, e.EnvSteps, text.Returns(e.Return, e.Std), elo)
}

// Failed says that an error has ended the run; its newest checkpoint stays.
type Failed struct{}

// Evaluating reports the progress of the evaluation at the end: how many of its episodes, greedy and sampled, have been played.
type Evaluating struct {
	Policy           string
	Played, Episodes int
}

func (Evaluating) event() {}

// String returns the run's name, seed, mode, kernels and pipeline, and the learned policies if there are several.
func (e *Started) String() string {
	text := fmt.Sprintf("run %s  seed %d  %s", e.Dir, e.Seed, e.Mode)
	if e.Kernels != "" {
		text += "  kernels " + e.Kernels
	}
	text += fmt.Sprintf("  pipeline %.8s", e.Pipeline)
	if len(e.Learned) > 1 {
		text += fmt.Sprintf("  learns %s (%s leads)", strings.Join(e.Learned, ", "), e.Policy)
	}
	return text
}

func (Warned) event() {}

func (Unfinished) event() {}

func (Resumed) event() {}

func (Started) event() {}

func (Serving) event() {}

func (Saved) event() {}

func (Evaluated) event() {}

func (Failed) event() {}
