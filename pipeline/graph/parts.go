package graph

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
)

// Parts is a literal table of the parts that a program can build pipelines from. Every field may be left out; its parts then do not exist.
type Parts struct {
	// Kinds makes an unconfigured component by kind, such as rollout.
	Kinds map[string]func() component.Component
	// Load loads the plugin of the environment of that name. A path in e.Use is relative to dir. An error that
	// wraps a *table.Error, or fs.ErrNotExist, is shown with its own code.
	Load func(ctx context.Context, name string, e EnvTable, dir string) (env.Plugin, error)
	// File returns the module of the environment that Load would load in this process, without checking it.
	File func(e EnvTable, dir string) ([]byte, error)
	// Spec says what the environment is that Load would load; nil: Parse does not ask. The next Load of the same may return what Spec
	// has loaded. A program that replaces Load replaces Spec, too.
	Spec func(ctx context.Context, name string, e EnvTable, dir string) (hostabi.EnvSpec, error)
	// Vet briefly checks the output of an environment whose module was never checked. The error is a *table.Error with the code of a
	// check; it is nil if nothing is wrong, or if Load will report it.
	Vet func(ctx context.Context, e EnvTable, dir string) error
	// Plugin returns the Makers of a native plugin's components, by kind: each runs in its own process. It may
	// start the program to ask. A relative path is relative to dir. Errors are shown as Load's.
	Plugin func(p PluginTable, dir string) (map[string]Maker, error)
	// Module returns the Maker of the components of a WebAssembly module, which loads it. A relative path is relative to dir. Its
	// errors are shown as Load's.
	Module func(m ModuleTable, dir string) Maker
	// Alone makes an instance of a module that imports nothing, of this program's own making: an exported policy.
	Alone func(module []byte) (Alone, error)
	// EnvPlugins are native plugins for environments that need no [plugin] table, by name.
	EnvPlugins map[string]PluginTable
	// EnvPluginsOf returns them for a run that began with that interpreter: the same one, unless the user says otherwise.
	EnvPluginsOf func(interpreter string) map[string]PluginTable
	// Builtins are the names that use = "name@version" may have.
	Builtins []string
	// Policy decodes a [policy.NAME] table for an environment. decode works as in Component.Configure. Host.Policy returns the result.
	Policy func(decode func(into any) error, env *hostabi.EnvSpec) (component.Policy, error)
	// PolicyBy is Policy for a table that names a plugin of the file which computes the policy. It may start the program to ask.
	PolicyBy func(by PolicyProgram, decode func(into any) error, env *hostabi.EnvSpec) (component.Policy, error)
	// PolicyUnread are the keys of a policy's table that have no effect where PolicyBy makes the policy, such as net.hidden.
	PolicyUnread []string
	// CheckPolicy is Policy without an environment, for checks before anything is loaded.
	CheckPolicy func(decode func(into any) error) error
	// CheckWrapper checks one table of an environment's key wrap, without the environment. decode works as in
	// Component.Configure.
	CheckWrapper func(decode func(into any) error) error
	// PolicyPlugin names the plugin that computes the policy of a table, whose decode is as for Policy, one of PolicyPlugins or of the
	// file; empty: this program does. Components of such a policy run in the plugin, if it has their kind and their table says nothing else.
	PolicyPlugin func(decode func(into any) error) string
	// PolicyPlugins are native plugins for policies that need no [plugin] table, by name.
	PolicyPlugins map[string]PluginTable
	// Computes returns the reason why this machine cannot compute policies by a plugin of PolicyPlugins, as a *table.Error;
	// nil if it can. It may start the program to ask.
	Computes func(p PluginTable, dir string) error
	// RunText returns the pipeline of a run that Graph.Stored has found at path, or whose name is from, in the folder of runs dir; nil:
	// nothing is taken from runs but weights.
	RunText func(dir, path, from string) (text string, err error)
	// Waits says which processes of plugins have not answered for a second or longer; nil where there are none. Any goroutine.
	Waits func() []string
	// Memory is how many bytes of shared memory a pipeline may take; 0 = all that the machine and its control group have.
	Memory int64
	// Presets are pipelines by name, as TOML text without [run] and [env]; nil is DefaultPresets. The table [preset] has its
	// purpose in `about`, the preset that it extends, if any, in `from`, and in `mode` the mode where [train] gives none; `box` names
	// the preset in its place where all actions of the environment are numbers between bounds, for which Parse loads the environment. The
	// value "$env" is replaced by the environment that [train] names, "$env_steps" as a key of a component by stop.env_steps
	// of [run], 0 without it. In a preset with one component each of the kinds rollout, inference, batcher and learner, the
	// last three are copied for each further policy that acts in the rollout.
	Presets map[string]string
}

// Alone runs the functions of a module that imports nothing.
type Alone interface {
	// Call calls an export of at most one result, with numbers as they lie in memory.
	Call(name string, args ...uint64) (uint64, error)
	// Memory is the module's memory, until the next call.
	Memory() []byte
	Close() error
}

// PolicyProgram is the plugin that computes a policy.
type PolicyProgram struct {
	Plugin PluginTable
	Dir    string // a relative path is relative to it
	Policy string // its name
	Seed   uint64 // of the run
}

// MakePolicy makes a policy for an environment, whose description is that of the agents that it plays.
func (g *Graph) MakePolicy(p *Policy, parts *Parts, env *hostabi.EnvSpec) (component.Policy, error) {
	if plugin := g.computes(p, parts); plugin != nil {
		if parts.PolicyBy == nil {
			return nil, errors.New("this program runs no policies of plugins")
		}
		return parts.PolicyBy(PolicyProgram{plugin.Table, g.Dir, p.Name, g.Run.Seed}, p.Decode, env)
	}
	if parts.Policy == nil {
		return nil, errors.New("this program makes no policies")
	}
	return parts.Policy(p.Decode, env)
}

// computes returns the plugin of the file that computes a policy, nil where there is none.
func (g *Graph) computes(p *Policy, parts *Parts) *Plugin {
	if _, known := parts.PolicyPlugins[p.Plugin]; known || p.Plugin == "" {
		return nil
	}
	return g.Plugin(p.Plugin)
}

// Maker returns the Maker of a component in its runtime.
func (g *Graph) Maker(of *Component, parts *Parts) (Maker, error) {
	switch {
	case of.maker != nil:
		return of.maker, nil
	case of.Runtime != RuntimeProcess && parts.Kinds[of.Kind] != nil:
		return BuiltinMaker(parts.Kinds[of.Kind]), nil
	case of.Runtime == RuntimeProcess && parts.Plugin == nil:
		return nil, errors.New("this program runs no native plugins")
	case of.Runtime == RuntimeProcess:
		kinds, err := parts.Plugin(DefaultPlugin(), g.Dir)
		if err != nil || kinds[of.Kind] != nil {
			return kinds[of.Kind], err
		}
	}
	return nil, fmt.Errorf("this program has no kind %q", of.Kind)
}

// SourceOf returns where an environment comes from, for components that run in another process.
func (g *Graph) SourceOf(t *EnvTable, parts *Parts) env.Source {
	source := t.In(g.Dir)
	source.Use, _ = t.Locate(g.Dir, parts.Builtins)
	return source
}
