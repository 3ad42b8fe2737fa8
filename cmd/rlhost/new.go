package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rlhost/rlhost"
	"github.com/rlhost/rlhost/cmd/rlhost/project"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// Codes of folders to begin in.
const (
	codeFolder     = "E117" // it cannot be made
	codeNotBuilt   = "E118" // its build failed
	codeNoCompiler = "W121" // nothing here can build it
)

type newCommand struct {
	Kind  string `arg:"" enum:"env,component,python,pipeline" help:"env, component, python (an environment and a program that trains on it) or pipeline."`
	Name  string `arg:"" help:"Name of the folder, and of all that is in it."`
	Lang  string `name:"lang" placeholder:"LANGUAGE" help:"c, cpp, rust, go, zig, as (AssemblyScript) or python."`
	Build bool   `negatable:"" default:"true" help:"Build it at once, with the compiler that works here."`
}

// Help says what is in the folder.
func (c *newCommand) Help() string {
	return `The folder has the source of an example that works, build.sh with the compiler of this machine, test.sh, pipeline.toml, and files for
editors: tasks, compiler flags, and the JSON schema of pipeline files. The SDK is in it too, so that nothing else is needed.
Components are written in C, Rust, Go and Python.

  rlhost new env maze --lang c
  cd maze
  rlhost train`
}

// Run writes the folder and builds what is in it.
func (c *newCommand) Run(p *program) error {
	if c.Lang == "" && c.Kind == project.Python {
		c.Lang = "python"
	}
	schema, err := pipelineSchema(p)
	if err != nil {
		return err
	}
	made, err := project.Write(project.Options{Sources: rlhost.Sources(), Kind: c.Kind, Name: c.Name, Dir: c.Name, Language: c.Lang, Schema: schema})
	if err != nil {
		return newError(err)
	}
	fmt.Fprintf(p.out, "wrote %s: %s\n", made.Dir, strings.Join(made.Files, ", "))
	return c.build(p, made)
}

// newError is an error of a folder that was not written.
func newError(err error) error {
	var m *project.Mistake
	if errors.As(err, &m) {
		return fail(exitUsage, fmt.Errorf("error[%s]: %s\n  help: %s", codeFolder, m.Text, m.Help))
	}
	return fail(exitFailed, fmt.Errorf("error[%s]: %w", codeFolder, err))
}

// build runs build.sh and says what comes next.
func (c *newCommand) build(p *program, made *project.Made) error {
	next := "cd " + made.Dir
	switch {
	case len(made.Language.Compilers) == 0:
	case made.Compiler == nil:
		p.notice("warning[%s]: no compiler of %s works here; build.sh has the line of the usual one\n  help: %s", codeNoCompiler, made.Language.Title, made.Language.Install)
		next += " && ./build.sh"
	case !c.Build:
		next += " && ./build.sh"
	default:
		begin := time.Now()
		if out, err := runScript(made.Dir, "build.sh"); err != nil {
			return fail(exitFailed, fmt.Errorf("error[%s]: %s: %w\n%s", codeNotBuilt, filepath.Join(made.Dir, "build.sh"), err, out))
		}
		fmt.Fprintf(p.out, "built with %s, %.1f s\n", made.Compiler.VersionHere(), time.Since(begin).Seconds())
	}
	if c.Kind == project.Python {
		fmt.Fprintf(p.out, "next: %s && .venv/bin/python train.py\n", next)
		return nil
	}
	fmt.Fprintf(p.out, "next: %s && rlhost train\n", next)
	return nil
}

// runScript runs a script of a folder, and returns what it prints.
func runScript(dir, name string) ([]byte, error) {
	cmd := exec.Command("./" + name)
	cmd.Dir = dir
	return cmd.CombinedOutput()
}

// pipelineSchema is the JSON schema of pipeline files.
func pipelineSchema(p *program) (text []byte, err error) {
	err = p.withParts(func(parts *graph.Parts, _ *builtin.Engines) error {
		text, err = parts.Schema()
		return err
	})
	return text, err
}

type schemaCommand struct{}

// Help says how editors find it.
func (c *schemaCommand) Help() string {
	return `Editors complete and check pipeline files by it: taplo, and Even Better TOML in VS Code. The first line of a file names it:

  rlhost schema >pipeline.schema.json
  #:schema ./pipeline.schema.json`
}

// Run prints the schema.
func (c *schemaCommand) Run(p *program) error {
	text, err := pipelineSchema(p)
	if err != nil {
		return err
	}
	_, err = p.out.Write(text)
	return err
}
