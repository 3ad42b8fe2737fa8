package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/plugins/runner"
)

// defaultPipeline is the file that commands read when they are given none.
const defaultPipeline = "pipeline.toml"

// readGraph reads and checks a pipeline file and prints everything that is wrong with it.
func (p *program) readGraph(file string, sets []string, parts *pipeline.Parts) (*pipeline.Graph, error) {
	src, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fail(exitConfig, fmt.Errorf("%s: error[E012]: no such file\n  help: name a pipeline file, or start from the one in the README", file))
	}
	if err != nil {
		return nil, fail(exitConfig, err)
	}
	g, problems := pipeline.Parse(file, src, pipeline.ParseOptions{Sets: sets, Parts: parts})
	for _, problem := range problems {
		fmt.Fprint(p.err, problem)
	}
	if g == nil {
		return nil, fail(exitConfig, nil)
	}
	return g, nil
}

type validateCommand struct {
	Pipelines    []string `arg:"" optional:"" type:"path" help:"Pipeline files; default ./pipeline.toml."`
	Set          []string `placeholder:"KEY=VALUE" sep:"none" help:"Override a key of the file."`
	DenyWarnings bool     `help:"Treat warnings as errors."`
	Offline      bool     `help:"Look at the files alone: load no plugin."`
}

// Run checks each file and loads its plugins.
func (c *validateCommand) Run(p *program) error {
	files := c.Pipelines
	if len(files) == 0 {
		files = []string{defaultPipeline}
	}
	bad := 0
	for _, file := range files {
		if err := c.validate(p, file); err != nil {
			bad++
			exitCode(err, p.err)
		}
	}
	if bad > 0 {
		return fail(exitConfig, nil)
	}
	return nil
}

func (c *validateCommand) validate(p *program, file string) error {
	log := p.logger()
	r, err := newRuntime(log)
	if err != nil {
		return err
	}
	defer r.Close()
	parts := newParts(r, runner.Output{})
	src, err := os.ReadFile(file)
	if err != nil {
		return fail(exitConfig, err)
	}
	g, problems := pipeline.Parse(file, src, pipeline.ParseOptions{Sets: c.Set, Parts: parts})
	for _, problem := range problems {
		fmt.Fprint(p.err, problem)
	}
	if g == nil || c.DenyWarnings && len(problems) > 0 {
		return fail(exitConfig, nil)
	}
	if !c.Offline {
		if err := pipeline.CheckPlugins(context.Background(), g, parts); err != nil {
			return p.buildError(err)
		}
	}
	fmt.Fprintf(p.out, "%s: ok (%d components, %d wires)\n", file, len(g.Components), len(g.Wires))
	return nil
}

type showCommand struct {
	Pipeline string   `arg:"" optional:"" type:"path" default:"pipeline.toml" help:"Pipeline file."`
	Expanded bool     `help:"Print every key, with presets expanded."`
	Set      []string `placeholder:"KEY=VALUE" sep:"none" help:"Override a key of the file."`
}

// Run prints the file, or what it means in full.
func (c *showCommand) Run(p *program) error {
	g, err := p.readGraph(c.Pipeline, c.Set, newParts(nil, runner.Output{}))
	if err != nil {
		return err
	}
	if c.Expanded || len(c.Set) > 0 {
		fmt.Fprint(p.out, g.Expanded())
		return nil
	}
	src, err := os.ReadFile(c.Pipeline)
	if err != nil {
		return err
	}
	_, err = p.out.Write(src)
	return err
}

type graphCommand struct {
	Pipeline string   `arg:"" optional:"" type:"path" default:"pipeline.toml" help:"Pipeline file."`
	Format   string   `enum:"ascii,dot,mermaid" default:"ascii" help:"ascii, dot or mermaid."`
	Set      []string `placeholder:"KEY=VALUE" sep:"none" help:"Override a key of the file."`
}

// Run draws the pipeline.
func (c *graphCommand) Run(p *program) error {
	g, err := p.readGraph(c.Pipeline, c.Set, newParts(nil, runner.Output{}))
	if err != nil {
		return err
	}
	picture, err := g.Draw(c.Format)
	if err != nil {
		return fail(exitUsage, err)
	}
	fmt.Fprint(p.out, picture)
	return nil
}

type explainCommand struct {
	Code string `arg:"" help:"Code of an error or a warning, such as E040."`
}

// Run prints the page of a code.
func (c *explainCommand) Run(p *program) error {
	page, ok := pipeline.Explain(c.Code)
	if !ok {
		return fail(exitUsage, fmt.Errorf("there is no code %q; codes look like E040 or W101", c.Code))
	}
	fmt.Fprintln(p.out, page)
	return nil
}
