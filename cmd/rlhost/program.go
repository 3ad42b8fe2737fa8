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

// program is what every command may use.
type program struct {
	out, err io.Writer
	cli      *commandLine
	screen   *runner.Screen // that out is, or nil
	record   slog.Handler   // that keeps what is logged as well, or nil
	shown    int            // lines of each module that may not log
}

// toldError is an error that the user has been told.
type toldError struct{ error }

func (e toldError) Unwrap() error { return e.error }

// fail makes an error that ends the program with a code.
func fail(code int, err error) error { return &session.Error{Kind: session.Kind(code), Err: err} }

// said is fail for an error that the user has been told.
func said(code int, err error) error { return fail(code, toldError{err}) }

// errInterrupted is why a command that was interrupted ends.
var errInterrupted = errors.New("interrupted")

// exitCode says what went wrong, as far as that has not been said, and returns the code to exit with.
func (p *program) exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if told := (toldError{}); !errors.As(err, &told) {
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

// withParts calls fn with the table of what pipelines may name, and closes the engines afterwards.
func (p *program) withParts(fn func(*graph.Parts, *builtin.Engines) error) error {
	parts, e := builtin.New(builtin.Options{Log: p.logger(), Compiler: compilerCommand, ShownLines: p.shown})
	return p.also(fn(parts, e), e.Close())
}

// forResults is the program for the commands of package results.
func (p *program) forResults() *results.Program {
	return &results.Program{Out: p.out, Notice: p.notice, Printable: printable, Log: p.logger(), WithParts: func(fn func(*graph.Parts) error) error {
		return p.withParts(func(parts *graph.Parts, _ *builtin.Engines) error { return p.told(pluginError(fn(parts))) })
	}}
}

// runsFlag is the folder of runs of commands that need one.
type runsFlag = results.Folder

// also adds an error that came up on the way out to the one that is to be reported.
func (p *program) also(err, more error) error {
	if err == nil || more == nil {
		return cmp.Or(err, more)
	}
	p.complain(more)
	return err
}

// encode prints one line of JSON.
func (p *program) encode(v any) error { return json.NewEncoder(p.out).Encode(v) }

// told prints the problems of a pipeline that cannot be built, if those are the error.
func (p *program) told(err error) error {
	var problems graph.Problems
	if !errors.As(err, &problems) || errors.As(err, new(toldError)) {
		return err
	}
	p.problems(problems)
	return said(int(session.KindOf(problems)), problems)
}
