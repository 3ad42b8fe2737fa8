package bus

import (
	"fmt"
	"slices"
	"strings"
)

// Mode says which of a signal's messages a connection gets.
type Mode uint8

// Modes of a connection. A signal may have connections of several modes at once.
const (
	// All: every message.
	All Mode = iota
	// Queue: each message goes to exactly one of the signal's queue connections, in turn, preferring one with
	// room. When none has room, the overflow policy of the next connection in turn decides.
	Queue
	// Latest: a mailbox of one. A newer message replaces an undelivered one, which counts as coalesced. Depth
	// is taken as 1 and Overflow as Coalesce.
	Latest
	// Reply: the messages whose Sender is the connection's Peer, the component that asked.
	Reply
)

var modes = [...]string{All: "all", Queue: "queue", Latest: "latest", Reply: "reply"}

// String returns the mode's name as ParseMode takes it.
func (m Mode) String() string { return nameOf(modes[:], int(m), "mode") }

// ParseMode returns the mode of that name: all, queue, latest or reply.
func ParseMode(name string) (Mode, error) {
	i, err := parse(modes[:], name, "mode")
	return Mode(i), err
}

// Overflow says what happens to a message when a connection is full.
type Overflow uint8

// Overflow policies. A message that is not delivered is counted and its block released.
const (
	// Block: the message waits, and the sending component's data lane is paused. Nothing is lost.
	Block Overflow = iota
	// DropNewest: the message is dropped.
	DropNewest
	// DropOldest: the oldest undelivered message is dropped to make room.
	DropOldest
	// Coalesce: the message replaces the newest undelivered one and is delivered in its place.
	Coalesce
	// Fail: the message is dropped and Emit returns ErrFull.
	Fail
)

var overflows = [...]string{
	Block: "block", DropNewest: "drop_newest", DropOldest: "drop_oldest", Coalesce: "coalesce", Fail: "fail",
}

// String returns the policy's name as ParseOverflow takes it.
func (o Overflow) String() string { return nameOf(overflows[:], int(o), "overflow") }

// ParseOverflow returns the policy of that name: block, drop_newest, drop_oldest, coalesce or fail.
func ParseOverflow(name string) (Overflow, error) {
	i, err := parse(overflows[:], name, "overflow policy")
	return Overflow(i), err
}

func nameOf(names []string, i int, kind string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", kind, i)
}

func parse(names []string, name, kind string) (int, error) {
	if i := slices.Index(names, name); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("unknown %s %q: want one of %s", kind, name, strings.Join(names, ", "))
}
