package main

import (
	"maps"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/pipeline/graph"

	"github.com/rlhost/rlhost/plugins/batcher"
	"github.com/rlhost/rlhost/plugins/inference"
	"github.com/rlhost/rlhost/plugins/learner"
	"github.com/rlhost/rlhost/plugins/objects"
	rolloutplugin "github.com/rlhost/rlhost/plugins/rollout"
	"github.com/rlhost/rlhost/plugins/runner"
)

// newParts returns the table of everything that a pipeline may name. Nothing can be loaded without engines.
func newParts(e *engines, o runner.Output) *graph.Parts {
	return &graph.Parts{
		Kinds:       builtinKinds(o),
		Load:        e.load,
		Plugin:      e.plugin,
		EnvPlugins:  envPlugins(),
		Builtins:    builtinEnvs(),
		Policy:      decodePolicy,
		CheckPolicy: checkPolicy,
		SameNetwork: sameNetwork,
		Presets:     graph.DefaultPresets(),
	}
}

// builtinEnvs are the names of the environments that come with this program.
func builtinEnvs() []string { return slices.Sorted(maps.Keys(plugins.Builtins())) }

// builtinKinds are the components of this program.
func builtinKinds(o runner.Output) map[string]func() component.Component {
	return map[string]func() component.Component{
		"rollout":   rolloutplugin.New,
		"inference": inference.New,
		"random":    inference.NewRandom,
		"batcher":   batcher.New,
		"learner":   learner.New,
		"runner":    runner.New(o),
		"objects":   func() component.Component { return objects.New() },
	}
}
