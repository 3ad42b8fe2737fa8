package component

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"sync"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/env"

	"github.com/rlhost/rlhost/hostabi"
)

// Pauser is optional, for a component whose work continues between two slots: it has blocks on loan or requests to answer.
// A component without it counts as paused whenever none of its slots runs. All methods are called on the component's loop.
type Pauser interface {
	// Pause makes the component finish the work that it has begun and begin no more. rested is called once on the
	// loop, perhaps before Pause returns. Until then slots are called as before. Afterwards none is called, Snapshot
	// returns the whole state, and the component emits nothing until Resume.
	Pause(rested func())
	// Resume ends a Pause. If it comes before rested was called, rested is not called.
	Resume()
	// Waiting returns the messages that a paused component took and has not begun with, in order, for its successor's
	// slots. The component is not resumed afterwards. The claims become the caller's.
	Waiting() []Waiting
}

// Lasting is optional, for a component whose state has a part that outlives the running episodes. Its Restore also takes such a part
// alone, even from a component with other environments; new episodes then begin.
type Lasting interface {
	// Lasting returns State.Lasting of the state that Snapshot would return, also where that cannot be saved. It is called on the component's
	// loop, at any time between Start and Stop.
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

// Recovering is optional, for a component that continues from its own earlier state after a fault.
type Recovering interface {
	// SaveState is called at each dataset boundary. The component later continues from the state of that moment, or from one between
	// two later slots. Any goroutine, between Start and Stop; it returns at once.
	SaveState()
}

// Cuttable is optional, for a component that may work on one message for a long time and can abandon that work.
type Cuttable interface {
	// Cut makes the component end the work on its current message as soon as its state can be saved, begin no other, and count the loss.
	// Any goroutine, between Start and Stop; it returns at once.
	Cut()
}

// Apart is optional, for a component whose state can be saved while its loop works on a message of another component that does not end.
type Apart interface {
	// SnapshotApart is Snapshot from any goroutine, after Cut. ok is false while the component itself works on a message, and once it is
	// stopped.
	SnapshotApart() (state State, ok bool, err error)
}

// Asking is optional, for a component that asks others and waits for their answers.
type Asking interface {
	// Owed calls fn with each request that has not got all its answers. Any goroutine, between Start and Stop.
	Owed(fn func(Owed))
}

// Owed is a request that waits for answers. Two with equal fields are the same request, unanswered meanwhile.
type Owed struct {
	Signal   string // that the request was emitted on
	Split    int    // or another part of the component that waits by itself
	Mark     uint64
	Policies string // policies that have not answered, with spaces between them; empty where all receivers of the signal may owe
}

// Owing is optional, for a component that gets requests and can be interrupted when an answer is overdue.
type Owing interface {
	// Overdue reports that an answer is overdue. The component ends the work that keeps it from answering and gets the request again, or
	// fails. Any goroutine.
	Overdue(err error)
}

// Holder is optional, for a component of this process that can list the blocks it keeps beyond its slots.
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

// Boundary names the moment at which the next version of a component's work replaces the previous one.
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

// EnvRunner is a component that runs the environments of a plugin and can change to another plugin's while it runs.
type EnvRunner interface {
	// EnvName returns the name of the [env] table that its environments come from.
	EnvName() string
	// PrepareEnvs makes everything the change needs: instances of the new environments, memory. It may be called from any goroutine but the
	// component's loop, blocks until ctx ends at most where another host does it, and leaves the running environments alone. Their spaces must be the
	// same, else the error names the difference.
	PrepareEnvs(ctx context.Context, c EnvChange) (PreparedEnvs, error)
}

// EnvChange says which environments a component changes to, and how.
type EnvChange struct {
	Number uint64     // of the change in the run's events; 0 where it has none
	Plugin env.Plugin // stays open until the component has changed to another one, or stopped
	At     Boundary
	// KeepState keeps the running episodes: by the memory of whole instances where both plugins have the same hash,
	// else environment by environment where both save and load. Otherwise they end as truncated and are counted.
	KeepState bool
	// Envs is how many environments of the component change, the first ones; 0 means all. Fewer is a trial whose
	// trajectories the learner gets: both versions run side by side until a change to either for all.
	Envs int
	// Task is the trajectory.Episode.Task of the new environments' episodes: one more than before where episodes end for
	// the change, the same where all of them continue, trajectory.TrialTask in a trial.
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
	// Went is called on the component's loop when all its environments have changed.
	Went func(EnvsWent)
	// RolledBack is called on the component's loop when the component has changed back because of that fault; nil
	// without Probation.
	RolledBack func(fault error)
}

// PreparedEnvs is a change that has been prepared. All methods but Close are called on the component's loop.
type PreparedEnvs interface {
	// Commit makes the change at its boundary. It returns at once. Went is called later, or at once: a paused component is at every
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

// EnvsWent is the outcome of a change of environments.
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
// arena.Arena.OnFree. Credits of a predecessor's arena go to the predecessor until TakeOver.
func (h *Host) OnFree(a *arena.Arena, block uint32, fn func(block uint32)) {
	if h.Inherited[a.Name()] != a {
		a.OnFree(block, fn)
		return
	}
	h.credits = append(h.credits, func() { a.OnFree(block, fn) })
}

// TakeOver makes the component receive the credits of the arenas that it inherited. The host calls it once the
// predecessor is paused. A block freed before gives no credit: try LoanBlock to find such blocks.
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

// OwnArenas returns the component's arenas by name: its successor inherits them. It is for the host. Any goroutine.
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
