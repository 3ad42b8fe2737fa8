package session

import (
	"context"
	"errors"
	"sync"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// job is shared by all commands: the run, its past changes, and the change under way.
type job struct {
	*live
	history *history
	*underWay
	committing sync.Mutex // held while a change is made and written down
}

// asError turns the error that ended a change into the client's.
func (s *job) asError(ctx context.Context, err error) *control.Error {
	var known *control.Error
	var change *pipeline.ChangeError
	var problems graph.Problems
	var fault *env.Fault
	switch {
	case errors.As(err, &known), errors.As(context.Cause(ctx), &known):
		return known
	case errors.Is(context.Cause(ctx), errRollingBack):
		return control.Errorf(control.CodeRolledBack, "%v", errRollingBack)
	case errors.As(err, &change):
		e := &control.Error{Code: change.Code, Reason: once(change.Reason), Help: change.Help}
		if change.Code == control.CodeSpaces {
			e.Exit = int(Plugin)
		}
		return e
	case errors.As(err, &problems):
		return problemError(problems)
	case errors.Is(err, pipeline.ErrBusy):
		return control.Errorf(control.CodeBusy, "%v", err)
	case errors.Is(err, pipeline.ErrEnded), s.over():
		return control.Errorf(control.CodeEnded, "the run ended meanwhile")
	case ctx.Err() != nil:
		return control.Errorf(control.CodeFailed, "given up: the client has gone; nothing has changed")
	case errors.As(err, &fault):
		e := control.Errorf(control.CodeFailed, "%s; nothing has changed", once(err.Error()))
		e.Exit = int(Plugin)
		return e
	}
	return control.Errorf(control.CodeFailed, "%s; nothing has changed", once(err.Error()))
}
