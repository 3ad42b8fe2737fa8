// Package training trains in tests and examples: a pipeline, given as text, with an author's own components built in.
//
//	result, stats := training.Must(t, pipeline, training.Kinds{"shaper": shaper.New}, "component.shaper.scale=0.2")
package training

import (
	"context"
	"errors"
	"testing"

	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/author"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/sdk/component"
)

// Kinds are what makes unconfigured components, by the name of their kind.
type Kinds map[string]func() component.Component

// Run trains to the end and returns what came out, and the metrics. The run lies in a folder of dir; sets override the
// pipeline's keys.
func Run(ctx context.Context, dir, pipeline string, own Kinds, sets ...string) (r *session.Result, metrics *stat.Registry, err error) {
	parts, engines := builtin.New(builtin.Options{})
	defer func() { err = errors.Join(err, engines.Close()) }()
	for name, make := range own {
		parts.Kinds[name] = author.Kind(make)
	}
	g, err := graph.Parse("pipeline.toml", []byte(pipeline), graph.ParseOptions{Parts: parts, Sets: append([]string{"run.dir=" + dir}, sets...)})
	if err != nil {
		return nil, nil, err
	}
	s, err := session.Begin(ctx, session.Options{Parts: parts, Graph: g})
	if err != nil {
		return nil, nil, err
	}
	r, err = s.Run(ctx)
	return r, s.Pipeline().Stats(), errors.Join(err, s.Close())
}

// Must is Run in a folder of the test, which fails with the training.
func Must(t testing.TB, pipeline string, own Kinds, sets ...string) (*session.Result, *stat.Registry) {
	t.Helper()
	r, metrics, err := Run(t.Context(), t.TempDir(), pipeline, own, sets...)
	if err != nil {
		t.Fatal(err)
	}
	return r, metrics
}
