package table

import (
	"errors"
	"fmt"
)

// Codes of what Decode finds; rlhost explain has a page for each.
const (
	CodeUnknown = "E002" // no such key
	CodeType    = "E003" // a value of another type
	CodeRange   = "E005" // a value out of range
)

// Error is a fault with its code, its place, the reason and the remedy.
type Error struct {
	Key    string // a key as in the file, such as stop.window; empty if none is at fault
	Place  string // else a file, such as lander.wasm; empty if Reason says it all
	Reason string // said of the place, such as "is 0, want 1 or more"; a whole sentence where there is no place
	Help   string // what to write or do instead; may be empty
	Code   string // such as E020; of a key empty for the general ones (E004 missing, E005 out of range)
	Err    error  // the wrapped error, or nil

	// At is the value with the key, where Decode found the error, and Table what Key has before the last part: of keys that
	// may have dots in them.
	At    Value
	Table string
}

// Error returns all of it in one line; without key and place the reason alone.
func (e *Error) Error() string {
	switch {
	case e.Place != "":
		return fmt.Sprintf("%s %s: %s; %s", e.Code, e.Place, e.Reason, e.Help)
	case e.Key != "" && e.Help != "":
		return e.Sentence() + ": " + e.Help
	}
	return e.Sentence()
}

// Sentence returns place and reason, without code and help.
func (e *Error) Sentence() string {
	switch {
	case e.Key != "":
		return fmt.Sprintf("`%s` %s", e.Key, e.Reason)
	case e.Place != "":
		return e.Place + " " + e.Reason
	}
	return e.Reason
}

// Unwrap returns the error below, or nil.
func (e *Error) Unwrap() error { return e.Err }

// All returns the errors that err joins, in their order; an error that neither is nor wraps an *Error becomes one without a key.
func All(err error) []*Error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var list []*Error
		for _, one := range joined.Unwrap() {
			list = append(list, All(one)...)
		}
		return list
	}
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return []*Error{e}
	}
	return []*Error{{Reason: err.Error(), Err: err}}
}
