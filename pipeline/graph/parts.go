package graph

import (
	"context"
	"embed"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
)

// Parts is what a program can build pipelines from: a literal table that it hands over. Every field may be left
// out; what is missing then does not exist.
type Parts struct {
	// Kinds makes an unconfigured component by kind, such as rollout.
	Kinds map[string]func() component.Component
	// Load loads the plugin of the environment of that name. A path in e.Use is relative to dir. An error that
	// wraps a *table.Error, or fs.ErrNotExist, is shown with its own code.
	Load func(ctx context.Context, name string, e EnvTable, dir string) (env.Plugin, error)
	// Plugin returns what makes the components of a native plugin, by kind: each in a process of its own. It may
	// start the program to ask. A relative path is relative to dir. Errors are shown as those of Load.
	Plugin func(p PluginTable, dir string) (map[string]Maker, error)
	// EnvPlugins are native plugins for environments that need no [plugin] table, by name.
	EnvPlugins map[string]PluginTable
	// EnvPluginsOf returns them for a run that began with that interpreter: the same one, unless the user says otherwise.
	EnvPluginsOf func(interpreter string) map[string]PluginTable
	// Builtins are the names that use = "name@version" may have.
	Builtins []string
	// Policy decodes a [policy.NAME] table for an environment. decode works as in Component.Configure. The
	// result is what Host.Policy returns.
	Policy func(decode func(into any) error, env *hostabi.EnvSpec) (any, error)
	// SameNetwork returns nil if parameters of one policy are parameters of the other, both made by Policy, and else an
	// error that shows both specifications. Without it policies that differ in anything do not go together.
	SameNetwork func(running, next any) error
	// CheckPolicy is Policy without an environment, for checks before anything is loaded.
	CheckPolicy func(decode func(into any) error) error
	// Presets are pipelines by name, as TOML text without [run] and [env]; nil is DefaultPresets. The table [preset] says
	// `about` what it is for, `from` which preset it differs, if it is not whole, and the `mode` where [train] gives none.
	// The value "$env" stands for the environment that [train] names; "$env_steps" as a key of a component for
	// stop.env_steps of [run], 0 without it.
	Presets map[string]string
}

// Maker makes an unconfigured component of one kind.
type Maker func() (component.Component, error)

// EnvTable is an [env.NAME] table.
type EnvTable struct {
	Use    string            // name@version of a built-in environment, the path of a plugin, or what a native plugin takes
	Args   map[string]string // by dotted key
	Limits EnvLimits
	Grants []string // imports and capabilities that the environment may use
	SHA256 string   // of the plugin file, hexadecimal; empty if any will do
	// Isolated: environments run in processes of their own, Workers of them for each batch.
	Isolated bool
	Workers  int
	// Plugin is the native plugin that runs the environments, and Use then what follows its name and a colon; nil
	// for WebAssembly modules.
	Plugin *PluginTable
}

// Locate returns Use for somebody who is not in dir, the folder that paths are relative to: a relative path is joined
// with it, everything else stays as it is. builtins are the names that are no paths.
func (t *EnvTable) Locate(dir string, builtins []string) (use string, relative bool) {
	if t.Plugin != nil || slices.Contains(builtins, t.Use) || filepath.IsAbs(t.Use) {
		return t.Use, false
	}
	return filepath.Join(dir, t.Use), true
}

// EnvLimits bound an environment; zero means the runtime's default.
type EnvLimits struct {
	Memory int64         `toml:"memory,bytes"`
	Step   time.Duration `toml:"step"` // of one call that steps all environments of an instance
	Init   time.Duration `toml:"init"`

	Compile       time.Duration `toml:"compile"` // of a module
	CompileMemory int64         `toml:"compile_memory,bytes"`
}

//go:embed presets/*.toml
var presetFiles embed.FS

// DefaultPresets returns the presets for the standard kinds, by name.
func DefaultPresets() map[string]string {
	presets := map[string]string{}
	files, err := presetFiles.ReadDir("presets")
	for _, file := range files {
		var text []byte
		if text, err = presetFiles.ReadFile("presets/" + file.Name()); err != nil {
			break
		}
		presets[strings.TrimSuffix(file.Name(), ".toml")] = string(text)
	}
	if err != nil {
		panic(fmt.Sprintf("pipeline: embedded preset: %v", err))
	}
	return presets
}

func (p *Parts) presets() map[string]string {
	if p.Presets != nil {
		return p.Presets
	}
	return DefaultPresets()
}

// AboutPresets says of each preset, by name, what it is for.
func (p *Parts) AboutPresets() map[string]string {
	presets, about := p.presets(), map[string]string{}
	for name := range presets {
		var c Report
		if n, table := c.readPreset(presets, name); n != nil {
			about[name] = table.About
		}
	}
	return about
}
