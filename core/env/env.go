package env

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Block is a trajectory block to step into, with the location of its pages for runtimes that map them into a
// guest.
type Block struct {
	trajectory.Trajectory
	Index  uint32 // of the block within its arena; a runtime may keep one window per index
	FD     int    // memfd of the arena, -1 if the memory cannot be mapped again
	Offset int64  // of the block within the memfd, page aligned
}

// Env steps a fixed number of environments. Its methods are called by one goroutine at a time and do not
// allocate on the step path. Each error is a *Fault or wraps ErrUnsupported or ErrPoisoned.
//
// After a Fault of kind Trap, Deadline or Memory the Env is poisoned: every method but Renew, Restore and Close
// returns ErrPoisoned.
//
// After a Fault of kind Lost from Bind, Reset or Step, the environments that Fault.Lost names have forgotten their
// episodes and wait for a Reset; the rows that they should have written are undefined. All others have completed
// the call, and the block is bound.
type Env interface {
	// Spec returns the environment's description. The pointee is constant.
	Spec() *hostabi.EnvSpec
	// Bind makes following calls read and write that block. It may be called between any two steps. The block
	// must stay mapped until another one is bound or the Env is closed. A block of the same index may lie elsewhere the
	// next time.
	Bind(b Block) error
	// Reset starts new episodes and writes obs[t] (and mask[t]): in every environment, or where mask is not 0. seeds
	// restarts the environments' random streams; nil lets them continue. Both have one element per environment.
	Reset(t int, mask []uint8, seeds []uint64) error
	// Step reads action[t], where row t also holds the observation, even if it was first written to another block. It writes reward[t],
	// terminated[t], truncated[t], obs[t+1] (and mask[t+1]).
	Step(t int) error
	// Renew returns the Env to the state just after its creation, with no block bound and no episode begun. See Lasting for what a
	// caller may want to keep.
	Renew() error
	// Snapshot returns all state of the Env but the blocks: opaque bytes for Restore of an Env made from the
	// same plugin with the same options. ErrUnsupported where the runtime cannot.
	Snapshot() ([]byte, error)
	// Restore replaces the state by a snapshot. The caller binds a block afterwards.
	Restore(snapshot []byte) error
	// Close frees the environments. It must not be called during another call.
	Close() error
}

// Stater is optional for an Env: the state of a single environment, to compare or move it. It is not on the step
// path. Both methods return ErrUnsupported where the environment cannot save a single state.
type Stater interface {
	// SaveEnv appends the state of the environment with that index in the batch to dst. That of a module begins with
	// the head that rl_save writes.
	SaveEnv(env int, dst []byte) ([]byte, error)
	// LoadEnv replaces the state by one that SaveEnv returned. It writes nothing to the block: the next step continues
	// from there. ErrStateVersion, and nothing has changed, for a state of a version that the environment does not read.
	LoadEnv(env int, state []byte) error
}

// Lasting is optional for an Env with state that outlives episodes, such as a wrapper's statistics of rewards. Both methods work
// on a poisoned Env, too, and are not on the step path.
type Lasting interface {
	// SaveLasting appends the lasting state of the environment with that index in the batch to dst.
	SaveLasting(env int, dst []byte) []byte
	// LoadLasting sets the lasting state to one that SaveLasting has returned for any environment of any Env. An episode must begin next. Parts
	// that this Env does not keep are skipped; the bytes after its own parts are returned.
	LoadLasting(env int, kept []byte) (rest []byte)
}

// Renderer is optional for an Env: pictures of an environment. It is not on the step path and changes no state.
type Renderer interface {
	// Render appends a picture of the environment with that index to dst: text in UTF-8, or the bytes of all pixels, by
	// the size that Spec names. mode is one of Spec's modes, view the number of a camera or an agent, 0 to 255.
	// ErrUnsupported where the environment has no such picture.
	Render(env int, mode hostabi.RenderMode, view int, dst []byte) ([]byte, error)
}

// Asked is optional for an Env whose environments have attributes and methods of their own, such as objects of Python. It is not on the
// step path.
type Asked interface {
	// Ask puts a question to all environments and returns the answers, each for the environments of one process, in their order. Both are
	// in the words of the program that runs them. The error is a Fault where a process has not answered: its environments are lost, as the
	// next call says. ErrUnsupported where environments are not asked.
	Ask(question []byte) (answers [][]byte, err error)
}

// PartStepper is optional for an Env that steps parts of its batch one after the other, for checks of environments.
type PartStepper interface {
	// StepParts is Step in those parts, in that order; each environment is in at most one of them; an environment in none stays
	// as it is, with its output. ErrUnsupported where environments can only be stepped together.
	StepParts(t int, parts []Span) error
}

// BlockMapper is optional for an Env that maps the blocks which it is bound to.
type BlockMapper interface {
	// MapAhead puts blocks where Bind finds them. Nothing is bound afterwards.
	MapAhead(blocks []Block) error
}

// Copier is optional for an Env: Restore of the other's Snapshot, without the bytes between.
type Copier interface {
	// CopyFrom copies the state of an Env of the same source with the same options, which is not changed; the wrappers may differ,
	// see Rewrapping. Nothing is bound afterwards. ErrUnsupported, and nothing has changed, if the other is not such an Env.
	CopyFrom(from Env) error
}

// Successor is optional for an Env: it takes over the state of an Env that does not step again, without a copy.
type Successor interface {
	// TakeOver is CopyFrom, but leaves the other Env without a useful state: except for Bind, its next call must be a Reset of all
	// environments with seeds, Renew, Restore or Close. ErrUnsupported, and nothing has changed, where only CopyFrom may do it.
	TakeOver(from Env) error
}

// Starter is optional for an Env whose steps are made elsewhere: a step in two halves, so that the caller can do
// other work meanwhile. Between the two no other method is called.
type Starter interface {
	// StartStep begins a Step. over means that it ended within the time that a wait would cost, or could not begin;
	// err is then Step's. If it is not over, ready is called once, from any goroutine, and must not wait.
	StartStep(t int, ready func()) (over bool, err error)
	// FinishStep returns Step's error. It waits, but after ready not for long.
	FinishStep() error
}

// Separate is optional for an Env whose environments can make their steps one by one, each as soon as it has an action.
type Separate interface {
	// StepAlone begins step t of one environment, which is in no step. Others may be; no other method is called meanwhile, but Close.
	StepAlone(t, index int) error
	// StepsAlone says what to call at the end of each step that StepAlone has begun, from any goroutine, with the step's error; it is called
	// before StepAlone. A Fault of kind Lost costs all environments that it names, in a step or not. ErrUnsupported
	// where the environments step together.
	StepsAlone(over func(index int, err error)) error
}

// Copying is optional for an Env whose environments do not step into the bound blocks: it counts the copies.
type Copying interface {
	// Copied returns how many bytes were copied, or computed again, for that since the Env was made.
	Copied() uint64
}

// Copied returns how many bytes an Env has copied; see Copying.
func Copied(e Env) uint64 {
	if c, ok := e.(Copying); ok {
		return c.Copied()
	}
	return 0
}

// Plugin makes environments from one loaded and checked source. Its methods may be called concurrently.
type Plugin interface {
	// Spec returns the environment's description under the configuration that the plugin was loaded with.
	Spec() hostabi.EnvSpec
	// Hash returns the SHA-256 of the source, in hexadecimal.
	Hash() string
	// NewEnv makes a batch of environments.
	NewEnv(o Options) (Env, error)
	// Close releases the plugin once its environments are closed.
	Close() error
}

// Configured is optional for a Plugin. Environments of two plugins with the same Hash and an equal
// Configuration can restore each other's snapshots; without it the Hash alone decides.
type Configured interface {
	// Configuration returns everything except the source that an environment's state depends on: its arguments, one
	// key=value a line, in the order of the keys.
	Configuration() string
}

// Reusing is optional for a Plugin whose environments run in processes.
type Reusing interface {
	// Reuse keeps up to n processes of batches that are closed for batches that are made later, until the plugin is closed. It is for who makes
	// many batches of a few steps each, and would spend most of the time on starting processes.
	Reuse(n int)
}

// SameInstances reports whether environments of one plugin can continue with the memory of the other's; see Configured.
func SameInstances(a, b Plugin) bool {
	if a.Hash() != b.Hash() {
		return false
	}
	x, ok := a.(Configured)
	y, also := b.(Configured)
	return ok == also && (!ok || x.Configuration() == y.Configuration())
}

// Rewrapping is optional for a Plugin with wrappers around the environments of another one.
type Rewrapping interface {
	// Rewraps reports whether the plugins differ in wrappers alone, one for one. Envs of this one are then Copiers of the
	// other's: the environments and the wrappers that both have continue; a different wrapper starts in its first state.
	Rewraps(other Plugin) bool
}

// Rewraps reports whether a plugin differs from another in wrappers alone; see Rewrapping.
func Rewraps(p, other Plugin) bool {
	x, ok := p.(Rewrapping)
	return ok && x.Rewraps(other)
}

// Parted is optional for a Plugin.
type Parted interface {
	// StepsParts reports whether its Envs are PartSteppers that can step any of their environments alone.
	StepsParts() bool
}

// StepsParts reports whether the environments of a plugin can be stepped in parts; see Parted.
func StepsParts(p Plugin) bool {
	x, ok := p.(Parted)
	return ok && x.StepsParts()
}

// Whole is optional for a Plugin that steps whole batches alone.
type Whole interface {
	// StepsWhole returns the remedy where the environments would have to be stepped in parts.
	StepsWhole() string
}

// Shaping is optional for a Plugin.
type Shaping interface {
	// Shapes reports whether the environments write trajectory.ShapedReward into blocks that have it. Nobody else does then.
	Shapes() bool
}

// Shapes reports whether the environments of a plugin write trajectory.ShapedReward; see Shaping.
func Shapes(p Plugin) bool {
	s, ok := p.(Shaping)
	return ok && s.Shapes()
}

// Options says which environments to make.
type Options struct {
	Name      string            // the user, for messages: a component such as rollout[0]
	Envs      int               // how many
	FirstEnv  int               // global index of environment 0, for messages
	Autoreset hostabi.Autoreset // the mode to use, one that the spec offers
	Seed      uint64            // of streams other than the environments' own (the entropy import), before the first Reset with seeds
	// Metric receives numbers that the environments report, or is nil. It is called during the Env's own calls, and with the
	// same name for the same metric.
	Metric func(m Metric)
	// Tolerate is asked about the fault of a call of a wrapper: true lets the environments continue without the wrapper's work in that step.
	// Otherwise, and where it is nil, the step that the call was for returns the *Fault. It is called during the Env's own calls.
	Tolerate func(fault error) bool
	// Log gets warnings about faults that fail no call; nil discards them.
	Log *slog.Logger
	// Stats gets numbers about what runs the environments, such as the memory of their processes; nil discards them.
	Stats *stat.Registry
	// Made is told how many more environments have been made, where that takes long; nil does not listen. Any goroutine.
	Made func(n int)
	// Wanted ends when the environments are abandoned, from any goroutine: a call in progress then soon returns an error, and so does each
	// later one but Close, where the runtime can stop running code. Nil never ends.
	Wanted context.Context
}

// Abandoned reports whether the environments are abandoned; see Wanted.
func (o *Options) Abandoned() bool { return o.Wanted != nil && o.Wanted.Err() != nil }

// Metric is a number that an environment reports.
type Metric struct {
	Env    int // index within the batch, -1 if the runtime does not know
	Name   string
	Value  float64
	Gather hostabi.TensorFlags // how its numbers of an episode become one: of hostabi.TensorGather; 0 = the last one
}

// Errors of an Env that are not a Fault.
var (
	ErrUnsupported = errors.New("not supported by this environment")
	ErrPoisoned    = errors.New("environment needs Renew after a fault")
	// ErrStateVersion is wrapped where a saved state is of another version than the environment's.
	ErrStateVersion = errors.New("saved state of another version")
)

// FaultKind is the kind of an environment's fault.
type FaultKind uint8

// Kinds of faults.
const (
	FaultTrap     FaultKind = iota + 1 // the guest trapped: out of bounds, unreachable, stack overflow, …
	FaultDeadline                      // a call took longer than its limit
	FaultMemory                        // the guest exceeded its memory limit or donated bad memory
	FaultStatus                        // the guest returned an error status
	FaultOutput                        // the guest wrote something that is not allowed: NaN, a flag of 2, …
	FaultLost                          // the process of some of the environments has ended
)

var faultNames = [...]string{"fault", "trap", "deadline", "memory", "status", "output", "lost"}

// String returns the kind's name.
func (k FaultKind) String() string {
	if int(k) < len(faultNames) {
		return faultNames[k]
	}
	return faultNames[0]
}

// Fault is an error of one environment, or of a component in a sandbox. Its text is one line.
type Fault struct {
	Kind   FaultKind
	Name   string // component
	Source string // file of the plugin
	Call   string // guest function, such as rl_step
	Env    int    // global index of the environment, -1 if not known
	Step   uint64 // calls of Step since the Env was made or renewed, this one included
	// Component says that it is of a component in a sandbox, or of a wrapper that is one, and of no environment.
	Component bool
	Err       error // the reason, with the guest's own words where it gave any
	// Lost names the environments that a fault of kind Lost has lost, in ascending order; Env is -1 then.
	Lost []Span
}

// ErrFirstStep is wrapped by a fault that ends a run in which no environment of its component could make a single step.
var ErrFirstStep = errors.New("no environment has made its first step")

// Span is a run of neighbouring environments of a batch.
type Span struct {
	First int // index within the batch
	Count int
}

// Error describes the fault in one line.
func (f *Fault) Error() string {
	who := f.Name
	if f.Env >= 0 {
		who = fmt.Sprintf("%s env %d", f.Name, f.Env)
	}
	return fmt.Sprintf("%s: %v in %s at step %d: %v (%s)", who, f.Kind, f.Call, f.Step, f.Err, f.Source)
}

// Unwrap returns the reason.
func (f *Fault) Unwrap() error { return f.Err }

// Poisons reports whether the environment needs Renew or Restore after this fault.
func (f *Fault) Poisons() bool {
	return f.Kind == FaultTrap || f.Kind == FaultDeadline || f.Kind == FaultMemory
}

// Lost returns the environments that an error reports lost; nil for any other error.
func Lost(err error) []Span {
	if err == nil {
		return nil // and nothing is allocated
	}
	var f *Fault
	if errors.As(err, &f) && f.Kind == FaultLost {
		return f.Lost
	}
	return nil
}
