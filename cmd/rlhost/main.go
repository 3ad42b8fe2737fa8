package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"

	"github.com/alecthomas/kong"

	"github.com/rlhost/rlhost/cmd/rlhost/results"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/runner"
	"github.com/rlhost/rlhost/plugins/wasm"
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

// commandLine is the whole command line; help and usage errors come from it.
type commandLine struct {
	Folder  string           `short:"C" name:"dir" type:"existingdir" placeholder:"DIR" help:"Work in this folder."`
	Color   string           `enum:"auto,always,never" default:"auto" help:"Colour on the terminal: auto, always or never."`
	Log     string           `enum:"text,json" default:"text" help:"Form of messages on standard error: text or json."`
	Release kong.VersionFlag `name:"version" help:"Print the version."`

	Train trainCommand `cmd:"" help:"Train the policy of a pipeline."`
	Eval  results.Eval `cmd:"" help:"Evaluate a trained policy."`
	live
	History  results.History `cmd:"" help:"Tell what was changed in a run: who, when, from what to what, and what came of it."`
	Runs     results.Runs    `cmd:"" help:"List, show, compare and remove runs."`
	Plot     results.Plot    `cmd:"" help:"Draw learning curves."`
	Export   results.Export  `cmd:"" help:"Write a trained policy for NumPy, ONNX or safetensors."`
	Validate validateCommand `cmd:"" help:"Check pipeline files without running them."`
	Show     showCommand     `cmd:"" help:"Print a pipeline, as written or in full."`
	Graph    graphCommand    `cmd:"" help:"Show how a pipeline is wired."`
	Check    checkCommand    `cmd:"" help:"Check an environment, or a component: what it promises."`
	Bench    benchCommand    `cmd:"" help:"Measure how fast an environment steps."`
	Plugin   pluginCommand   `cmd:"" help:"Native plugins: programs that run components or environments."`
	Store    storeCommand    `cmd:"" help:"Serve a store of named objects in shared memory."`
	Inspect  inspectCommand  `cmd:"" help:"Read a module without running it."`
	Explain  explainCommand  `cmd:"" help:"Explain the code of an error, a warning or a check."`
	Version  versionCommand  `cmd:"" help:"Print the version."`
}

// Help is what rlhost --help says first.
func (c *commandLine) Help() string {
	return `To begin with:

  rlhost train                     train ./pipeline.toml
  rlhost eval                      evaluate the newest run
  rlhost check my.wasm             is my environment right?
  rlhost status                    how is the run that is going on?
  rlhost swap rollout new.wasm     replace its environment meanwhile

Exit codes: 0 ok, also after rlhost stop and SIGTERM, 1 the run failed, 2 usage, 3 the pipeline file is invalid, 4 a check failed, 5 a plugin cannot be
used, 6 --require was not reached, 7 the run ended with nothing learned, 130 interrupted.`
}

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

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// compilerCommand is the first argument by which this program calls itself to compile a module; see wasm.ServeCompiler.
const compilerCommand = "compile-module"

// run is the program without the process around it.
func run(args []string, out, errOut io.Writer) int {
	if runtime.GOOS != "linux" {
		fmt.Fprintf(errOut, "rlhost: this is %s; rlhost runs on Linux alone, because it shares sealed memory files between host and plugins\n", runtime.GOOS)
		return exitFailed
	}
	if len(args) > 0 && args[0] == compilerCommand {
		return wasm.ServeCompiler(args[1:])
	}
	keepFileSizeErrors()
	cli := &commandLine{}
	exited := -1
	parser, err := kong.New(cli, kong.Name("rlhost"), kong.Writers(out, errOut), kong.Vars{"version": versionLine()},
		kong.Description("Trains reinforcement-learning policies on environments that are WebAssembly modules."),
		kong.Exit(func(code int) { exited = code }), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		fmt.Fprintf(errOut, "rlhost: %v\n", err)
		return exitFailed
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		usage(err, errOut)
		return exitUsage
	}
	if cli.Folder != "" {
		if err := os.Chdir(cli.Folder); err != nil {
			fmt.Fprintf(errOut, "rlhost: %v\n", err)
			return exitUsage
		}
	}
	p := &program{out: out, err: errOut, cli: cli}
	return p.exitCode(command.Run(p, p.forResults()))
}

// usage says what is wrong with a command line, and where to read on.
func usage(err error, errOut io.Writer) {
	command := ""
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context.Selected() != nil {
		command = parse.Context.Selected().Name + " "
	}
	fmt.Fprintf(errOut, "rlhost: %s\n  help: rlhost %s--help\n", printable(err.Error()), command)
}

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
