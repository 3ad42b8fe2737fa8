package registry

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds on one name.
const (
	MaxName  = 512      // bytes of a whole name
	MaxParts = 32       // parts of a name
	MaxValue = 64 << 10 // bytes of a value
)

// Errors of names, which wrap one of these.
var (
	ErrExists  = errors.New("the name exists")
	ErrUnknown = errors.New("there is no such name")
	ErrLost    = errors.New("the lease is over")
	ErrInvalid = errors.New("not accepted")
	ErrFull    = errors.New("the registry is full")
)

// Lease stands for one Add. It is never 0, and no two are the same.
type Lease uint64

// Options of a name that is added.
type Options struct {
	// TTL is how long the name lasts without being renewed; 0 is until it is deleted. Negative ones are ErrInvalid. A back end may round it
	// up to whole seconds.
	TTL time.Duration
	// Replace takes the place of a name that exists, whose lease is over then.
	Replace bool
}

// Entry is a name with its value.
type Entry struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Event is a change of one name, or Listed.
type Event struct {
	Kind EventKind `json:"kind"`
	Entry
}

// EventKind says what has happened to a name.
type EventKind uint8

// Kinds of events.
const (
	Set     EventKind = 1 + iota // it has this value now
	Deleted                      // it is gone: deleted or at the end of its TTL; its value is empty
	Listed                       // every name that there was at the beginning has been told; once a watch, without a name
)

// Names is a tree of names. All methods may be called from any goroutine.
type Names interface {
	// Add gives a name a value. A name that exists is ErrExists without Options.Replace.
	Add(ctx context.Context, name, value string, o Options) (Lease, error)
	// AddChild adds a name below another, with a last part that no other has, and returns it.
	AddChild(ctx context.Context, name, value string, o Options) (child string, l Lease, err error)
	// Renew lets a name last another ttl from now; 0 until it is deleted. ErrLost where the lease is not the name's any more.
	Renew(ctx context.Context, name string, l Lease, ttl time.Duration) error
	// Get returns a name's value, or ErrUnknown.
	Get(ctx context.Context, name string) (string, error)
	// List returns a name, if it has a value, and all below it, sorted. "" is the root.
	List(ctx context.Context, root string) ([]Entry, error)
	// Delete deletes one name, or returns ErrUnknown. With a lease other than 0 it is deleted only if it has that, else ErrLost.
	Delete(ctx context.Context, name string, l Lease) error
	// Clear deletes a name and all below it, and returns how many there were.
	Clear(ctx context.Context, root string) (int, error)
	// Watch tells what List returns, then Listed, then changes until ctx ends or the loop is left. Of several changes of one name between
	// two events it may tell the last one alone. An error is the last thing it tells.
	Watch(ctx context.Context, root string) iter.Seq2[Event, error]
}

// Wait returns the value of a name as soon as it has one, or the cause of ctx.
func Wait(ctx context.Context, n Names, name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	for e, err := range n.Watch(ctx, name) {
		if err != nil {
			return "", err
		}
		if e.Kind == Set && e.Name == name {
			return e.Value, nil
		}
	}
	return "", context.Cause(ctx)
}

// WaitGone returns nil as soon as none of some names has a value, or the cause of ctx.
func WaitGone(ctx context.Context, n Names, names ...string) error {
	for _, name := range names {
		if err := waitGone(ctx, n, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func waitGone(ctx context.Context, n Names, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	there := false
	for e, err := range n.Watch(ctx, name) {
		if err != nil {
			return err
		}
		if e.Name == name {
			there = e.Kind == Set
		}
		if !there && (e.Kind == Listed || e.Name == name) {
			return nil
		}
	}
	return context.Cause(ctx)
}

// CheckName returns an ErrInvalid that says why a name is none; every back end accepts the same names.
func CheckName(name string) error {
	if name == "" {
		return fmt.Errorf("%w: a name without a letter", ErrInvalid)
	}
	return CheckRoot(name)
}

// CheckRoot is CheckName for a name or "".
func CheckRoot(root string) error {
	if root == "" {
		return nil
	}
	if len(root) > MaxName {
		return fmt.Errorf("%w: a name of %d bytes, at most %d", ErrInvalid, len(root), MaxName)
	}
	if !utf8.ValidString(root) {
		return fmt.Errorf("%w: the name %q is not UTF-8", ErrInvalid, root)
	}
	parts := strings.Split(root, "/")
	if len(parts) > MaxParts {
		return fmt.Errorf("%w: a name of %d parts, at most %d", ErrInvalid, len(parts), MaxParts)
	}
	for _, part := range parts {
		if part == "" {
			return fmt.Errorf("%w: the name %q has an empty part: one \"/\" stands between two parts", ErrInvalid, root)
		}
		if strings.ContainsFunc(part, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return fmt.Errorf("%w: the name %q has a space or a control character", ErrInvalid, root)
		}
	}
	return nil
}

// CheckEntry returns an ErrInvalid that says why Names.Add would not accept its arguments.
func CheckEntry(name, value string, o Options) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if len(value) > MaxValue {
		return fmt.Errorf("%w: a value of %d bytes for %q, at most %d", ErrInvalid, len(value), name, MaxValue)
	}
	if !utf8.ValidString(value) {
		return fmt.Errorf("%w: the value of %q is not UTF-8", ErrInvalid, name)
	}
	return CheckTTL(o.TTL)
}

// CheckTTL returns an ErrInvalid for a time that no name can last.
func CheckTTL(ttl time.Duration) error {
	if ttl < 0 {
		return fmt.Errorf("%w: a TTL of %v", ErrInvalid, ttl)
	}
	return nil
}
