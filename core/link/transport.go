package link

import (
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

// Transport carries messages between the two ends of a link, in order, each once and whole; each end has one. It does not
// know what they mean, and carries handles, not blocks: both ends must see the same arenas. One goroutine at a time puts and
// one gets; all other methods but Close may be called from any goroutine meanwhile. Package transports has the table of them.
type Transport interface {
	// Put sends as many of the messages as there is room for, and returns how many. It does not wait.
	Put(ms []hostabi.Message) int
	// WaitRoom returns true when there is room for a message, or when the other end has shut or the time is up. It is for
	// the goroutine that puts.
	WaitRoom(d time.Duration) bool
	// Get receives as many messages as have come and dst has room for, and returns how many. It does not wait.
	Get(dst []hostabi.Message) int
	// Len returns how many messages have come.
	Len() int
	// Wait returns true when a message has come, or after Nudge, when the other end has shut, or when the time is up. It
	// is for the goroutine that gets.
	Wait(d time.Duration) bool
	// Nudge makes the current Wait, or the next one, return.
	Nudge()
	// IsShut reports that the other end will put nothing more, or that nothing can come from there.
	IsShut() bool
	// Close releases the end. It must not be used afterwards.
	Close() error
}
