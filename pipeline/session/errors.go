package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline/graph"

	"github.com/rlhost/rlhost/pipeline"
)

// What a command exits with where 1 does not say enough.
const (
	exitUsage  = 2
	exitConfig = 3
	exitCheck  = 4
	exitPlugin = 5
)

// errFell gives up a change because the version that it goes on from has failed.
var errFell = errors.New("the version that runs has failed meanwhile, and the previous one takes over again")

// asError turns what ended a change into what the client is told.
func (j *Commands) asError(ctx context.Context, err error) *control.Error {
	var known *control.Error
	var change *pipeline.ChangeError
	var problems graph.Problems
	var fault *env.Fault
	switch {
	case errors.As(err, &known), errors.As(context.Cause(ctx), &known):
		return known
	case errors.Is(context.Cause(ctx), errFell):
		return control.Errorf(control.CodeFell, "%v", errFell)
	case errors.As(err, &change):
		e := &control.Error{Code: change.Code, Reason: once(change.Reason), Help: change.Help}
		if change.Code == control.CodeSpaces {
			e.Exit = exitPlugin
		}
		return e
	case errors.As(err, &problems):
		return j.problemError(problems)
	case errors.Is(err, pipeline.ErrBusy):
		return control.Errorf(control.CodeBusy, "%v", err)
	case errors.Is(err, pipeline.ErrEnded), j.over():
		return control.Errorf(control.CodeEnded, "the run ended meanwhile")
	case ctx.Err() != nil:
		return control.Errorf(control.CodeFailed, "given up: the client has gone; nothing has changed")
	case errors.As(err, &fault):
		e := control.Errorf(control.CodeFailed, "%s; nothing has changed", once(err.Error()))
		e.Exit = exitPlugin
		return e
	}
	return control.Errorf(control.CodeFailed, "%s; nothing has changed", once(err.Error()))
}

// faultOf tells a fault of a component.
func faultOf(component string, fault error) string {
	return once(fmt.Sprintf("%s: %v", component, fault))
}

// once leaves out a name before a colon where what follows begins with it again: "rollout: rollout env 3: trap" says no
// more than "rollout env 3: trap".
func once(reason string) string {
	parts := strings.Split(reason, ": ")
	kept := parts[:0]
	for i, part := range parts {
		if i+1 < len(parts) && (parts[i+1] == part || strings.HasPrefix(parts[i+1], part+" ")) {
			continue
		}
		kept = append(kept, part)
	}
	return strings.Join(kept, ": ")
}

// problemError tells a single problem of a plugin as it is: the text that it was found in is nobody's file.
func (j *Commands) problemError(list graph.Problems) *control.Error {
	i := slices.IndexFunc(list, func(p graph.Problem) bool { return p.Severity == graph.Error })
	if i < 0 {
		return control.Errorf(control.CodeFailed, "%v", list)
	}
	e := &control.Error{Code: control.Code(list[i].Code), Reason: list[i].Message, Help: list[i].Help, Exit: j.o.ExitOf(list)}
	if more := len(list) - i - 1; more > 0 {
		e.Reason += fmt.Sprintf(" (and %d more)", more)
	}
	return e
}

func bad(format string, args ...any) *control.Error {
	e := control.Errorf(control.CodeBad, format, args...)
	e.Exit = exitUsage
	return e
}
