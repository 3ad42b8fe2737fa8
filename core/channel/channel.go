package channel

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Bounds on one item.
const (
	MaxKey   = 1024 // bytes of a key
	ItemCost = 128  // bytes that an item counts beside its data and its key
)

// Errors of channels, which wrap one of these.
var (
	ErrFull     = errors.New("the channel is full")
	ErrEmpty    = errors.New("the channel has no such item")
	ErrClosed   = errors.New("the channel is closed")
	ErrTooLarge = errors.New("the item is larger than the channel")
	ErrInvalid  = errors.New("not accepted")
	ErrCanceled = errors.New("the call was canceled")
)

// Item is what a channel holds. A channel does not look at its data, and does not change it.
type Item struct {
	Weight float64 // 0 or more
	Data   []byte
	Region uint64 // for servers: the piece of shared memory that Data lies in; 0 = none
}

// Batch says when a batch is complete.
type Batch struct {
	Weight float64       // the sum of its items' weights
	Most   int           // most items; 0 = any number
	Wait   time.Duration // then it is complete with what there is; 0 = no limit
}

// Stat tells of a channel.
type Stat struct {
	Items int   `json:"items"` // in the channel now
	Bytes int64 `json:"bytes"` // that they count, of Limits.Bytes
	Keys  int   `json:"keys"`  // with items or callers

	MaxItems int   `json:"max_items"` // of a key; 0 = any number
	MaxBytes int64 `json:"max_bytes"`
	Closed   bool  `json:"closed"`

	Puts        uint64 `json:"puts"`     // items accepted so far
	Gets        uint64 `json:"gets"`     // items given out so far
	Returned    uint64 `json:"returned"` // items put back by a caller that did not want them any more
	Lost        uint64 `json:"lost"`     // items that clients held when they died
	WaitingPuts int    `json:"waiting_puts"`
	WaitingGets int    `json:"waiting_gets"`

	Key KeyStat `json:"key"`
}

// KeyStat tells of one key.
type KeyStat struct {
	Key    string  `json:"key"`
	Items  int     `json:"items"`
	Weight float64 `json:"weight"` // of all its items
}

// Channel is a queue of items with keys and weights. All methods may be called from any goroutine.
type Channel interface {
	// Put adds an item, once there is room for it; it returns the cause of ctx where there is none before. ErrTooLarge: there never is.
	Put(ctx context.Context, key string, i Item) error
	// TryPut adds an item if there is room now, else it returns ErrFull.
	TryPut(ctx context.Context, key string, i Item) error
	// Get takes the oldest item of a key, once there is one; it returns the cause of ctx where there is none before.
	Get(ctx context.Context, key string) (Item, error)
	// TryGet takes the oldest item of a key, if there is one that nobody waits for, else it returns ErrEmpty.
	TryGet(ctx context.Context, key string) (Item, error)
	// GetBatch takes the oldest items of a key as a batch; see the package. ErrEmpty: its time was over before there was an item. Where ctx
	// ends before, they stay.
	GetBatch(ctx context.Context, key string, b Batch) ([]Item, error)
	// Peek returns the oldest item of a key, which stays, or ErrEmpty.
	Peek(ctx context.Context, key string) (Item, error)
	// PutBack puts items that were taken before the oldest ones of a key, in their order. There is always room for them.
	PutBack(ctx context.Context, key string, items ...Item) error
	// Stat tells of the channel, and of one key.
	Stat(ctx context.Context, key string) (Stat, error)
	// Stop closes the channel for everybody: puts fail with ErrClosed, and so do gets once nothing is left of their key.
	Stop(ctx context.Context) error
}

func checkKey(key string) error {
	switch {
	case len(key) > MaxKey:
		return fmt.Errorf("%w: a key of %d bytes, at most %d", ErrInvalid, len(key), MaxKey)
	case key == "":
		return fmt.Errorf("%w: an empty key", ErrInvalid)
	}
	return nil
}

func checkWeight(what string, w float64) error {
	if math.IsNaN(w) || math.IsInf(w, 0) || w < 0 {
		return fmt.Errorf("%w: %s of %v: want a number of 0 or more", ErrInvalid, what, w)
	}
	return nil
}
