package component

import (
	"log/slog"
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

// Host is the host, as one component sees it. Except for Log and metrics it belongs to the goroutine that runs the
// component's slots.
type Host interface {
	// Identity describes this instance and its run.
	Identity() Identity
	// Signal returns a signal of the manifest, Slot binds a slot of the manifest to the function that gets its
	// messages. Both are called in Start, and panic if the manifest has no such port.
	Signal(name string) Signal
	Slot(name string, fn func(*Message))
	// Handle binds a request of the manifest to the function that answers it, between two messages: args is a JSON object that fits the
	// request's description, the reply is JSON. It is called in Start, and panics if the manifest has no such request; see Answer. An error
	// or a panic is the answer, and the component continues.
	Handle(name string, fn func(args []byte) (reply []byte, err error))
	// Request asks a question of the manifest's Asks: the key asks of the component's table says which request of which component answers.
	// args is a JSON object. It returns at once, and answer is called once, between two messages, with JSON or an *Unanswered; it wraps
	// ErrLate after within, which is half a minute where it is 0, and ErrLost where the other component has ended. It panics if the manifest asks no such
	// question; see Ask.
	Request(ask string, args []byte, within time.Duration, answer func(reply []byte, err error))
	// After calls fn once, d from now; Every calls it each d, and skips calls that it could not make in time.
	After(d time.Duration, fn func()) Timer
	Every(d time.Duration, fn func()) Timer
	// Arena makes an arena of blocks with these columns, for Start to call.
	Arena(name string, blocks int, columns ...Tensor) (Arena, error)

	// Metrics, by name, such as shaper/reward. Any goroutine.
	Counter(name string) Counter
	Gauge(name string) Gauge
	Histogram(name string) Histogram
	// Log is the component's log. Any goroutine.
	Log() *slog.Logger
	// TryLog is Log where the component may log, and writes nothing elsewhere: a module without the grant "log" runs. Any goroutine.
	TryLog() *slog.Logger
	// Fail ends the run with an error of this component. The slot must still return.
	Fail(err error)
	// Stop asks the run to end at the next dataset boundary. Only the first reason counts.
	Stop(reason StopReason)
}

// Identity is constant.
type Identity struct {
	Name         string // component[i] where there are several instances, else component
	Index, Count int    // which of how many instances
	Seed         uint64 // of the run
	Synchronous  bool   // the run must be reproducible bit by bit
}

// StopReason says why a component asks the run to end.
type StopReason string

// Reasons.
const (
	StopReturn   StopReason = "return"
	StopEnvSteps StopReason = "env_steps"
	StopWallTime StopReason = "wall_time"
	StopOwn      StopReason = "component" // a reason of the component's own
)

// Timer is a future call. Stop prevents it, and reports whether it could still have happened.
type Timer interface{ Stop() bool }

// Counter only goes up.
type Counter interface{ Add(n uint64) }

// Gauge has a value.
type Gauge interface{ Set(v float64) }

// Histogram counts values.
type Histogram interface{ Observe(v float64) }

// Signal is a named output.
type Signal interface {
	// Emit sends a message to the connected slots. It never waits and never runs a slot. The message's Block, if it has one,
	// may be released afterwards. An error is a fault of the program: a Block that was released, or whose slot has returned.
	Emit(m Message) (Outcome, error)
}

// Outcome says what happened to an emitted message.
type Outcome uint8

// Outcomes.
const (
	// Sent: all receivers get it.
	Sent Outcome = iota
	// Parked: they get it when they have room, and this component gets no message until then.
	Parked
	// Dropped: a receiver does not get it, as its wire's on_full says, or there is none.
	Dropped
)

// Message is a message on a wire.
type Message struct {
	Kind          uint16 // meaning of Inline, defined by the payload
	T             uint32 // row of the block
	Split         uint32 // of the component that emitted it
	PolicyVersion uint64 // of the policy that it is about
	Inline        [2]uint64
	Sender        Sender // the component that gets the answer; of a message passed on, its sender
	Block         Block  // nil: it names none. A received Block is valid until its slot returns.
}

// Sender identifies the component that emitted a message; 0 is this one.
type Sender uint32

// Block is a committed block of shared memory.
type Block interface {
	// Column returns a column to read, such as reward or obs, obs/1 for the second of its kind.
	Column(name string) (Column, error)
	// Writable returns a column to write in place. The error names the key of the wire that has to grant it. Only the block
	// of a message can be written, in the slot that it came to.
	Writable(name string) (Column, error)
	// Lease keeps the block beyond its slot.
	Lease() (Lease, error)
}

// Lease is a claim on a block. It is a Block for messages until Release.
type Lease interface {
	Block
	Release() error
}

// Arena makes blocks.
type Arena interface {
	// Loan lends a free block to be written. ok is false if none is free: receivers have claims on all of them.
	Loan() (loan Loan, ok bool)
}

// Loan is a block that only its writer sees. It ends in Commit or Abort.
type Loan interface {
	// Column returns a column to write; its contents are undefined.
	Column(name string) (Column, error)
	// Commit makes the block readable. It leaves a claim, to be released once the block has been emitted.
	Commit() (Lease, error)
	// Abort gives the block back unwritten.
	Abort() error
}

// Tensor describes a column of an arena that the component makes.
type Tensor struct {
	Name  string
	DType hostabi.DType
	Shape []int // empty: one element
}
