package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rlhost/rlhost/cmd/rlhost/modules"
	"github.com/rlhost/rlhost/cmd/rlhost/results"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/fit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/envcheck"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// standardInput is the word for a pipeline that comes over standard input.
const standardInput = "-"

// readGraph reads and checks a pipeline file and prints everything that is wrong with it, and the warnings of a good one.
func (p *program) readGraph(file string, sets []string, parts *graph.Parts) (*graph.Graph, error) {
	read := readPipeline
	if file == standardInput {
		file, read = graph.StandardInput, readStandardInput
	}
	src, err := read(file)
	if err != nil {
		return nil, err
	}
	g, err := graph.Parse(file, src, graph.ParseOptions{Sets: sets, Parts: parts})
	if err != nil {
		return nil, p.printProblems(err)
	}
	p.problems(g.Warnings)
	return g, nil
}

// withGraph calls fn with a valid pipeline file and the parts that it may name.
func (p *program) withGraph(file string, sets []string, fn func(*graph.Graph, *graph.Parts) error) error {
	return p.withParts(func(parts *graph.Parts, _ *builtin.Engines) error {
		g, err := p.readGraph(file, sets, parts)
		if err != nil {
			return err
		}
		return fn(g, parts)
	})
}

// readPipeline returns the text of a pipeline file, as this version writes it where an earlier one has stored it.
func readPipeline(file string) ([]byte, error) {
	src, err := readText(file)
	if err != nil {
		return nil, err
	}
	return runs.Upgraded(file, src), nil
}

// readStandardInput returns the text of a pipeline from standard input.
func readStandardInput(name string) ([]byte, error) {
	src, err := io.ReadAll(io.LimitReader(os.Stdin, graph.MaxBytes+1))
	switch {
	case err != nil:
		err = fmt.Errorf("%s: error[E012]: cannot be read: %w", name, err)
	case len(src) > graph.MaxBytes:
		err = tooLong(name)
	default:
		return src, nil
	}
	return nil, fail(exitConfig, err)
}

// tooLong is the error of a text that is too long for a pipeline.
func tooLong(file string) error {
	return fmt.Errorf("%s: error[E001]: it has more than %d bytes\n  help: a pipeline has a few kilobytes; is it the right file?", file, graph.MaxBytes)
}

// readText returns the text of a pipeline file as it is.
func readText(file string) ([]byte, error) {
	if err := notPipeline(file, (&results.Folder{}).Dir(), builtin.Names()); err != nil {
		return nil, err
	}
	src, err := files.Read(file, graph.MaxBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%s: error[E012]: no such file\n  help: %s", file, nearby(file))
	case errors.Is(err, files.ErrTooLarge):
		err = tooLong(file)
	case err != nil:
		err = fmt.Errorf("%s: error[E012]: cannot be read: %w", file, err)
	default:
		return src, nil
	}
	return nil, fail(exitConfig, err)
}

// nearby says which pipeline files there are instead.
func nearby(file string) string {
	const most = 5
	found, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.toml"))
	if err != nil || len(found) == 0 {
		return "there is no pipeline file here; rlhost train cartpole@1 prints one to begin with"
	}
	if len(found) > most {
		found = append(found[:most], "…")
	}
	return "there are: " + strings.Join(found, ", ")
}

type validateCommand struct {
	Files        []string `arg:"" optional:"" predictor:"pipeline" help:"Pipeline files, modules, programs, environments or runs; default ./pipeline.toml."`
	Set          []string `placeholder:"KEY=VALUE" sep:"none" help:"Override a key of the file. May be repeated."`
	DenyWarnings bool     `help:"Treat warnings as errors."`
	Offline      bool     `xor:"deep" help:"Look at the files alone: load no plugin."`
	Measure      bool     `xor:"deep" help:"Run each pipeline for two seconds in a folder that is removed, and forecast its files by that."`
}

// Help describes the checks.
func (c *validateCommand) Help() string {
	return `Everything that is wrong is reported at once, each with its place and a remedy. Plugins are loaded and asked for their
spaces, but nothing is stepped: rlhost check does that. The exit code is 3 if a file is invalid, 5 if only a plugin cannot be used.
The line of a valid pipeline has its memory, and the next one what its files take after a day at most; --measure runs it, and says what they
take at that speed.

  rlhost validate
  rlhost validate --measure
  rlhost validate my.toml my.wasm`
}

// Run checks each file and loads its plugins.
func (c *validateCommand) Run(p *program) error {
	words := c.Files
	if len(words) == 0 {
		words = []string{results.DefaultPipeline}
	}
	worst := exitOK
	for _, word := range words {
		if code := p.exitCode(c.lookAt(p, word)); worst == exitOK || code == exitConfig {
			worst = code
		}
	}
	if worst == exitOK {
		return nil
	}
	return printed(worst, errors.New("not valid"))
}

// lookAt validates what a word names.
func (c *validateCommand) lookAt(p *program, word string) error {
	switch is, file := p.kindOf(word, &runsFlag{}); is {
	case aModule, anEnvironment:
		return c.lookAtEnv(p, word)
	case aProgram:
		return (&pluginShowCommand{Program: pathWithSlash(word)}).Run(p)
	default:
		return p.withParts(func(parts *graph.Parts, _ *builtin.Engines) error { return c.look(p, file, parts) })
	}
}

// lookAtEnv loads an environment, or reads a module of a component.
func (c *validateCommand) lookAtEnv(p *program, word string) error {
	if modules.IsComponent(word) {
		report, err := module.Inspect(word)
		if err != nil {
			return pluginError(err)
		}
		if len(report.Findings) > 0 {
			f := report.Findings[0]
			return fail(exitPlugin, fmt.Errorf("%s: error[%s]: %s\n  help: %s", word, f.Code, f.Reason, f.Help))
		}
		fmt.Fprintf(p.out, "%s: ok (module of a component)\n", printable(word))
		return nil
	}
	f := &envFlags{Env: word}
	return f.withEnv(p, func(plugin env.Plugin, _ *graph.Parts, _ *builtin.Engines) error {
		spec := plugin.Spec()
		fmt.Fprintf(p.out, "%s: ok (environment %s, obs %s, act %s)\n", printable(word), printable(spec.Name),
			printable(spec.Spaces(hostabi.RoleObservation)), printable(spec.Spaces(hostabi.RoleAction)))
		return nil
	})
}

func (c *validateCommand) look(p *program, file string, parts *graph.Parts) error {
	if c.Offline { // no environment says what a preset has to suit
		alone := *parts
		alone.Load, parts = nil, &alone
	}
	g, err := p.readGraph(file, c.Set, parts)
	if err != nil {
		return err
	}
	if session.Learns(g) || g.Run.Policy != "" {
		if _, err := session.Leading(g); err != nil {
			return p.printProblems(err)
		}
	}
	if _, err := sweepOf(g, c.Set, rereading(file, parts)); err != nil {
		return p.printProblems(err)
	}
	forecast, disk, warnings := "", "", g.Warnings
	if !c.Offline && !(c.DenyWarnings && len(warnings) > 0) {
		takes, more, err := pipeline.Check(context.Background(), g, parts)
		p.problems(more)
		if err != nil {
			return p.printProblems(session.BuildError(err))
		}
		warnings = append(warnings, more...)
		forecast = ", " + fit.ForecastText(takes.Memory)
		var large graph.Problems
		if disk, large, err = c.disk(p, file, g, parts, &takes); err != nil {
			return err
		}
		warnings = append(warnings, large...)
	}
	if c.DenyWarnings && len(warnings) > 0 {
		return printed(exitConfig, warnings)
	}
	if !session.Learns(g) {
		forecast += ", nothing is learned: for rlhost run"
	}
	fmt.Fprintf(p.out, "%s: ok (%d components, %d wires%s)\n%s", printable(file), len(g.Components), len(g.Wires), forecast, disk)
	return nil
}

type showCommand struct {
	What     string   `arg:"" optional:"" default:"pipeline.toml" predictor:"pipeline" help:"Pipeline file, run, module, program or environment."`
	Expanded bool     `help:"Print every key of a pipeline, with presets and defaults written out."`
	Set      []string `placeholder:"KEY=VALUE" sep:"none" help:"Override a key of the pipeline; implies --expanded. May be repeated."`
	runsFlag
}

// Help shows how show is called.
func (c *showCommand) Help() string {
	return `A run is shown as rlhost runs show does, a module as inspect, a program as plugin show. The full form of a pipeline has every key
there is, with its value; a run has one too.

  rlhost show --expanded
  rlhost show --expanded my.toml > full.toml      # a file that means the same
  rlhost show cartpole/3
  rlhost show my.wasm`
}

// Run prints the pipeline, or its full meaning, or what else the word names.
func (c *showCommand) Run(p *program) error {
	full := c.Expanded || len(c.Set) > 0
	is, file := p.kindOf(c.What, &c.runsFlag)
	if full && is != aPipeline && is != aRun {
		return fail(exitUsage, fmt.Errorf("--expanded and --set are for pipelines, and %s is none", c.What))
	}
	switch {
	case is == aRun && !full:
		return (&results.Show{RunID: c.What, Folder: c.runsFlag}).Run(p.forResults())
	case is == aModule:
		return (&inspectCommand{File: c.What}).Run(p)
	case is == aProgram:
		return (&pluginShowCommand{Program: pathWithSlash(c.What)}).Run(p)
	case is == anEnvironment:
		f := &envFlags{Env: c.What}
		return f.withEnv(p, func(plugin env.Plugin, _ *graph.Parts, _ *builtin.Engines) error {
			_, err := fmt.Fprint(p.out, printable(envcheck.Head(plugin.Spec())))
			return err
		})
	}
	return p.withGraph(file, c.Set, func(g *graph.Graph, parts *graph.Parts) error {
		if full {
			fmt.Fprint(p.out, parts.PresetsText(), g.Resolved())
			return nil
		}
		src, err := readPipeline(file)
		if err == nil {
			_, err = p.out.Write(src)
		}
		return err
	})
}
