package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"log/slog"

	"github.com/rlhost/rlhost/cmd/rlhost/results"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/runner"
)

// Exit codes. They are stable.
const (
	exitOK          = 0
	exitFailed      = 1   // the run failed
	exitUsage       = 2   // the command line is not understood
	exitConfig      = 3   // the pipeline file is invalid
	exitCheck       = 4   // a check did not pass
	exitPlugin      = 5   // a plugin cannot be used
	exitRequire     = 6   // --require was not reached
	exitNothing     = 7   // the run ended with nothing learned
	exitInterrupted = 130 // interrupted, after a clean checkpoint
)

// program is shared by all commands.
type program struct {
	out, err io.Writer
	cli      *commandLine
	screen   *runner.Screen // that out is, or nil
	record   slog.Handler   // that also keeps the log, or nil
	shown    int            // lines of each module that may not log
	quiet    bool           // only warnings and errors of the log are shown, and a run without an end is meant
}

// printedError is an error that was printed already.
type printedError struct{ error }

func (e printedError) Unwrap() error { return e.error }

// fail makes an error that ends the program with a code.
func fail(code int, err error) error { return &session.Error{Kind: session.Kind(code), Err: err} }

// printed is fail for an error that was printed already.
func printed(code int, err error) error { return fail(code, printedError{err}) }

// errInterrupted is why a command that was interrupted ends.
var errInterrupted = errors.New("interrupted")

// exitCode prints an error that was not printed yet, and returns the exit status.
func (p *program) exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if told := (printedError{}); !errors.As(err, &told) {
		p.complain(err)
	}
	var e *session.Error
	if errors.As(err, &e) {
		return int(e.Kind)
	}
	return exitFailed
}

// compilerCommand is the first argument by which this program calls itself to compile a module; see wasm.ServeCompiler.
const compilerCommand = "compile-module"

// withParts calls fn with the table of parts that pipelines may name, and closes the engines afterwards.
func (p *program) withParts(fn func(*graph.Parts, *builtin.Engines) error) error {
	parts, e := builtin.New(builtin.Options{Log: p.logger(), Compiler: compilerCommand, ShownLines: p.shown})
	return p.also(fn(parts, e), e.Close())
}

// forResults is the program for the commands of package results.
func (p *program) forResults() *results.Program {
	return &results.Program{Out: p.out, Notice: p.notice, Printable: printable, Log: p.logger(), WithParts: func(fn func(*graph.Parts) error) error {
		return p.withParts(func(parts *graph.Parts, _ *builtin.Engines) error { return p.printProblems(pluginError(fn(parts))) })
	}}
}

// runsFlag is the folder of runs of commands that need one.
type runsFlag = results.Folder

// also adds an error that came up on the way out to the reported one.
func (p *program) also(err, more error) error {
	if err == nil || more == nil {
		return cmp.Or(err, more)
	}
	p.complain(more)
	return err
}

// encode prints one line of JSON.
func (p *program) encode(v any) error { return json.NewEncoder(p.out).Encode(v) }

// printProblems prints the problems of a pipeline that cannot be built, if they are the error.
func (p *program) printProblems(err error) error {
	var problems graph.Problems
	if !errors.As(err, &problems) || errors.As(err, new(printedError)) {
		return err
	}
	p.problems(problems)
	return printed(int(session.KindOf(problems)), problems)
}
