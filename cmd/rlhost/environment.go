package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rlhost/rlhost/cmd/rlhost/modules"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/envcheck"
	"github.com/rlhost/rlhost/plugins/process/spawn"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// envFlags are shared by commands on a single environment.
type envFlags struct {
	Env  string `arg:"" predictor:"pipeline" help:"Module file, a built-in environment such as cartpole@1, gymnasium:ID or pettingzoo:MODULE; check takes a pipeline, too."`
	JSON bool   `name:"json" help:"Print JSON."`
	loadFlags
}

// loadFlags say how an environment is loaded that is named on the command line.
type loadFlags struct {
	Args  map[string]string `name:"arg" mapsep:"none" placeholder:"KEY=VALUE" help:"Argument of the environment, such as max_steps=200. May be repeated."`
	Grant []string          `placeholder:"NAME" help:"Capability to grant: log, metric or clock. May be repeated."`
	Data  string            `placeholder:"DIR" help:"Folder that the module may read, as /data."`

	Memory  table.Size `placeholder:"SIZE" help:"Most memory of an instance of the module besides blocks, such as 256MiB; default 64MiB."`
	Runtime string     `enum:"host,process" default:"host" help:"Where the module runs: host, or process for a process of its own."`
}

// memoryHelp adds to an error of memory which settings can be reduced.
func memoryHelp(err error, smaller string) error {
	var short *env.MemoryError
	var params *env.ParamsError
	switch {
	case errors.As(err, &short):
		return fail(exitPlugin, fmt.Errorf("error[E042]: %w\n  help: %s", short, short.Help(smaller)))
	case errors.As(err, &params):
		return fail(exitPlugin, fmt.Errorf("error[E044]: %w\n  help: %s", params, params.Help(smaller)))
	case errors.Is(err, trajectory.ErrShape):
		return fail(exitPlugin, fmt.Errorf("error[E100]: %w\n  help: %s", err, smaller))
	}
	return err
}

// withEnv calls fn with the environment, the table of parts, and the engines that run it.
func (f *envFlags) withEnv(p *program, fn func(env.Plugin, *graph.Parts, *builtin.Engines) error) error {
	return p.withParts(func(parts *graph.Parts, e *builtin.Engines) error {
		plugin, err := f.load(f.Env, parts)
		if err != nil {
			return err
		}
		return errors.Join(fn(plugin, parts, e), plugin.Close())
	})
}

// load loads an environment.
func (f *loadFlags) load(use string, parts *graph.Parts) (env.Plugin, error) {
	plugin, err := parts.Load(context.Background(), "", f.table(use, parts), ".")
	if err != nil {
		return nil, loadError(use, err)
	}
	return plugin, nil
}

// table is the table of a pipeline file: gymnasium:CartPole-v1 is a native plugin's environment, anything else a module.
func (f *loadFlags) table(use string, parts *graph.Parts) graph.EnvTable {
	t := graph.EnvTable{Source: env.DefaultSource()}
	t.Use, t.Args, t.Grants, t.Data, t.Memory, t.Runtime = use, f.Args, f.Grant, f.Data, uint64(f.Memory), f.Runtime
	if before, rest, ok := graph.SplitUse(use); ok {
		if plugin, known := parts.EnvPlugins[before]; known {
			plugin.Name = before
			t.Plugin, t.Use, t.Runtime = &plugin, rest, env.InHost
		}
	}
	return t
}

// loadError is pluginError that proposes a built-in environment where a file is missing.
func loadError(use string, err error) error {
	var bad *table.Error
	if errors.As(err, &bad) && bad.Code == module.CodeMissing {
		bad.Help = modules.Likely(use, builtin.Names(), bad.Help)
	}
	if bad != nil && strings.HasPrefix(bad.Key, "args.") {
		return fail(exitPlugin, fmt.Errorf("--arg %s: error[%s]: %s\n  help: %s", strings.TrimPrefix(bad.Key, "args."), bad.Code, bad.Reason, bad.Help))
	}
	return pluginError(err)
}

// pluginError shows a plugin that cannot be used with code, reason and help. Errors that have no place are of no plugin.
func pluginError(err error) error {
	var unusable *table.Error
	var native *spawn.Error
	switch {
	case errors.As(err, &unusable) && unusable.Place != "":
		return fail(exitPlugin, fmt.Errorf("%s: error[%s]: %s\n  help: %s", unusable.Place, unusable.Code, unusable.Reason, unusable.Help))
	case errors.As(err, &native):
		return fail(exitPlugin, fmt.Errorf("plugin %q: error[%s]: %s\n  help: %s", native.Program, native.Code, native.Reason, native.Help))
	}
	return err
}

type checkCommand struct {
	envFlags
	Steps int    `default:"1000" help:"Steps of each trace."`
	Seed  uint64 `default:"1" help:"Seed of environments and actions."`

	Record string `placeholder:"FILE" help:"Messages to play to a component, of rlhost tap --record; default some are made up."`
}

// shownLines is how many lines of a module are shown by a check which does not grant log.
const shownLines = 10

// Help describes the checks.
func (c *checkCommand) Help() string {
	return `Each check has an identifier such as D03; rlhost explain D03 tells more. The exit code is 4 if one fails.

Of a pipeline file, everything that validate checks is checked, and then each environment as the file declares it.

  rlhost check my.wasm
  rlhost check pipeline.toml
  rlhost check my.wasm --arg max_steps=200 --steps 20000
  rlhost check my-component.wasm --grant metric --record blocks.rec`
}

// Run checks what the word names, and exits with 4 if a check fails.
func (c *checkCommand) Run(p *program) error {
	if c.Steps < 1 {
		return fail(exitUsage, fmt.Errorf("--steps %d: want 1 or more", c.Steps))
	}
	next := *p
	p, next.shown = &next, shownLines
	switch is, file := p.kindOf(c.Env, &runsFlag{}); {
	case is == aRun, is == aPipeline && strings.HasSuffix(file, ".toml"):
		return c.checkPipeline(p, file)
	case is == aProgram:
		return (&pluginShowCommand{Program: pathWithSlash(c.Env), JSON: c.JSON}).Run(p)
	case modules.IsComponent(c.Env):
		return p.withParts(func(parts *graph.Parts, _ *builtin.Engines) error {
			x := modules.Check{Use: c.Env, Args: c.Args, Grants: c.Grant, Data: c.Data, Memory: uint64(c.Memory), Record: c.Record, JSON: c.JSON}
			results, err := x.Run(parts, p.out)
			return cmp.Or(pluginError(err), failedCheck(results))
		})
	}
	var results []envcheck.Result
	err := c.withEnv(p, func(plugin env.Plugin, _ *graph.Parts, e *builtin.Engines) (err error) {
		results, err = c.checkEnv(p, e, plugin, c.Env)
		return err
	})
	return cmp.Or(err, failedCheck(results))
}

// checkPipeline validates a pipeline file, and checks the environments that it declares, as it declares them.
func (c *checkCommand) checkPipeline(p *program, file string) error {
	if len(c.Args) > 0 || len(c.Grant) > 0 || c.Data != "" || c.Memory > 0 || c.Runtime != env.InHost || c.Record != "" {
		return fail(exitUsage, fmt.Errorf("%s is a pipeline: its [env] tables say with which arguments, grants and data, and in which memory and runtime, environments run", file))
	}
	return p.withParts(func(parts *graph.Parts, e *builtin.Engines) error {
		g, err := p.readGraph(file, nil, parts)
		if err != nil {
			return err
		}
		_, warnings, err := pipeline.Check(context.Background(), g, parts)
		p.problems(warnings)
		if err != nil {
			return p.printProblems(session.BuildError(err))
		}
		var failed error
		for i := range g.Envs {
			x := &g.Envs[i]
			plugin, err := parts.Load(context.Background(), x.Name, x.Table, g.Dir)
			if err != nil {
				return pluginError(err)
			}
			results, err := c.checkEnv(p, e, plugin, x.Table.Use)
			if err = errors.Join(err, plugin.Close()); err != nil {
				return err
			}
			failed = cmp.Or(failed, failedCheck(results))
		}
		for i := range g.Components {
			if m := g.Components[i].Module; m != nil {
				p.notice("component %s: rlhost check %s checks its module", g.Components[i].Name, files.In(g.Dir, m.Table.Use))
			}
		}
		return failed
	})
}

// checkEnv checks an environment, which has been loaded by use, and prints the results.
func (c *checkCommand) checkEnv(p *program, e *builtin.Engines, plugin env.Plugin, use string) (results []envcheck.Result, err error) {
	kind, _, _ := strings.Cut(use, ":")
	o := envcheck.Options{Steps: c.Steps, Seed: c.Seed, Python: kind == "gymnasium" || kind == "pettingzoo"}
	if err := envcheck.CheckMemory(plugin, o); err != nil {
		return nil, memoryHelp(err, "make its observations smaller")
	}
	defer func() { c.remember(e, plugin, results) }()
	if c.JSON {
		results = envcheck.Run(context.Background(), plugin, o)
		return results, p.encode(map[string]any{"env": plugin.Spec().Name, "hash": plugin.Hash(), "facts": envcheck.Facts(plugin.Spec()),
			"args": envcheck.Arguments(plugin.Spec()), "checks": results})
	}
	printed := modules.NewPrinter(p.out, envcheck.Head(plugin.Spec()))
	o.Done = printed.Line
	return printed.Sum(envcheck.Run(context.Background(), plugin, o))
}

// enoughSteps of a check are enough for a training not to check a module's output again.
const enoughSteps = 1000

// remember notes that a module has passed the checks of its output.
func (c *checkCommand) remember(e *builtin.Engines, plugin env.Plugin, results []envcheck.Result) {
	passed := 0
	for _, r := range results {
		if (r.ID == "M01" || r.ID == "M02") && r.Verdict == envcheck.OK {
			passed++
		}
	}
	if passed == 2 && c.Steps >= enoughSteps {
		e.MarkChecked(plugin.Hash())
	}
}

// failedCheck is the error of the first check that failed, or nil.
func failedCheck(results []envcheck.Result) error {
	for _, r := range results {
		if r.Verdict == envcheck.Failed {
			return printed(exitCheck, fmt.Errorf("check %s failed", r.ID))
		}
	}
	return nil
}

type inspectCommand struct {
	File string `arg:"" help:"Module file."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Help describes the purpose of inspect.
func (c *inspectCommand) Help() string {
	return `Size, hash, ABI, language, memory, exports, imports and the capabilities that they need, and everything that would keep it from
being loaded: then the exit code is 5. Nothing of the module is run.`
}

// Run reads a module and describes it, without running any of it.
func (c *inspectCommand) Run(p *program) error {
	report, err := module.Inspect(c.File)
	if err != nil {
		return pluginError(err)
	}
	if c.JSON {
		err = p.encode(report)
	} else {
		_, err = fmt.Fprint(p.out, printable(report.String()))
	}
	if err == nil && len(report.Findings) > 0 {
		return printed(exitPlugin, fmt.Errorf("%s cannot be loaded: %s", c.File, report.Findings[0].Reason))
	}
	return err
}
