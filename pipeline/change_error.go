package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/loops"
)

// ErrEnded is returned by Run if the pipeline has run before, and by everything that needs a running pipeline.
var ErrEnded = loops.ErrEnded

// ErrBusy is wrapped by Prepare while another change is being prepared or committed; the message says which.
var ErrBusy = errors.New("another change is under way")

// ErrNothing is returned by Prepare when the next graph is the running one.
var ErrNothing = errors.New("nothing is to be changed")

// ChangeError says why a change cannot be made during the run. Nothing has changed.
type ChangeError struct {
	Code   control.Code
	Reason string
	Help   string
	Err    error // the wrapped error, or nil
}

// Error returns the reason.
func (e *ChangeError) Error() string { return e.Reason }

// Unwrap returns the error below, or nil.
func (e *ChangeError) Unwrap() error { return e.Err }

func refuse(code control.Code, help, format string, args ...any) *ChangeError {
	return &ChangeError{Code: code, Reason: fmt.Sprintf(format, args...), Help: help}
}

// envError says why environments cannot replace others.
func envError(name string, err error) error {
	var spaces *component.SpacesError
	if errors.As(err, &spaces) {
		return spacesError(spaces)
	}
	var refused *ChangeError
	if errors.As(err, &refused) {
		return &ChangeError{Code: refused.Code, Reason: fmt.Sprintf("%s: %v", name, err), Help: refused.Help, Err: err}
	}
	return &ChangeError{Code: control.CodeFailed, Reason: fmt.Sprintf("%s: %v", name, err), Err: err}
}

// spacesError shows both specifications side by side.
func spacesError(e *component.SpacesError) error {
	return &ChangeError{Code: control.CodeSpaces, Err: e, Reason: e.Error() + "\n" + strings.TrimSuffix(e.Table(), "\n"),
		Help: cmp.Or(e.Help, "a policy is made for its spaces, and blocks for the discount and the infos that they hold: describe the same ones, or start a new run")}
}
