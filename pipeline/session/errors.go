package session

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Kind says whose fault an error is; its number is the exit status of a program.
type Kind int

// Kinds of errors.
const (
	Failure Kind = 1 // of the run
	Usage   Kind = 2 // the request names something that does not exist, or makes no sense
	Config  Kind = 3 // the pipeline
	Check   Kind = 4 // a check of an environment
	Plugin  Kind = 5 // a plugin that cannot be used
)

// Error is why a training cannot begin, continue or end as it should.
type Error struct {
	Kind Kind
	Err  error
}

// Error returns the error below.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error below.
func (e *Error) Unwrap() error { return e.Err }

// BuildError distinguishes a pipeline that cannot be built from a plugin that cannot be used.
func BuildError(err error) error {
	var fault *env.Fault
	if errors.As(err, &fault) {
		return &Error{Kind: Plugin, Err: err}
	}
	var problems graph.Problems
	if errors.As(err, &problems) {
		return &Error{Kind: KindOf(problems), Err: problems}
	}
	var coded *table.Error
	if errors.As(err, &coded) && coded.Code != "" {
		return &Error{Kind: Config, Err: fmt.Errorf("error[%s]: %w\n  help: %s", coded.Code, err, coded.Help)}
	}
	return err
}

// KindOf says whose fault problems are: a plugin's if no error is the file's.
func KindOf(problems graph.Problems) Kind {
	kind := Config
	for _, problem := range problems {
		switch {
		case slices.Contains(pluginCodes, problem.Code):
			kind = Plugin
		case strings.HasPrefix(problem.Code, "E"):
			return Config
		}
	}
	return kind
}

// pluginCodes are the codes of problems that are a plugin's fault, not the file's.
var pluginCodes = []string{"E013", "E014", "E015", "E016", "E017", "E018", "E019", "E050", "E051", "E097", graph.CodeDevice, "M01", "M02",
	"E061", "E062", "E063", "E064", "E065", "E066", "E067", "E068", "E069"}

// errRollingBack ends a change because the version that it starts from has failed.
var errRollingBack = errors.New("the version that runs has failed meanwhile, and the previous one takes over again")

// faultOf describes a fault of a component.
func faultOf(component string, fault error) string {
	return once(fmt.Sprintf("%s: %v", component, fault))
}

// once leaves out a name before a colon where the remainder begins with it again: "rollout: rollout env 3: trap" says
// no more than "rollout env 3: trap".
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

// problemError returns a single problem of a plugin as it is: it was found in a text that is no user's file.
func problemError(list graph.Problems) *control.Error {
	i := slices.IndexFunc(list, func(p graph.Problem) bool { return p.Severity == graph.Error })
	if i < 0 {
		return control.Errorf(control.CodeFailed, "%v", list)
	}
	e := &control.Error{Code: control.Code(list[i].Code), Reason: list[i].Message, Help: list[i].Help, Exit: int(KindOf(list))}
	if more := len(list) - i - 1; more > 0 {
		e.Reason += fmt.Sprintf(" (and %d more)", more)
	}
	return e
}

func bad(format string, args ...any) *control.Error {
	e := control.Errorf(control.CodeBad, format, args...)
	e.Exit = int(Usage)
	return e
}

// fileError is the client's error for a file with mistakes: all of them.
func fileError(file string, list graph.Problems) *control.Error {
	n := 0
	for _, p := range list {
		if p.Severity == graph.Error {
			n++
		}
	}
	e := control.Errorf(control.CodeBad, "%s has %s; nothing has changed", filepath.Base(file), text.Count(n, "mistake"))
	e.Problems, e.Exit = list.String(), int(KindOf(list))
	return e
}

func forbidden(section, name string) error {
	e := control.Errorf(control.CodeForbidden, `%s %q is not to be swapped: the pipeline has swap = "never" in [%s.%s]`, section, name, section, name)
	e.Help = "stop the run, change that, and go on with it: rlhost train --resume"
	return e
}
