package main

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/process/spawn"
	"github.com/rlhost/rlhost/plugins/runner"
	sdk "github.com/rlhost/rlhost/sdk/process"
)

type pluginCommand struct {
	Add    pluginAddCommand    `cmd:"" help:"Write a native plugin and its SHA-256 into a pipeline file."`
	Show   pluginShowCommand   `cmd:"" help:"Print the kinds of components of a native plugin, and their ports."`
	Attach pluginAttachCommand `cmd:"" help:"Attach a debugger to the process of a component."`
	Serve  pluginServeCommand  `cmd:"" hidden:"" help:"Be a plugin: the host starts this."`
}

type pluginAddCommand struct {
	Program  string `arg:"" help:"Program or script."`
	Name     string `placeholder:"NAME" help:"Name in the file; default that of the program."`
	Pipeline string `default:"pipeline.toml" help:"Pipeline file."`
}

// Help describes the changes of add.
func (c *pluginAddCommand) Help() string {
	return `The file gets a table [plugin.NAME] with the program's path and SHA-256; a table that is there gets the new sum. Nothing
else in the file changes. With the sum in the file, rlhost refuses a program that is not the one that was meant.

  rlhost plugin add ./shaper
  rlhost plugin add ./learner.py --name torch --pipeline my.toml`
}

// Run writes the plugin into the file.
func (c *pluginAddCommand) Run(p *program) error {
	sum, err := files.SHA256(c.Program)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: error[%s]: no such file\n  help: build it first, or correct the path", c.Program, spawn.CodeStart)
	}
	if err != nil {
		return fail(exitPlugin, err)
	}
	name := c.Name
	if name == "" {
		base := filepath.Base(c.Program)
		name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	path, err := pathIn(filepath.Dir(c.Pipeline), c.Program)
	if err != nil {
		return err
	}
	src, err := readPipeline(c.Pipeline)
	if err != nil {
		return err
	}
	edited, err := graph.AddPlugin(c.Pipeline, src, name, path, sum)
	var problems graph.Problems
	if errors.As(err, &problems) {
		p.problems(problems)
		return printed(exitConfig, err)
	}
	if err != nil {
		return fail(exitUsage, err)
	}
	if err := files.Replace(c.Pipeline, edited); err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%s: plugin %s is %s, sha256 %s\n", c.Pipeline, name, path, sum)
	return nil
}

// pathIn returns a path as a file in dir would write it, with a slash in it.
func pathIn(dir, path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	relative, err := files.Relative(dir, path)
	if err == nil && !strings.HasPrefix(relative, "..") {
		relative = "./" + relative
	}
	return relative, err
}

type pluginShowCommand struct {
	Program     string   `arg:"" help:"Program or script."`
	Interpreter []string `placeholder:"WORD" help:"What runs the script, such as python3; default of a .py file $RLHOST_PYTHON, where that is set. May be repeated."`
	JSON        bool     `name:"json" help:"Print JSON."`
}

// Run starts the plugin, asks it and stops it.
func (c *pluginShowCommand) Run(p *program) error {
	return p.withParts(func(_ *graph.Parts, e *builtin.Engines) error { return c.show(p, e) })
}

func (c *pluginShowCommand) show(p *program, e *builtin.Engines) error {
	table := graph.DefaultPlugin()
	table.Name, table.Path, table.Interpreter = filepath.Base(c.Program), c.Program, c.Interpreter
	if python := os.Getenv("RLHOST_PYTHON"); python != "" && len(c.Interpreter) == 0 && filepath.Ext(c.Program) == ".py" {
		table.Interpreter = []string{python}
	}
	d, err := e.Describe(context.Background(), table, ".")
	if err != nil {
		return pluginError(err)
	}
	if c.JSON {
		return p.encode(d)
	}
	fmt.Fprintf(p.out, "%s  abi %s  sdk %s  %s\n", printable(table.Name), printable(d.ABI), printable(d.SDK), printable(strings.Join(d.Capabilities, " ")))
	for _, k := range d.Kinds {
		fmt.Fprintf(p.out, "kind %s: %s\n", printable(k.Name), printable(k.Doc))
		showPorts(p, "signal", k.Signals)
		showPorts(p, "slot", k.Slots)
	}
	return nil
}

func showPorts(p *program, what string, ports []native.Port) {
	for _, port := range ports {
		fmt.Fprintf(p.out, "  %-6s %-20s %-14s %s\n", what, printable(port.Name), printable(port.Payload), printable(port.Doc))
	}
}

type pluginAttachCommand struct {
	Component string `arg:"" help:"Component, such as learner or rollout[1]."`
	runsFlag
	Job   string `name:"run" default:"latest" placeholder:"RUN" help:"Run that it belongs to."`
	Print bool   `help:"Only print the command of the debugger."`
}

// Help says which debugger it is.
func (c *pluginAttachCommand) Help() string {
	return `Go programs get dlv where it is installed, others gdb. The host does not take a component that is being debugged for one
that has stalled.

  rlhost plugin attach learner
  gdb -p $(rlhost plugin attach learner --print | grep -o '[0-9]*$')`
}

// Run starts the debugger and waits for its end.
func (c *pluginAttachCommand) Run(p *program) error {
	run, err := c.Find(c.Job)
	if err != nil {
		return err
	}
	host, err := run.Holder()
	if err != nil {
		return err
	}
	if host == 0 {
		return fail(exitUsage, fmt.Errorf("run %s does not run now\n  help: name one that does: --run RUN", run.ID()))
	}
	list, err := spawn.Find(host)
	if err != nil {
		return err
	}
	var names []string
	for _, found := range list {
		if found.Component == c.Component {
			return c.debug(p, found.PID)
		}
		names = append(names, found.Component)
	}
	return fail(exitUsage, fmt.Errorf("run %s has no process for %q\n  help: there are: %s", run.ID(), c.Component, cmp.Or(strings.Join(names, ", "), "none, all of it runs in the host")))
}

func (c *pluginAttachCommand) debug(p *program, pid int) error {
	command := []string{"gdb", "-p", strconv.Itoa(pid)}
	if _, err := exec.LookPath("dlv"); err == nil && isGo(pid) {
		command = []string{"dlv", "attach", strconv.Itoa(pid)}
	}
	if c.Print {
		fmt.Fprintln(p.out, strings.Join(command, " "))
		return nil
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return fail(exitUsage, fmt.Errorf("%s is not installed; the process is %d\n  help: install gdb or dlv, or attach another debugger to it", command[0], pid))
	}
	debugger := exec.Command(command[0], command[1:]...)
	debugger.Stdin, debugger.Stdout, debugger.Stderr = os.Stdin, os.Stdout, os.Stderr
	return debugger.Run()
}

// isGo reports whether a process runs a program that was built by Go.
func isGo(pid int) bool {
	_, err := buildinfo.ReadFile(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil
}

type pluginServeCommand struct{}

// Run makes this program a plugin with the built-in components, and a worker of environments that are modules. It does
// not return.
func (c *pluginServeCommand) Run(p *program) error {
	_, e := builtin.New(builtin.Options{Log: p.logger(), Compiler: compilerCommand})
	sdk.Serve(sdk.Plugin{
		Kinds:  builtin.Kinds(runner.Output{}),
		Policy: builtin.DecodePolicy,
		Load:   e.LoadModule,
	})
	return nil
}
