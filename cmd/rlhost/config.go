package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/rlhost/rlhost/cmd/rlhost/results"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/fit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/picture"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// readGraph reads and checks a pipeline file and prints everything that is wrong with it, and the warnings of a good one.
func (p *program) readGraph(file string, sets []string, parts *graph.Parts) (*graph.Graph, error) {
	src, err := readPipeline(file)
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

// readPipeline returns the text of a pipeline file.
func readPipeline(file string) ([]byte, error) {
	src, err := files.Read(file, graph.MaxBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%s: error[E012]: no such file\n  help: %s", file, nearby(file))
	case errors.Is(err, files.ErrTooLarge):
		err = fmt.Errorf("%s: error[E001]: it has more than %d bytes\n  help: a pipeline has a few kilobytes; is it the right file?", file, graph.MaxBytes)
	case err != nil:
		err = fmt.Errorf("%s: error[E012]: cannot be read: %w", file, err)
	default:
		return runs.Upgraded(file, src), nil
	}
	return nil, fail(exitConfig, err)
}

// nearby says which pipeline files there are instead.
func nearby(file string) string {
	const most = 5
	found, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.toml"))
	if err != nil || len(found) == 0 {
		return "name a pipeline file; rlhost's own pipeline.toml is one to begin with"
	}
	if len(found) > most {
		found = append(found[:most], "…")
	}
	return "there are: " + strings.Join(found, ", ")
}

type validateCommand struct {
	Pipelines    []string `arg:"" optional:"" predictor:"pipeline" help:"Pipeline files; default ./pipeline.toml."`
	Set          []string `placeholder:"KEY=VALUE" sep:"none" help:"Override a key of the file. May be repeated."`
	DenyWarnings bool     `help:"Treat warnings as errors."`
	Offline      bool     `help:"Look at the files alone: load no plugin."`
}

// Help describes the checks.
func (c *validateCommand) Help() string {
	return `Everything that is wrong is reported at once, each with its place and a remedy. Plugins are loaded and asked for their
spaces, but nothing is stepped. The exit code is 3 if a file is invalid, 5 if only a plugin cannot be used.`
}

// Run checks each file and loads its plugins.
func (c *validateCommand) Run(p *program) error {
	files := c.Pipelines
	if len(files) == 0 {
		files = []string{results.DefaultPipeline}
	}
	worst := exitOK
	for _, file := range files {
		err := p.withParts(func(parts *graph.Parts, _ *builtin.Engines) error { return c.look(p, file, parts) })
		if code := p.exitCode(err); worst == exitOK || code == exitConfig {
			worst = code
		}
	}
	if worst == exitOK {
		return nil
	}
	return printed(worst, errors.New("not valid"))
}

func (c *validateCommand) look(p *program, file string, parts *graph.Parts) error {
	g, err := p.readGraph(file, c.Set, parts)
	if err != nil {
		return err
	}
	if _, err := session.Leading(g); err != nil {
		return p.printProblems(err)
	}
	forecast, warnings := "", g.Warnings
	if !c.Offline && !(c.DenyWarnings && len(warnings) > 0) {
		needs, more, err := pipeline.Check(context.Background(), g, parts)
		p.problems(more)
		if err != nil {
			return p.printProblems(session.BuildError(err))
		}
		warnings = append(warnings, more...)
		forecast = ", " + fit.ForecastText(needs)
	}
	if c.DenyWarnings && len(warnings) > 0 {
		return printed(exitConfig, warnings)
	}
	fmt.Fprintf(p.out, "%s: ok (%d components, %d wires%s)\n", printable(file), len(g.Components), len(g.Wires), forecast)
	return nil
}

type showCommand struct {
	Pipeline string   `arg:"" optional:"" default:"pipeline.toml" predictor:"pipeline" help:"Pipeline file."`
	Expanded bool     `help:"Print every key, with presets and defaults written out."`
	Set      []string `placeholder:"KEY=VALUE" sep:"none" help:"Override a key of the file; implies --expanded. May be repeated."`
}

// Help shows how show is called.
func (c *showCommand) Help() string {
	return `The full form shows every key there is, with its value.

  rlhost show --expanded
  rlhost show --expanded my.toml > full.toml      # a file that means the same`
}

// Run prints the file, or its full meaning.
func (c *showCommand) Run(p *program) error {
	return p.withGraph(c.Pipeline, c.Set, func(g *graph.Graph, parts *graph.Parts) error {
		if c.Expanded || len(c.Set) > 0 {
			fmt.Fprint(p.out, parts.PresetsText(), g.Expanded())
			return nil
		}
		src, err := readPipeline(c.Pipeline)
		if err == nil {
			_, err = p.out.Write(src)
		}
		return err
	})
}

type graphCommand struct {
	Pipeline string   `arg:"" optional:"" default:"pipeline.toml" predictor:"pipeline" help:"Pipeline file."`
	Format   string   `enum:"ascii,dot,mermaid" default:"ascii" help:"ascii, dot or mermaid."`
	Set      []string `placeholder:"KEY=VALUE" sep:"none" help:"Override a key of the file. May be repeated."`
}

// Help shows how graph is called.
func (c *graphCommand) Help() string {
	return `Components, and the signals and slots that are wired.

  rlhost graph
  rlhost graph --format dot | dot -Tsvg > pipeline.svg`
}

// Run draws the pipeline.
func (c *graphCommand) Run(p *program) error {
	return p.withGraph(c.Pipeline, c.Set, func(g *graph.Graph, _ *graph.Parts) error {
		if err := picture.Draw(p.out, g, c.Format); err != nil {
			return fail(exitUsage, err)
		}
		return nil
	})
}
