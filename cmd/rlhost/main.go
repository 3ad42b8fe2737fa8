package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/alecthomas/kong"
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
	exitInterrupted = 130 // interrupted, after a clean checkpoint
)

// commandLine is the whole command line; help and usage errors come from it.
type commandLine struct {
	Folder string `short:"C" name:"dir" type:"existingdir" placeholder:"DIR" help:"Work in this folder."`
	Color  string `enum:"auto,always,never" default:"auto" help:"Colour: auto, always or never."`
	Log    string `enum:"text,json" default:"text" help:"Form of messages on standard error: text or json."`

	Train    trainCommand    `cmd:"" help:"Train the policies of a pipeline."`
	Eval     evalCommand     `cmd:"" help:"Evaluate a trained policy."`
	Validate validateCommand `cmd:"" help:"Check pipeline files without running them."`
	Show     showCommand     `cmd:"" help:"Print a pipeline."`
	Graph    graphCommand    `cmd:"" help:"Draw a pipeline."`
	Check    checkCommand    `cmd:"" help:"Check an environment: spaces, seeds, flags, values."`
	Bench    benchCommand    `cmd:"" help:"Measure how fast an environment steps."`
	Inspect  inspectCommand  `cmd:"" help:"Read a module without running it."`
	Explain  explainCommand  `cmd:"" help:"Explain an error code."`
	Version  versionCommand  `cmd:"" help:"Print the version."`
}

// program is what every command may use.
type program struct {
	out, err io.Writer
	cli      *commandLine
}

// exitError ends the program with a code. A nil error says that everything has been said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func fail(code int, err error) error { return &exitError{code: code, err: err} }

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the program without the process around it.
func run(args []string, out, errOut io.Writer) int {
	if runtime.GOOS != "linux" {
		fmt.Fprintf(errOut, "rlhost: this is %s; rlhost runs on Linux alone, because it shares sealed memory files between host and plugins\n", runtime.GOOS)
		return exitFailed
	}
	cli := &commandLine{}
	exited := -1
	parser, err := kong.New(cli, kong.Name("rlhost"), kong.UsageOnError(), kong.Writers(out, errOut),
		kong.Description("Trains reinforcement-learning policies on environments that are WebAssembly modules."),
		kong.Exit(func(code int) { exited = code }), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		fmt.Fprintf(errOut, "rlhost: %v\n", err)
		return exitFailed
	}
	command, err := parser.Parse(args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		fmt.Fprintf(errOut, "rlhost: %v\ntry: rlhost --help\n", err)
		return exitUsage
	}
	if cli.Folder != "" {
		if err := os.Chdir(cli.Folder); err != nil {
			fmt.Fprintf(errOut, "rlhost: %v\n", err)
			return exitUsage
		}
	}
	return exitCode(command.Run(&program{out: out, err: errOut, cli: cli}), errOut)
}

// interruptible returns a context that the first Ctrl-C ends; the second ends the process.
func (p *program) interruptible() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for n := 0; ; n++ {
			if _, ok := <-signals; !ok {
				return
			}
			if n > 0 {
				os.Exit(exitInterrupted)
			}
			fmt.Fprintln(p.err, "rlhost: interrupted; saving at the next dataset boundary (again to stop at once)")
			cancel()
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}

// exitCode says what went wrong, once, and returns the code to exit with.
func exitCode(err error, errOut io.Writer) int {
	if err == nil {
		return exitOK
	}
	code := exitFailed
	var e *exitError
	if errors.As(err, &e) {
		code, err = e.code, e.err
	}
	if err != nil {
		fmt.Fprintf(errOut, "rlhost: %v\n", err)
	}
	return code
}
