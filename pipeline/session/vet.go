package session

import (
	"context"
	"errors"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Vet briefly checks the output of a graph's environments that are unchecked modules: values written beyond their tensors, or left
// unwritten, would be learned from in silence. The error is Problems.
func Vet(ctx context.Context, g *graph.Graph, parts *graph.Parts) error {
	if parts.Vet == nil {
		return nil
	}
	c := &graph.Report{File: g.File}
	for i := range g.Envs {
		e := &g.Envs[i]
		err := parts.Vet(ctx, e.Table, g.Dir)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var failed *table.Error
		if errors.As(err, &failed) {
			c.Add(failed.Code, e.UseAt, failed.Help, "env %q: %s", e.Name, failed.Sentence())
		} else if err != nil {
			return err
		}
	}
	return c.Sorted().Err()
}
