package process_test

import (
	"context"
	"fmt"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/sdk/component"
	"github.com/rlhost/rlhost/sdk/process"
)

// counter stands for the author's component; package component shows a whole one.
type counter struct{ component.Component }

// simulator stands for the author's environments: Spec, Hash, NewEnv and Close.
type simulator struct{ env.Plugin }

// The main function of a program that has a component, and that works environments in other processes.
func ExampleServe() {
	process.Serve(process.Plugin{
		Components: map[string]func() component.Component{
			"counter": func() component.Component { return &counter{} },
		},
		Docs: map[string]string{"counter": "counts the trajectories that pass"},
		Load: func(_ context.Context, source env.Source) (env.Plugin, error) {
			if source.Use != "simulator@1" {
				return nil, fmt.Errorf("this program has no environment %q", source.Use)
			}
			return &simulator{}, nil
		},
	})
}
