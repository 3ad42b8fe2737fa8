package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/rollout"
	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/plugins/batcher"
	"github.com/rlhost/rlhost/plugins/inference"
	"github.com/rlhost/rlhost/plugins/learner"
	rolloutplugin "github.com/rlhost/rlhost/plugins/rollout"
	"github.com/rlhost/rlhost/plugins/runner"
	"github.com/rlhost/rlhost/plugins/wasm"
)

// newParts returns the table of everything that a pipeline may name.
func newParts(r *wasm.Runtime, o runner.Output) *pipeline.Parts {
	builtins := plugins.Builtins()
	return &pipeline.Parts{
		Kinds: map[string]func() component.Component{
			"rollout":   rolloutplugin.New,
			"inference": inference.New,
			"random":    inference.NewRandom,
			"batcher":   batcher.New,
			"learner":   learner.New,
			"runner":    runner.New(o),
		},
		Load: func(ctx context.Context, name string, e pipeline.EnvTable, dir string) (rollout.Plugin, error) {
			return loadEnv(ctx, r, name, e, dir)
		},
		Builtins:    slices.Sorted(maps.Keys(builtins)),
		Policy:      decodePolicy,
		CheckPolicy: checkPolicy,
		Presets:     pipeline.DefaultPresets(),
	}
}

// newRuntime starts the engine for WebAssembly plugins.
func newRuntime(log *slog.Logger) (*wasm.Runtime, error) { return wasm.New(wasm.Options{Log: log}) }

// loadEnv loads a built-in environment or a module file.
func loadEnv(ctx context.Context, r *wasm.Runtime, name string, e pipeline.EnvTable, dir string) (rollout.Plugin, error) {
	path := e.Use
	source, builtin := plugins.Builtins()[e.Use]
	if !builtin && !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	p, err := r.Load(ctx, path, source, wasm.Config{
		Name: name, Args: e.Args, Grants: e.Grants,
		Memory: uint64(e.Limits.Memory), Step: e.Limits.Step, Init: e.Limits.Init,
	})
	var bad *wasm.LoadError
	if errors.As(err, &bad) {
		return nil, &pipeline.LoadError{
			Code: bad.Code, Reason: fmt.Sprintf("%s %s", bad.Path, bad.Reason), Help: bad.Remedy, Err: bad,
		}
	}
	return p, err
}
