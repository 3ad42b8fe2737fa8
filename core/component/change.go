package component

import (
	"fmt"
	"maps"
	"reflect"
	"sync"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/env"

	"github.com/rlhost/rlhost/hostabi"
)

// Pauser is optional, for a component whose work continues between two slots: blocks that it writes, requests that it
// has not answered. Without it a component is at rest whenever none of its slots runs. All methods are called on the
// component's loop.
type Pauser interface {
	// Pause brings the component to rest: it finishes what it has begun and begins nothing new. rested is called once
	// on the loop, perhaps before Pause returns. Until then slots are called as before; from then on none is, Snapshot
	// returns the whole state, and the component emits nothing until Resume.
	Pause(rested func())
	// Resume ends a Pause, also before the component is at rest: rested is not called then.
	Resume()
	// Waiting returns, from a component at rest that will not be resumed, the messages that it took and has not begun
	// with, in order, for its successor's slots. The claims are the caller's from then on.
	Waiting() []Waiting
}

// Lasting is optional, for a component with a state of which a part outlives the episodes that are under way. Its Restore takes such a
// part alone, too, also that of a component with other environments, and episodes begin anew.
type Lasting interface {
	// Lasting returns State.Lasting of what Snapshot would return, also where that cannot be saved. It is called on the component's loop, at any
	// time between Start and Stop.
	Lasting() (part State, ok bool)
}

// Watched is optional, for a component whose memory the host can look into.
type Watched interface {
	// Looks returns the columns that the component says in its manifest that it looks at, once it is configured.
	Looks() []hostabi.ManifestColumn
	// Altered returns the names of columns in which the component has written without a grant, in blocks that it sees now: it alone
	// sees that. It is called on the component's loop, between two messages.
	Altered() []string
}

// Recovering is optional, for a component that goes on from an earlier state of its own after a fault.
type Recovering interface {
	// SaveState is called at each dataset boundary: the state that the component has then, or between two later slots, is what it goes
	// on from. Any goroutine, between Start and Stop; it returns at once.
	SaveState()
}

// Cuttable is optional, for a component that may be at one message for long and can give up the rest of that work.
type Cuttable interface {
	// Cut has the component end the work on the message that it is at as soon as its state can be saved, take up none any more, and count
	// what is lost by it. Any goroutine, between Start and Stop; it returns at once.
	Cut()
}

// Apart is optional, for a component whose state is to be saved though its loop is at a message of another component that does not end.
type Apart interface {
	// SnapshotApart is Snapshot beside the loop, after Cut. ok is false while the component is at a message itself, and once it is stopped.
	// Any goroutine.
	SnapshotApart() (state State, ok bool, err error)
}

// Asking is optional, for a component that asks others and waits for their answers.
type Asking interface {
	// Owed calls fn with each request that has not got all its answers. Any goroutine, between Start and Stop.
	Owed(fn func(Owed))
}

// Owed is a request that waits for answers. One that is seen twice, equal in all fields, is the same one and has not been answered
// meanwhile.
type Owed struct {
	Signal   string // that the request was emitted on
	Split    int    // or another part of the component that waits by itself
	Mark     uint64
	Policies string // those that have not answered, with spaces between them; empty where all receivers of the signal may owe
}

// Owing is optional, for a component that is asked and can be made to go on when it owes an answer for too long.
type Owing interface {
	// Overdue tells that an answer is overdue. The component ends what keeps it from answering and is given the request again, or fails.
	// Any goroutine.
	Overdue(err error)
}

// Holder is optional, for a component of this process that can tell which blocks it keeps beyond its slots.
type Holder interface {
	// Holds calls fn with each block that the component has leased. Any goroutine, between Start and Stop.
	Holds(fn func(a *arena.Arena, h hostabi.Handle))
}

// Waiting is a message that a component has taken and not begun with.
type Waiting struct {
	Slot    string
	Message hostabi.Message
	Claimed bool // a claim on Message.Handle goes with it
}

// Boundary names the moment at which one version of a component's work gives way to the next.
type Boundary uint8

// Boundaries, in the order in which they come.
const (
	// AtNow: at once; env steps of unfinished trajectories are dropped and counted.
	AtNow Boundary = iota
	// AtStep: between two env steps of a batch.
	AtStep
	// AtTrajectory: between two trajectories of a split.
	AtTrajectory
	// AtEpisode: each environment when its episode ends.
	AtEpisode
)

// BoundaryNames are the names of all boundaries, by their values.
var BoundaryNames = [...]string{"now", "step", "trajectory", "episode"}

// String returns the boundary's name as ParseBoundary takes it.
func (b Boundary) String() string {
	if int(b) < len(BoundaryNames) {
		return BoundaryNames[b]
	}
	return "boundary?"
}

// ParseBoundary returns the boundary of that name: now, step, trajectory or episode.
func ParseBoundary(name string) (Boundary, error) {
	for i, n := range BoundaryNames {
		if n == name {
			return Boundary(i), nil
		}
	}
	return 0, fmt.Errorf("boundary %q: want step, trajectory, episode or now", name)
}

// EnvRunner is a component that runs environments of a plugin and can change to those of another while it runs.
type EnvRunner interface {
	// EnvName returns the name of the [env] table that its environments come from.
	EnvName() string
	// PrepareEnvs makes everything the change needs: instances of the new environments, memory. It may be called from
	// any goroutine but the component's loop, blocks, and changes nothing of what runs. The spaces must be those of the
	// environments that run, else the error says what differs.
	PrepareEnvs(c EnvChange) (PreparedEnvs, error)
}

// EnvChange says which environments a component changes to, and how.
type EnvChange struct {
	Plugin env.Plugin // stays open until the component has changed to another one, or stopped
	At     Boundary
	// KeepState keeps the running episodes: by the memory of whole instances where both plugins have the same hash,
	// else environment by environment where both save and load. Otherwise they end as truncated and are counted.
	KeepState bool
	// Envs is how many environments of the component change, the first ones; 0 means all. Fewer is a trial whose
	// trajectories the learner gets: both versions run side by side until a change to either for all.
	Envs int
	// Task is the trajectory.Episode.Task of the new environments' episodes: one more than before where episodes end for
	// the change, the same where all of them go on, trajectory.TrialTask in a trial.
	Task uint16
	// TaskBack is the Task of environments that change back, by Cancel or a fault: newer than Task, so that they count
	// again.
	TaskBack uint16
	// Probation keeps the old environments ready: at the first fault of a new one the component changes back to them
	// by itself, and the fault does not count against its budget of restarts. It lasts until Settle.
	Probation bool
	// OnFault is called on the component's loop at that fault, maybe more than once: false means that the probation has
	// just ended for all that take part in the change, and the fault is one of any environment. nil is true.
	OnFault func(fault error) bool
	// Went is called on the component's loop when all of those environments have changed.
	Went func(EnvsWent)
	// RolledBack is called on the component's loop when the component has changed back because of that fault; nil
	// without Probation.
	RolledBack func(fault error)
}

// PreparedEnvs is a change that has been prepared. All methods but Close are called on the component's loop.
type PreparedEnvs interface {
	// Commit makes the change at its boundary. It returns at once; Went is called later, or at once: a component at rest is at every
	// boundary but AtEpisode.
	Commit() error
	// Cancel reverts a committed change until Settle, also after Went, for example because other components of the
	// run did not reach their boundaries: the environments that have changed go back at once, their episodes ending
	// as truncated.
	Cancel()
	// Settle ends the probation and releases the old environments. A further change can be prepared before, and is
	// committed after.
	Settle()
	// Close releases a change that was not committed. It may be called from any goroutine.
	Close() error
}

// EnvsWent tells how a change of environments went.
type EnvsWent struct {
	Envs      int     // that have changed
	Kept      int     // of them, with their episode
	Truncated int     // of them, whose episode was ended for it
	Dropped   uint64  // env steps that were dropped
	PauseNS   []int64 // for each split, how long stepping paused for the change
}

// Arena returns the arena of that name for blocks that the component writes: its predecessor's, if that has the same
// shape, else a new one. Blocks of the predecessor may still be on loan or claimed; they come back with a credit. The
// arena is the host's to close.
func (h *Host) Arena(c arena.Config) (*arena.Arena, error) {
	a := h.Inherited[c.Name]
	if a == nil || a.Blocks() != c.Blocks || a.BlockBytes() != c.BlockBytes || a.Share().ReadOnly != c.ReadOnly ||
		!reflect.DeepEqual(a.Schema(), c.Schema) {
		var err error
		if a, err = h.Arenas.Add(c); err != nil {
			return nil, err
		}
	}
	h.Own(a)
	return a, nil
}

// OnFree makes fn get the credits of a block of an arena from Arena, on the goroutine that frees it; see
// arena.Arena.OnFree. Those of a predecessor's arena go to the predecessor until TakeOver.
func (h *Host) OnFree(a *arena.Arena, block uint32, fn func(block uint32)) {
	if h.Inherited[a.Name()] != a {
		a.OnFree(block, fn)
		return
	}
	h.credits = append(h.credits, func() { a.OnFree(block, fn) })
}

// TakeOver makes the component receive the credits of the arenas that it inherited. It is for the host, when the
// predecessor is at rest. A block freed before gives no credit: LoanBlock tells which those are.
func (h *Host) TakeOver() {
	for _, register := range h.credits {
		register()
	}
	h.credits = nil
}

// Own records that the component has an arena that Arena did not make: one of a process. Any goroutine.
func (h *Host) Own(a *arena.Arena) {
	h.arenas.mu.Lock()
	defer h.arenas.mu.Unlock()
	h.arenas.byName[a.Name()] = a
}

// OwnArenas returns the arenas that the component has, by name: what its successor inherits. It is for the host. Any
// goroutine.
func (h *Host) OwnArenas() map[string]*arena.Arena {
	h.arenas.mu.Lock()
	defer h.arenas.mu.Unlock()
	return maps.Clone(h.arenas.byName)
}

// ownArenas are the arenas of one component.
type ownArenas struct {
	mu     sync.Mutex
	byName map[string]*arena.Arena // guarded by mu
}
