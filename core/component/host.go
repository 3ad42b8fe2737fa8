package component

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/place"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/tape"
	"github.com/rlhost/rlhost/core/trace"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Host is the host's side of one component. Its fields are set before Start and not changed afterwards.
type Host struct {
	Name  string      // component[i] where the component has several instances, else component
	ID    uint16      // Message.Sender of its messages
	Index int         // which instance
	Count int         // how many instances
	Place place.Place // of its process, where it has one
	Succession

	Run      *Run
	Receiver *loop.Receiver // the component's place on its loop
	Arenas   *arena.Set
	Stats    *stat.Registry
	Log      *slog.Logger

	// Trace follows datasets; nil where the run follows none, or the component runs in another process.
	Trace *trace.Tracer

	// Env returns a loaded environment plugin by its name in the file.
	Env func(name string) (env.Plugin, error)
	// Policy returns the policy of a [policy.NAME] table. Components that use policies know its type.
	Policy func(name string) (Policy, error)
	// Stored returns a stored policy that no learner trains, as the state of a component of kind frozen. It blocks on files.
	// nil where the component runs in another process.
	Stored func(policy string) (State, error)
	// PolicyOf returns the policy that the sender of a message is of: that of its table, else the only one among the components
	// that its signals lead to. ok is false where there is no such sender any more, or no such policy. nil where components do
	// not know each other. Any goroutine.
	PolicyOf func(sender uint16) (name string, ok bool)
	// ActsIn returns how many environments a policy acts in; nil as PolicyOf. Any goroutine.
	ActsIn func(policy string) int
	// Peers returns how many instances of a kind of component the pipeline has.
	Peers func(kind string) int
	// Readers returns how many blocks of one of the component's signals its receivers may have claims on at once,
	// waiting blocks included. A component that emits blocks of its own arena makes at least that many.
	Readers func(signal string) int
	// Grants are the columns, by slot, that the wires let the component write in blocks of the slot's messages.
	Grants map[string][]string
	// Written are the columns, ascending, that wires let others write in the blocks that the component makes.
	Written []string
	// SoA reports the layout of observations in the blocks of the component's running instances, which must be the same throughout
	// a dataset; see trajectory.Shape. known is false where none runs. SoA may be nil. Any goroutine.
	SoA func() (soa, known bool)
	// Tables returns the file's other tables, for a component that runs elsewhere.
	Tables func() Tables
	// Boundary tells the host, on the learner's loop, that a dataset has been learned from and its weights are published. Checkpoints
	// are taken and stop rules applied inside this call, or, in synchronous mode, on the same loop after the messages queued now.
	Boundary func()
	// Stop asks the run to end at the next dataset boundary. Any goroutine; only the first reason counts.
	Stop func(reason StopReason)
	// Failed is called by Fail and Yield: true means that the host handles the error and the run continues. nil is false. Any goroutine.
	Failed func(error) bool
	// AskOther does what Request says; nil where components cannot ask each other.
	AskOther func(ask string, args json.RawMessage, within time.Duration, answer func(json.RawMessage, error))
	// Takes returns a function that is called with each message for a slot of that port before the slot runs, or nil. Takes itself may be nil.
	Takes func(port Port) func(m *hostabi.Message)
	// Keeps notes that the component can be restored to its present state. Call back after such a restore, with the messages that the
	// component gets again: everything else that it has learned from since counts as lost. Keeps may be nil. Any goroutine.
	Keeps func() (back func(again []hostabi.Message))
	// Steps calls tell with the counts of env steps at one moment, by the names of metrics; nil where the component runs in
	// another process. Any goroutine.
	Steps func(tell func(name string, n uint64))
	// Made is told how many more environments a component has made, where that takes long. It may be nil. Any goroutine.
	Made func(n int)
	// Loaded returns a document that says from what an environment was loaded, for a recording; nil where nobody knows. Any goroutine.
	Loaded func(p env.Plugin) []byte
	// ProcessChanged is called when Remote.Process would return another state. It may be nil. Any goroutine.
	ProcessChanged func()

	manifest Manifest
	signals  []*bus.Signal
	slots    []*bus.Slot
	handlers map[string]Handler
	anywhere bool // any goroutine may call them
	arenas   *ownArenas
	credits  []func() // that TakeOver registers
}

// Succession is an instance's inheritance from its predecessors, and its differences from them.
type Succession struct {
	// FirstEnv is the global index of the component's first environment, where its Flow has their number.
	FirstEnv int
	// Task is the trajectory.Episode.Task of the component's episodes until a change of its environments sets another:
	// the other instances' Task, if it joins a run that has had such changes.
	Task uint16
	// Begun numbers the instances that begin during the run: 0 for the instances that it began with. Environments
	// that do not continue from a state draw from random streams derived from it and from Run.Resumes.
	Begun int
	// Again returns another Begun, for an instance whose process restarts; nil where that does not happen.
	Again func() int
	// Published is the newest policy version that the component published before its process ended and it was
	// restarted, or that learners of its policy published before it was added; 0 if there is none. Versions continue from
	// there, so that none names two sets of parameters: a learner whose restored state is that version publishes it again.
	Published uint64
	// Abrupt is true where a predecessor was removed without a pause, because it had failed or did not pause in time. Answers to its
	// requests may still arrive, about blocks that this instance does not know.
	Abrupt bool
	// Inherited are the arenas of the instance that this one replaces, by name; see Arena. It is not nil, though it may
	// be empty, where there is such an instance: counters in Stats then include its counts.
	Inherited map[string]*arena.Arena
}

// Tables are the parts of a pipeline that components refer to by name. They are read-only.
type Tables struct {
	Policies map[string]PolicyTable
	Envs     map[string]hostabi.EnvSpec // of the loaded environments
	Sources  map[string]env.Source      // sources that any process of this program can load
	Peers    map[string]int             // instances of each kind
}

// PolicyTable is a [policy.NAME] table.
type PolicyTable struct {
	Env    string            // name of the environment that the policy is for
	Table  map[string]any    // all other keys, decoded into a map; for a policy with Of, the other policy's
	Memory trajectory.Memory // see Policy.Memory
	// Of names the policy whose versions this one acts with, From a run or a file that its weights come from. With either,
	// no learner trains it. Version selects one version; 0 means any past one with Of, the best or newest with From.
	Of, From string
	Version  uint64
	Group    int // of agents that it plays, by its place in the environment's description
}

// Drawn reports whether a pool draws which version of another policy this one acts with.
func (t *PolicyTable) Drawn() bool { return t.Of != "" && t.Version == 0 }

// Run is shared by all components of a run. It is immutable.
type Run struct {
	Name        string
	Seed        uint64
	Policy      string // the leading one, that stop rules and metrics without a policy's name are about; empty where nothing is trained
	Dir         string // run folder; empty in checks and benchmarks
	Synchronous bool   // one loop, zero lag, bit-reproducible
	// Resumes is how often the run has been resumed. Environments that do not continue from a saved state draw from
	// random streams that belong to this number.
	Resumes int
	Stop    StopRule
	Tape    *tape.Ring // of the inputs of the environments; nil: nothing is recorded
}

// StopRule says when a run ends, as run.stop of a file does: as soon as one of its rules is fulfilled. A zero field is no rule.
type StopRule struct {
	Return   *float64      `toml:"return" doc:"Ends the run when the mean return of the training window reaches this." unit:"reward"`
	Window   int           `toml:"window" doc:"Episodes in the training window." range:"1 or more" unit:"episodes"`
	EnvSteps uint64        `toml:"env_steps" doc:"Ends the run when the leading policy has learned from this many; 0 = never." range:"0 or more" unit:"env steps"`
	WallTime time.Duration `toml:"wall_time" doc:"Ends the run after this time, over all its processes; 0 = never." range:"0 or more"`
	// Policies are rules for single policies, by their names.
	Policies map[string]PolicyRule `toml:"policies,omitempty" name:"POLICY"`
}

// PolicyRule is the part of StopRule for one policy.
type PolicyRule struct {
	Return   *float64 `toml:"return" doc:"Ends the run when the mean return of this policy's window reaches this." unit:"reward"`
	EnvSteps uint64   `toml:"env_steps" doc:"Ends the run when this policy's learner has learned from this many; 0 = never." range:"0 or more" unit:"env steps"`
}

// Wanted returns the mean return that the rule asked for when policy, or the leading one if that is empty, reached one. If the rule has been
// withdrawn since, it returns reached.
func (r *StopRule) Wanted(leading, policy string, reached float64) float64 {
	own := r.Policies[cmp.Or(policy, leading)].Return
	if policy == "" && r.Return != nil && (own == nil || reached < *own) {
		own = r.Return
	}
	if own == nil {
		return reached
	}
	return *own
}

// Equal reports whether two rules mean the same.
func (r *StopRule) Equal(other *StopRule) bool { return reflect.DeepEqual(r, other) }

// Gauges of a component that counts episodes, for the pipeline's owner.
const (
	GaugeMeanReturn     = "charts/episodic_return" // over the window; NaN while that is not full
	GaugeReachedReturn  = "charts/reached_return"  // when it ended the run by its stop rule; none in a run that ended otherwise
	GaugeReachedSteps   = "charts/reached_steps"   // env steps learned from when run.stop.policies ended the run by them
	GaugeLongestEpisode = "runner/longest_episode" // env steps of the longest episode that the run has ended
)

// CounterMade counts the env steps in trajectories that were handed over. For a component in a process the host counts them.
const CounterMade = "rollout/env_steps"

// CounterTrained counts the env steps that all learners have learned from. Env steps of a policy that does not lead are
// counted under OfPolicy as well.
const CounterTrained = "learner/env_steps"

// CounterCut counts the env steps of datasets that a run which ended did not learn from to their end.
const CounterCut = "learner/cut_env_steps"

// CounterCutEnvs counts the env steps of blocks that were not full when a run was cut whose environments were still at a step.
const CounterCutEnvs = "rollout/cut_env_steps"

// OfPolicy returns the name that a number has where it is of a policy that does not lead.
func OfPolicy(policy, name string) string { return policy + "/" + name }

// StopReason says why a run ended.
type StopReason string

// Reasons.
const (
	StopReturn      StopReason = "return"
	StopEnvSteps    StopReason = "env_steps"
	StopWallTime    StopReason = "wall_time"
	StopInterrupted StopReason = "interrupted"
	StopOwn         StopReason = "component" // a component asked for it, for a reason of its own
)

// Bind gives the host of a component its ports: one signal for each of the manifest's, emitting on behalf of
// Receiver, with ID as the Sender of messages that name none, and counting handles with Arenas. The pipeline calls it before Start.
func (h *Host) Bind(m Manifest) {
	h.manifest = m
	h.arenas = &ownArenas{byName: map[string]*arena.Arena{}}
	h.slots = make([]*bus.Slot, len(m.Slots))
	h.handlers = map[string]Handler{}
	for _, p := range m.Signals {
		var claims bus.Retainer = h.Arenas
		if p.OnLoan {
			claims = nil
		}
		s := bus.NewSignal(h.Receiver, Qualified(h.Name, p.Name), p.Payload, claims)
		s.From(h.ID)
		h.signals = append(h.signals, s)
	}
}

// Signal returns a signal of the manifest. It panics on a name that the manifest does not have: that is a fault
// of the component's code.
func (h *Host) Signal(name string) *bus.Signal {
	i, ok := h.manifest.Signal(name)
	if !ok {
		panic(fmt.Sprintf("component %s: no signal %q in its manifest", h.Name, name))
	}
	return h.signals[i]
}

// Slot binds a slot of the manifest to the function that runs on the component's loop for each message. The
// message is valid during the call; so is a claim on the block that it carries. It panics on a name that the
// manifest does not have.
func (h *Host) Slot(name string, fn func(*hostabi.Message)) *bus.Slot {
	i, ok := h.manifest.Slot(name)
	if !ok {
		panic(fmt.Sprintf("component %s: no slot %q in its manifest", h.Name, name))
	}
	port := h.manifest.Slots[i]
	if h.Takes != nil {
		if take, run := h.Takes(port), fn; take != nil {
			fn = func(m *hostabi.Message) {
				take(m)
				run(m)
			}
		}
	}
	h.slots[i] = bus.NewSlot(h.Receiver, Qualified(h.Name, port.Name), port.Payload, fn)
	return h.slots[i]
}

// BoundSlot returns the slot of that name, or nil if Start did not bind it.
func (h *Host) BoundSlot(name string) *bus.Slot {
	if i, ok := h.manifest.Slot(name); ok {
		return h.slots[i]
	}
	return nil
}

// Granted returns an error, which names the key, unless the wires of a slot let the component write that column where it
// lies in blocks of the slot's messages.
func (h *Host) Granted(slot, column string) error {
	if slices.Contains(h.Grants[slot], column) {
		return nil
	}
	owner, _, _ := strings.Cut(h.Name, "[")
	port := Qualified(owner, slot)
	return &table.Error{Code: CodeGrant, Place: "slot " + port, Reason: fmt.Sprintf("may not write %s: no wire grants it", column),
		Help: fmt.Sprintf("add write = [%q] to each [[wire]] with slot = %q", column, port)}
}

// CodeGrant is the code of errors about what a wire grants; rlhost explain has a page for it.
const CodeGrant = "E038"

// Fail ends the run with an error of this component, unless Failed handles it. The slot still runs to its end.
func (h *Host) Fail(err error) {
	if !h.Yield(err) {
		h.Receiver.Loop().Fail(fmt.Errorf("%s: %w", h.Name, err))
	}
}

// Yield is for a fault that the component could survive. True means that it was on probation and is replaced by the
// previous version: nothing of it runs once the slot has returned.
func (h *Host) Yield(fault error) bool {
	return h.Failed != nil && h.Failed(fault)
}
